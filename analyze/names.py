"""Shorten names from traces for people: what a kernel is, without what the compiler added.

A name is data, so it may be 60 kB of template, hold line breaks, control characters or markup.
Tables keep it whole; where people read, this is what they see. Escaping is another matter: see
`whichwall.analyze.report.escape`.
"""

import re
import unicodedata

# The longest kernel name seen in real traces has 5,123 characters; beyond that, cut before work.
LONGEST_PARSED = 8000
DEFAULT_WIDTH = 64
_TAIL_SHARE = 0.35

_CPP = re.compile(r"::|^void |^\w+\(|\w<")
_GROUPS = {"(": ")", "{": "}"}
# What is left of a lambda and its call once brackets are gone: `::::operator const::`.
_LAMBDA = re.compile(r"(?:::)+operator(?: const)?|(?:::)+(?=[,>\s]|$)|(?<=\w) const(?=[,>\s*&]|$)")
_SCOPES = re.compile(r"\b(?:[A-Za-z_]\w*::)+(?=[A-Za-z_~])")
_UNSIGNED_LONG = re.compile(r"\b(\d+)ul\b")
# Arguments of PyTorch's wrappers that every kernel has and that tell no two apart.
_WRAPPING = re.compile(
    r",? ?\b(?:[Aa]rray<char\*, \d+>|TrivialOffsetCalculator<\d+, unsigned int>"
    r"|(?:Load|Store)With(?:out)?Cast(?:<\d+>)?)"
)
_LEADING_NUMBERS = re.compile(r"<(?:\d+, )+(?=[A-Za-z_])")
_MANGLED_PART = re.compile(r"(\d+)(?=[A-Za-z_])")


def printable(name: str) -> str:
    """Replace line breaks, control and invisible formatting characters by single spaces."""
    if not name.isprintable():
        name = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in name)
    return " ".join(name.split())


def elided(text: str, width: int = DEFAULT_WIDTH) -> str:
    """Cut the middle out of a text that is longer than `width`: both ends tell kernels apart."""
    if len(text) <= width:
        return text
    tail = int(width * _TAIL_SHARE)
    return f"{text[: width - tail - 1]}…{text[-tail:]}"


def short_name(name: str, width: int = DEFAULT_WIDTH) -> str:
    """Shorten a kernel's or an operator's name to at most `width` printable characters.

    C++ loses its return type, argument lists, lambdas and namespaces, and keeps its template
    arguments; any other name only loses what does not fit.
    """
    text = printable(name[:LONGEST_PARSED])
    if text.startswith("_Z"):
        text = _unmangled(text)
    elif _CPP.search(text):
        text = _without_ceremony(text) or text
    return elided(text, width)


def _without_ceremony(text: str) -> str:
    """Return a demangled name without return type, arguments, lambdas and namespaces."""
    text = text.replace("(anonymous namespace)::", "")
    text = _LAMBDA.sub("", _without_groups(text))
    text = _SCOPES.sub("", _UNSIGNED_LONG.sub(r"\1", text)).replace(" >", ">")
    text = _LEADING_NUMBERS.sub("<", _WRAPPING.sub("", text))
    return text[_last_top_level(text) :].strip()


def _without_groups(text: str) -> str:
    """Drop `(…)` and `{…}` with all inside; what is never closed is dropped to the end."""
    kept: list[str] = []
    closing: list[str] = []
    for letter in text:
        if letter in _GROUPS:
            closing.append(_GROUPS[letter])
        elif closing and letter == closing[-1]:
            closing.pop()
        elif not closing:
            kept.append(letter)
    return "".join(kept)


def _last_top_level(text: str) -> int:
    """Return where the last word outside of template arguments begins."""
    depth, begin = 0, 0
    for place, letter in enumerate(text.rstrip()):
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth -= 1
        elif depth == 0 and (letter == " " or text.startswith("::", place)):
            begin = place + (1 if letter == " " else 2)
    return begin


def _unmangled(text: str) -> str:
    """Return the nested name of an Itanium-mangled symbol, `…` for its template arguments."""
    place = 3 if text.startswith("_ZN") else 2
    parts: list[str] = []
    while found := _MANGLED_PART.match(text, place):
        length = int(found.group(1))
        parts.append(text[found.end() : found.end() + length])
        place = found.end() + length
    if not parts:
        return text
    return parts[-1] + ("<…>" if text[place : place + 1] == "I" else "")
