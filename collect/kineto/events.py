"""Cut a trace into runs of whole events, and decode them; broken ones are mended or dropped.

A run of events is cut at a place that looks like the border of two events. The cut is right
if and only if the run decodes as a list, because a list starts and ends at the same depth; a
run that does not decode is walked event by event.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from whichwall.collect.kineto.repair import Repairs, repair
from whichwall.collect.kineto.source import BLOCK_BYTES, Source
from whichwall.schemas.errors import InputError

EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
BORDER = re.compile(rb',\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|args|s|bp|cname|sf)"\s*:)')
CLOSE = re.compile(rb'\}\s*\](?=\s*(?:,\s*"|\}|$))')
ARRAY_END = re.compile(rb'\]\s*(?:,\s*"|,?\s*\Z|\})')
AFTER_ARRAY = 1 << 16  # this far no event may follow what looks like the end of the array
LEGACY = re.compile(rb"\[\s*([{\]])")
# What stands before a break may belong to the border after it: a comma, or a comma and the
# brace and quote that a string without its end has swallowed.
BORDER_BEFORE_BREAK = re.compile(rb',\s*(?:\{\s*"\s*)?')
# What may be left of a token at the end of a block.
PART_OF_TOKEN = re.compile(r"[\s\w\\.+-]*")
END_OF_ITEM = re.compile(r"\s*(?:[,\]]|\Z)")
BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
SPACES = b" " * 4096  # nobody indents so far: a file of spaces must not fill the memory
LONG_SPACE = re.compile(rb"\s{4096,}")
SEPARATOR = re.compile(rb"[\s,]*")
HEAD_LIMIT = 64 << 20  # metadata before the events; the largest seen in public traces is 0.3 MB
EVENT_LIMIT = 64 << 20  # one event; kernel names of 60 kB are the largest seen
TAIL_WINDOWS = (1 << 16, 1 << 20, BLOCK_BYTES * 2)  # how far back a border is looked for

NOTHING = msgspec.Raw(b"")


class Event(msgspec.Struct, gc=False):
    """One event; times and arguments stay text until they are known to be wanted."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    args: msgspec.Raw = NOTHING


_DECODE_LIST = msgspec.json.Decoder(list[Event]).decode
_DECODE_ONE = msgspec.json.Decoder(Event).decode
_WALK = json.JSONDecoder(strict=False).raw_decode
_UNREADABLE = (msgspec.DecodeError, RecursionError)


class EventReader:
    """Read a file's events in runs; afterwards `head` and `tail` hold the text around them."""

    def __init__(self, source: Source) -> None:
        """Remember the source; nothing is read yet."""
        self.source = source
        self.repairs = Repairs()
        self.head = b""
        self.tail = b""
        self.legacy = False
        self.truncated = False
        self._buffer = b""
        self._ended = False

    def runs(self) -> Iterator[list[Event]]:
        """Yield lists of events in file order.

        Raises:
            InputError: not a trace.
        """
        blocks = self.source.blocks()
        self._read_head(blocks)
        for block in blocks:
            self._buffer = _without_padding(self._buffer + block)
            if len(self._buffer) >= BLOCK_BYTES:
                yield from self._whole_events(last=False)
            if self._ended:
                break
        if not self._ended:
            yield from self._whole_events(last=True)
        self.tail = self._buffer + b"".join(_bounded(blocks))
        unclosed = not self.legacy and _is_cut(self.tail)
        self.truncated = self.truncated or self.source.truncated or unclosed

    def _read_head(self, blocks: Iterator[bytes]) -> None:
        buffer = b""
        for block in blocks:
            buffer = _without_padding(buffer + block)
            if match := LEGACY.match(buffer.lstrip(BEFORE_JSON)):
                self.legacy = True
                self._buffer = buffer.lstrip(BEFORE_JSON)[match.start(1) :]
                return
            if match := EVENTS.search(buffer):
                self.head, self._buffer = buffer[: match.start()], buffer[match.end() :]
                return
            if len(buffer) > HEAD_LIMIT:
                break
        raise InputError(
            f"{self.source.path}: no traceEvents found ({_describe(buffer)}); "
            "expected a profiler trace as written by export_chrome_trace"
        )

    def _whole_events(self, *, last: bool) -> Iterator[list[Event]]:
        for cut in _cuts(self._buffer):
            run = _decode_run(self._buffer[:cut])
            if run is not None:
                self._buffer = self._buffer[cut:]
                yield run
                break
        if last or len(self._buffer) >= BLOCK_BYTES:
            yield self._walk(last=last)

    def _walk(self, *, last: bool) -> list[Event]:
        """Decode event by event, as far as the buffer holds whole events."""
        found: list[Event] = []
        # Latin-1 keeps one character a byte, so that positions in text and bytes agree.
        text = self._buffer.decode("latin-1")
        at = 0
        while True:
            at = _skip_separators(self._buffer, at)
            if _closes_array(self._buffer, text, at):
                if last or len(text) - at > AFTER_ARRAY:
                    self._ended = True
                    at += 1
                break
            event = _measure(text, at)
            end = event.end or _next_event(self._buffer, text, at, event)
            if end is None:
                at = self._end_inside_event(at, event, found, last=last)
                break
            self._add_event(found, at, end)
            at = end
        self._buffer = self._buffer[at:]
        return found

    def _end_inside_event(self, at: int, event: "Extent", found: list[Event], *, last: bool) -> int:
        """Return where to go on when the buffer ends within an event."""
        rest = len(self._buffer) - at
        if last:
            close = _close_after(self._buffer, event.broken_at) if rest else None
            if close is not None:
                self._add_event(found, at, close.start() + 1)
                self._ended = True
                return close.end()
            self.truncated = self.truncated or rest > 0 or not self.legacy
            return len(self._buffer)
        if rest > EVENT_LIMIT:
            self.repairs.dropped += 1
            return len(self._buffer)
        return at

    def _add_event(self, found: list[Event], at: int, end: int) -> None:
        event = self._decode_event(self._buffer[at:end])
        if event is not None:
            found.append(event)

    def _decode_event(self, raw: bytes) -> Event | None:
        raw = raw.strip(b" \t\r\n,")
        try:
            return _DECODE_ONE(raw)
        except _UNREADABLE:
            pass
        try:
            return _DECODE_ONE(repair(raw, self.repairs))
        except _UNREADABLE:
            self.repairs.dropped += 1
            return None


def _is_cut(tail: bytes) -> bool:
    """Tell whether the text after the events ends before its last brace."""
    text = '{"":[]' + tail.decode("latin-1")
    rest = _measure(text, 0)
    return not text.rstrip().endswith("}") or (rest.end is None and rest.broken_at >= len(text))


def _without_padding(buffer: bytes) -> bytes:
    return LONG_SPACE.sub(b" ", buffer) if SPACES in buffer else buffer


def _bounded(blocks: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for block in blocks:
        size += len(block)
        if size > HEAD_LIMIT:
            return
        yield block


def _cuts(buffer: bytes) -> Iterator[int]:
    """Yield the likeliest places to cut: the last border of events, then those before it."""
    for window in TAIL_WINDOWS:
        start = max(0, len(buffer) - window)
        borders = [m.start() for m in BORDER.finditer(buffer, start)]
        if borders:
            yield from borders[-1:-4:-1]
            return


def _decode_run(raw: bytes) -> list[Event] | None:
    raw = raw.lstrip(b" \t\r\n,")
    try:
        return _DECODE_LIST(b"[" + raw + b"]")
    except _UNREADABLE:
        return None


def _skip_separators(buffer: bytes, at: int) -> int:
    match = SEPARATOR.match(buffer, at)
    return match.end() if match else at


class Extent(NamedTuple):
    """Where an event ends, or else where it breaks, and whether it is only cut off there."""

    end: int | None
    broken_at: int
    cut: bool


def _measure(text: str, at: int) -> Extent:
    if at == len(text):
        return Extent(None, at, cut=True)
    try:
        end = _WALK(text, at)[1]
        whole = text[at] == "{" or END_OF_ITEM.match(text, end)
        return Extent(end if whole else None, end, cut=False)
    except json.JSONDecodeError as error:
        in_string = error.msg.startswith("Unterminated string")
        cut = in_string or PART_OF_TOKEN.fullmatch(text, error.pos) is not None
        return Extent(None, error.pos, cut)
    except (ValueError, RecursionError):  # an integer of thousands of digits; thousands of brackets
        return Extent(None, at, cut=False)


def _next_event(buffer: bytes, text: str, at: int, event: Extent) -> int | None:
    """Return where the event after a broken one begins, if the buffer holds that place.

    What comes before the break is sound, so borders there are within the event's own arguments.
    Those after it are too where a sound object without a phase follows.
    """
    if event.cut:
        return None
    comma = buffer.rfind(b",", at, event.broken_at)
    swallowed = comma > at and BORDER_BEFORE_BREAK.fullmatch(buffer, comma, event.broken_at)
    for border in BORDER.finditer(buffer, comma if swallowed else event.broken_at):
        if _has_phase(text, border.end()) is not False:
            return border.start()
    return None


def _closes_array(buffer: bytes, text: str, at: int) -> bool:
    """Tell whether the array of events ends here; that of a broken event's arguments may too."""
    if not ARRAY_END.match(buffer, at):
        return False
    return not any(_has_phase(text, border.end()) for border in BORDER.finditer(buffer, at))


def _has_phase(text: str, at: int) -> bool | None:
    """Tell whether the object here has a phase, as each event has; null if it is unreadable."""
    try:
        return "ph" in _WALK(text, at)[0]
    except (ValueError, RecursionError):
        return None


def _close_after(buffer: bytes, broken_at: int) -> re.Match[bytes] | None:
    """Find the end of the array behind a last event that is broken rather than cut off."""
    before = buffer[:broken_at].rstrip()
    start = len(before) - 1 if before.endswith(b"}") else broken_at
    return CLOSE.search(buffer, start)


def _describe(buffer: bytes) -> str:
    start = buffer.lstrip()[:40]
    return f"it starts with {start!r}" if start else "the file is empty"
