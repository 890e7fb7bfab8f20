"""Make an event's text legal JSON again, and count what had to be changed.

The kinds are those of public bug reports: lone backslashes and surrogates, raw control bytes,
bytes that are not UTF-8, bare N/A, numbers that are not finite, empty and doubled commas.
A quote inside a string cannot be told from its end: such an event is dropped by the caller.
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
LEGAL_ESCAPES = b'"\\/bfnrt'
CONTROL = re.compile(rb"[\x00-\x1f]")
REPLACEMENT = rb"\ufffd"

LETTER = re.compile(rb"[A-Za-z]")
NONFINITE = re.compile(
    rb"(?<![\w.])[-+]?(?:nan|inf(?:inity)?|\d+(?:\.\d*)?e\+?\d{3,})(?![\w.])", re.IGNORECASE
)
NOT_AVAILABLE = re.compile(rb"(?<![\w.])(?:N/A|n/a|None|undefined)(?![\w.])")
NO_VALUE = re.compile(rb":(?=\s*[,}\]])")
DOUBLED_COMMA = re.compile(rb",(?:\s*,)+")
LEADING_COMMA = re.compile(rb"([{\[]\s*),")
TRAILING_COMMA = re.compile(rb",(?=\s*[}\]])")


@dataclass
class Repairs:
    """Count what was changed, unreadable or dropped in one file."""

    repaired: int = 0
    nonfinite: int = 0
    dropped: int = 0


def repair(text: bytes, repairs: Repairs) -> bytes:
    """Return the text with each known fault mended; what is legal stays as it is."""
    text = _repair_encoding(text, repairs)
    pieces: list[bytes] = []
    end = 0
    for match in STRING.finditer(text):
        pieces.append(_repair_structure(text[end : match.start()], repairs))
        pieces.append(_repair_string(match.group(), repairs))
        end = match.end()
    pieces.append(_repair_structure(text[end:], repairs))
    return b"".join(pieces)


def _repair_encoding(text: bytes, repairs: Repairs) -> bytes:
    try:
        text.decode()
    except UnicodeDecodeError:
        before = text.count("\ufffd".encode())
        text = text.decode("utf-8", "replace").encode()
        repairs.repaired += text.count("\ufffd".encode()) - before
    return text


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
    if LETTER.search(text):
        text, count = NONFINITE.subn(b"null", text)
        repairs.nonfinite += count
        text, count = NOT_AVAILABLE.subn(b"null", text)
        repairs.repaired += count
    for pattern, mended in (
        (DOUBLED_COMMA, b","),
        (LEADING_COMMA, rb"\1"),
        (TRAILING_COMMA, b""),
        (NO_VALUE, b":null"),
    ):
        text, count = pattern.subn(mended, text)
        repairs.repaired += count
    return text
