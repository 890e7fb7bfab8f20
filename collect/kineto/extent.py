"""Where an event ends in a text, or where it breaks: told by a strict JSON parser."""

import json
import re
from typing import NamedTuple

# Events are measured in a stretch that most fit in: an error costs time by the length of its text.
STRETCH = 1 << 12
# What may be left of a token at the end of a block.
PART_OF_TOKEN = re.compile(r"[\s\w\\.+-]*")
END_OF_ITEM = re.compile(r"\s*(?:[,\]]|\Z)")
WALK = json.JSONDecoder(strict=False).raw_decode


class Extent(NamedTuple):
    """Where an event ends, or else where it breaks, and whether it is only cut off there."""

    end: int | None
    broken_at: int
    cut: bool


def measure(text: str, at: int) -> Extent:
    """Measure the value that begins here, in longer and longer stretches of the text."""
    size = STRETCH
    while True:
        found = _measure_stretch(text[at : at + size])
        if at + size >= len(text) or not (found.cut or found.end == size):
            end = None if found.end is None else at + found.end
            return Extent(end, at + found.broken_at, found.cut)
        size *= 16


def _measure_stretch(text: str, at: int = 0) -> Extent:
    if at == len(text):
        return Extent(None, at, cut=True)
    try:
        end = WALK(text, at)[1]
        whole = text[at] == "{" or END_OF_ITEM.match(text, end)
        return Extent(end if whole else None, end, cut=False)
    except json.JSONDecodeError as error:
        in_string = error.msg.startswith("Unterminated string")
        cut = in_string or PART_OF_TOKEN.fullmatch(text, error.pos) is not None
        return Extent(None, error.pos, cut)
    except (ValueError, RecursionError):  # an integer of thousands of digits; thousands of brackets
        return Extent(None, at, cut=False)


def has_phase(text: str, at: int) -> bool | None:
    """Tell whether the object here has a phase, as each event has; null if it is unreadable."""
    end = measure(text, at).end
    return None if end is None else "ph" in WALK(text, at)[0]
