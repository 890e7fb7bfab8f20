"""Cut a trace into runs of whole events, and decode them; broken ones are mended or dropped.

A run of events is cut at a place that looks like the border of two events. The cut is right
if and only if the run decodes as a list, because a list starts and ends at the same depth; a
run that does not decode is walked event by event.
"""

import re
from collections.abc import Iterator

import msgspec

from whichwall.collect.kineto.extent import Extent, has_phase, measure
from whichwall.collect.kineto.repair import (
    Repairs,
    count_broken_characters,
    escape_quotes,
    repair,
    without_arguments,
)
from whichwall.collect.kineto.source import BLOCK_BYTES, Source, ahead
from whichwall.schemas.errors import InputError

EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
# Between two events; the comma may be missing.
BORDER = re.compile(
    rb'(?:,|(?<=\}))\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|args|s|bp|cname|sf)"\s*:)'
)
CLOSE = re.compile(rb'\}\s*\](?=\s*(?:,\s*"|\}|$))')
ARRAY_END = re.compile(rb'\]\s*(?:,\s*"|,?\s*\Z|\})')
AFTER_ARRAY = 1 << 16  # this far no event may follow what looks like the end of the array
LEGACY = re.compile(rb"\[\s*([{\]])")
# What stands before a break may belong to the border after it: a comma, or a comma and the
# brace and quote that a string without its end has swallowed.
BORDER_BEFORE_BREAK = re.compile(rb',\s*(?:\{\s*"\s*)?')
BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
SPACES = b" " * 4096  # nobody indents so far: a file of spaces must not fill the memory
LONG_SPACE = re.compile(rb"\s{4096,}")
SEPARATOR = re.compile(rb"[\s,]*")
HEAD_LIMIT = 8 << 20  # metadata before the events; the largest seen in public traces is 0.3 MB
EVENT_LIMIT = 16 << 20  # one event; kernel names of 60 kB are the largest seen
MEND_LIMIT = 1 << 20  # a broken event; mending takes hundreds of times its size
GUESSES = 10_000  # a file with more events beyond repair is not worth the time
TAIL_WINDOWS = (1 << 16, 1 << 20, BLOCK_BYTES * 2)  # how far back a border is looked for

NOTHING = msgspec.Raw(b"")


class Event(msgspec.Struct, gc=False):
    """One event; times and arguments stay text until they are known to be wanted."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    args: msgspec.Raw = NOTHING


_DECODE_LIST = msgspec.json.Decoder(list[Event]).decode
_DECODE_ONE = msgspec.json.Decoder(Event).decode
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
        blocks = ahead(self.source.blocks())
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
            run = _decode_run(self._buffer, cut)
            if run is not None:
                if not self._buffer.isascii():
                    self.repairs.repaired += count_broken_characters(self._buffer[:cut])
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
            event = measure(text, at)
            end = event.end or _next_event(self._buffer, text, at, event)
            if end is None:
                at = self._end_inside_event(at, event, found, last=last)
                break
            self._add_event(found, at, end)
            at = end
        self._buffer = self._buffer[at:]
        return found

    def _end_inside_event(self, at: int, event: Extent, found: list[Event], *, last: bool) -> int:
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
            event = _DECODE_ONE(raw)
        except _UNREADABLE:
            return self._mend_event(raw)
        self.repairs.repaired += count_broken_characters(raw)
        return event

    def _mend_event(self, raw: bytes) -> Event | None:
        guessing = (escape_quotes, without_arguments) if self.repairs.dropped < GUESSES else ()
        small = len(raw) <= MEND_LIMIT
        for mend in (_as_written, *guessing) if small else guessing[1:]:
            mended = Repairs()
            try:
                event = _decode_loosely(repair(mend(raw, mended)[:MEND_LIMIT], mended), mended)
            except _UNREADABLE:
                continue
            if event.ph is None and mend is not _as_written:
                break
            self.repairs.add(mended)
            return event
        self.repairs.dropped += 1
        return None


def _decode_loosely(raw: bytes, repairs: Repairs) -> Event:
    """Decode an event; a field of another type than any writer's is null and counted."""
    try:
        return _DECODE_ONE(raw)
    except msgspec.ValidationError:
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    kept = {}
    for field in msgspec.structs.fields(Event):
        if field.name in fields:
            try:
                kept[field.name] = msgspec.json.decode(fields[field.name], type=field.type)
            except msgspec.ValidationError:
                repairs.repaired += 1
    return Event(**kept)


def _as_written(raw: bytes, _: Repairs) -> bytes:
    return raw


def _is_cut(tail: bytes) -> bool:
    """Tell whether the text after the events ends before its last brace."""
    text = '{"":[]' + tail.decode("latin-1")
    rest = measure(text, 0)
    return rest.end is None and (not text.rstrip().endswith("}") or rest.broken_at >= len(text))


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


def _decode_run(buffer: bytes, end: int) -> list[Event] | None:
    start = _skip_separators(buffer, 0)
    try:
        return _DECODE_LIST(b"".join((b"[", memoryview(buffer)[start:end], b"]")))
    except _UNREADABLE:
        return None


def _skip_separators(buffer: bytes, at: int) -> int:
    match = SEPARATOR.match(buffer, at)
    return match.end() if match else at


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
        if has_phase(text, border.end()) is not False:
            return border.start()
    return None


def _closes_array(buffer: bytes, text: str, at: int) -> bool:
    """Tell whether the array of events ends here; that of a broken event's arguments may too."""
    if not ARRAY_END.match(buffer, at):
        return False
    return not any(has_phase(text, border.end()) for border in BORDER.finditer(buffer, at))


def _close_after(buffer: bytes, broken_at: int) -> re.Match[bytes] | None:
    """Find the end of the array behind a last event that is broken rather than cut off."""
    before = buffer[:broken_at].rstrip()
    start = len(before) - 1 if before.endswith(b"}") else broken_at
    return CLOSE.search(buffer, start)


def _describe(buffer: bytes) -> str:
    start = buffer.lstrip()[:40]
    return f"it starts with {start!r}" if start else "the file is empty"
