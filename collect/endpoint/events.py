"""Cut the bytes of a stream into server-sent events, as soon as each is whole.

A network cuts where it likes: inside a line, a line's end or a letter. Lines end in LF, CR or both,
and comments keep a connection alive (https://html.spec.whatwg.org/multipage/server-sent-events).
"""

from whichwall.schemas.errors import InputError

# No token's event comes near: a server that sends more without an end of line sends something else.
LONGEST_EVENT = 1 << 22
FIELDS = (b"data", b"event", b"id", b"retry")
BOM = b"\xef\xbb\xbf"
SHOWN = 80  # bytes of what was not understood


class EventStream:
    """Takes bytes as they come and returns the data of each event that they complete."""

    def __init__(self) -> None:
        """Begin a stream."""
        self._line = b""
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the events that these bytes complete.

        Raises:
            InputError: they are no server-sent events.
        """
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        *lines, self._line = (
            (self._line + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        )
        found = [event for line in lines if (event := self._take(line)) is not None]
        if len(self._line) + self._size > LONGEST_EVENT:
            raise InputError(f"an event of over {LONGEST_EVENT:,} bytes")
        return found

    def end(self) -> list[bytes]:
        """Return the event that the end of the stream completes, if its last line was cut short.

        Raises:
            InputError: the last line is of no event.
        """
        last, self._line = self._line, b""
        found = [self._take(last), self._take(b"")] if last else [self._take(b"")]
        return [event for event in found if event is not None]

    def _take(self, line: bytes) -> bytes | None:
        """Take a line; return an event's data at the empty line after it."""
        if not self._begun:
            line, self._begun = line.removeprefix(BOM), True
        if not line:
            data, self._data, self._size = self._data, [], 0
            return b"\n".join(data) if data else None
        name, _, value = line.partition(b":")
        if not name:
            return None
        if name not in FIELDS:
            raise InputError(f"a line of no event: {shown(line)}")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(line)
        return None


def shown(data: bytes) -> str:
    """Return the beginning of bytes that were not understood, as text fit for one line."""
    text = data[:SHOWN].decode("utf-8", "replace")
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return printable + ("…" if len(data) > SHOWN else "")
