"""Make an event's text legal JSON again, and count what had to be changed.

The kinds are those of public bug reports: lone backslashes and surrogates, raw control bytes,
bytes that are not UTF-8, bare words such as N/A, numbers that are not finite or not spelled as
JSON spells them, empty and doubled commas.
A quote inside a string cannot be told from its end for certain: `escape_quotes` guesses, and what
it does not make legal is dropped by the caller.
"""

import re
from dataclasses import dataclass

STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb'|u[0-9a-fA-F]{4}|["\\/bfnrt]|.)',
    re.DOTALL,
)
LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
BACKSLASH = ord("\\")
LEGAL_ESCAPES = b'"\\/bfnrt'
CONTROL = re.compile(rb"[\x00-\x1f]")
REPLACEMENT = rb"\ufffd"

PLAIN = re.compile(rb"\s*[:,]?\s*")
BARE = re.compile(rb"[^\s,:{}\[\]\"](?:[^,:{}\[\]\"]*[^\s,:{}\[\]\"])?")
LEGAL = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE](?:\+?\d{1,2}|-\d+))?|true|false|null")
# As C prints them, with or without what kind of NaN it is; Windows has its own spelling.
NONFINITE = re.compile(
    rb"[-+]?(?:nan(?:\(\w*\))?|inf(?:inity)?|1\.#\w+|\d+(?:\.\d*)?e\+?\d{3,})", re.IGNORECASE
)
BEFORE_STRING = re.compile(rb"[,:{\[]\s*\Z")
KEY = re.compile(rb"\s*:")
OTHER_NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)")
NO_VALUE = re.compile(rb":(?=\s*[,}\]])")
DOUBLED_COMMA = re.compile(rb",(?:\s*,)+")
LEADING_COMMA = re.compile(rb"([{\[]\s*),")
TRAILING_COMMA = re.compile(rb",(?=\s*[}\]])")

# Kineto writes one of these keys, or the event's end, behind a name.
NAME = re.compile(
    rb'("name"\s*:\s*")(.*?)(?="\s*(?:\}\s*\Z|,\s*"(?:ph|cat|pid|tid|ts|dur|id|args|s|bp)"\s*:))',
    re.DOTALL,
)
# A string ends at a quote that something follows which may follow a string.
STRING_END = re.compile(rb'"(?=\s*(?:[:}\]]|,\s*(?:["{\[\d-]|true|false|null)|\Z))')
WHOLE_ARGUMENT = re.compile(
    rb'"(?:device|stream|correlation|[Ee]xternal id|bytes)"\s*:\s*-?\d{1,18}(?=\s*[,}])'
)
QUOTE = re.compile(rb'(?<!\\)"')


@dataclass
class Repairs:
    """Count what was changed, unreadable or dropped in one file."""

    repaired: int = 0
    nonfinite: int = 0
    dropped: int = 0

    def add(self, other: "Repairs") -> None:
        """Count in what another counted."""
        self.repaired += other.repaired
        self.nonfinite += other.nonfinite
        self.dropped += other.dropped


def repair(text: bytes, repairs: Repairs) -> bytes:
    """Return the text with each known fault mended; what is legal stays as it is."""
    text, count = _replace_broken_characters(text)
    repairs.repaired += count
    pieces: list[bytes] = []
    end = 0
    for match in STRING.finditer(text):
        between = _repair_structure(text[end : match.start()], repairs)
        if end and not BEFORE_STRING.search(between):
            repairs.repaired += 1
            between += b","
        pieces.append(between)
        pieces.append(_repair_string(match.group(), repairs))
        end = match.end()
    pieces.append(_repair_structure(text[end:], repairs))
    return b"".join(pieces)


def escape_quotes(text: bytes, repairs: Repairs) -> bytes:
    """Return an event's text with the quotes escaped that stand within a string, as it seems."""
    text = NAME.sub(lambda found: found[1] + _escaped(found[2], repairs), text, count=1)
    pieces: list[bytes] = []
    end = 0
    while (begin := text.find(b'"', end) + 1) > 0:
        close = STRING_END.search(text, begin)
        while close is not None and _is_escaped(text, close.start()):
            close = STRING_END.search(text, close.end())
        if close is None:
            break
        pieces += [text[end:begin], _escaped(text[begin : close.start()], repairs), b'"']
        end = close.end()
    return b"".join([*pieces, text[end:]])


def without_arguments(text: bytes, repairs: Repairs) -> bytes:
    """Return an event whose arguments are beyond repair with the whole numbers among them only."""
    before, key, arguments = text.partition(b'"args"')
    repairs.repaired += 1
    kept = b", ".join(WHOLE_ARGUMENT.findall(arguments))
    return before + key + b": {" + kept + b"}}" if key else text


def _is_escaped(text: bytes, at: int) -> bool:
    start = at
    while start and text[start - 1] == BACKSLASH:
        start -= 1
    return (at - start) % 2 == 1


def _escaped(inside: bytes, repairs: Repairs) -> bytes:
    text = QUOTE.sub(rb'\\"', inside)
    if _is_escaped(text, len(text)):
        text += b"\\"
    repairs.repaired += text != inside
    return text


def count_broken_characters(text: bytes) -> int:
    """Return how many characters of a text are no UTF-8."""
    return _replace_broken_characters(text)[1]


def _replace_broken_characters(text: bytes) -> tuple[bytes, int]:
    try:
        text.decode()
    except UnicodeDecodeError:
        before = text.count("\ufffd".encode())
        text = text.decode("utf-8", "replace").encode()
        return text, text.count("\ufffd".encode()) - before
    return text, 0


def _repair_string(text: bytes, repairs: Repairs) -> bytes:
    def mend_escape(match: re.Match[bytes]) -> bytes:
        found = match.group()
        if len(found) == 2 and found[1] not in LEGAL_ESCAPES:
            repairs.repaired += 1
            return b"\\" + found
        if len(found) == 6 and LONE_SURROGATE.match(found):
            repairs.repaired += 1
            return REPLACEMENT
        return found

    def mend_control(match: re.Match[bytes]) -> bytes:
        repairs.repaired += 1
        return b"\\u%04x" % match.group()[0]

    if b"\\" in text:
        text = ESCAPE.sub(mend_escape, text)
    return CONTROL.sub(mend_control, text)


def _repair_structure(text: bytes, repairs: Repairs) -> bytes:
    if PLAIN.fullmatch(text):
        return text

    def mend_bare(match: re.Match[bytes]) -> bytes:
        found = match.group()
        if LEGAL.fullmatch(found):
            return found
        if NONFINITE.fullmatch(found):
            repairs.nonfinite += 1
            return b"null"
        repairs.repaired += 1
        keep = OTHER_NUMBER.fullmatch(found) or KEY.match(text, match.end())
        return b'"' + found + b'"' if keep else b"null"

    text = BARE.sub(mend_bare, text)
    for pattern, mended in (
        (DOUBLED_COMMA, b","),
        (LEADING_COMMA, rb"\1"),
        (TRAILING_COMMA, b""),
        (NO_VALUE, b":null"),
    ):
        text, count = pattern.subn(mended, text)
        repairs.repaired += count
    return text
