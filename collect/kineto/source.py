"""The bytes of a trace file: plain or gzip, told by content and not by name."""

import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO

from whichwall.schemas.errors import InputError, require_regular

BLOCK_BYTES = 4 << 20  # large enough to amortise a decode call, small enough to hold several
# What zlib returns at once: with more it takes half as long again, as memory is fetched anew.
PIECE_BYTES = 1 << 20
# What zlib is given at once. It hands back what it does not use, a copy: of a file of tiny members
# all of this for each.
READ_BYTES = 1 << 15
# Members of fewer bytes on average than any event takes are no trace, and millions take minutes.
FEW_MEMBERS, LEAST_MEMBER_BYTES = 10_000, 64
GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW = 31  # zlib's code for a gzip header with the largest window


class Source:
    """Read a file in blocks; `truncated` is set when a gzip stream stops early."""

    def __init__(self, path: Path) -> None:
        """Remember the path; nothing is read yet."""
        self.path = path
        self.truncated = False
        self.gzipped = False

    def blocks(self) -> Iterator[bytes]:
        """Yield decompressed blocks of about BLOCK_BYTES, from the start at each call.

        Raises:
            InputError: the file cannot be read.
        """
        held: list[bytes] = []
        size = 0
        for piece in self._pieces():
            held.append(piece)
            size += len(piece)
            if size >= BLOCK_BYTES:
                yield b"".join(held)
                held, size = [], 0
        if size:
            yield b"".join(held)

    def _pieces(self) -> Iterator[bytes]:
        """Yield what is read or inflated at once."""
        require_regular(self.path, "profiler trace")
        try:
            with self.path.open("rb") as file:
                self.gzipped = file.read(2) == GZIP_MAGIC
                file.seek(0)
                yield from self._inflate(file) if self.gzipped else _plain(file)
        except OSError as error:
            raise InputError(
                f"{self.path}: {error.strerror or error}; expected a readable profiler trace"
            ) from error

    def tail(self, size: int) -> bytes:
        """Return the last bytes: by a seek in a plain file, by reading through a gzip one.

        Raises:
            InputError: the file cannot be read.
        """
        pieces = self._pieces()
        text = next(pieces, b"")
        if not self.gzipped:
            return self._end_of_plain(size)
        for piece in pieces:
            text = piece if len(piece) >= size else text[-size:] + piece
        return text[-size:]

    def _end_of_plain(self, size: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(-min(size, self.path.stat().st_size), SEEK_END)
            return file.read(size)

    def _inflate(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield what is inflated of each member of the file, one after the other.

        Raises:
            InputError: the members are too many for what they hold.
        """
        inflater = zlib.decompressobj(GZIP_WINDOW)
        pending = b""
        members, inflated = 1, 0
        while True:
            if not pending and not (pending := file.read(READ_BYTES)):
                self.truncated = not inflater.eof
                return
            if inflater.eof:
                # Members of a gzip file follow one another; zeros may stand around them.
                if not (pending := pending.lstrip(b"\0")):
                    continue
                pending += file.read(1) if len(pending) == 1 else b""
                if not pending.startswith(GZIP_MAGIC):
                    return
                inflater = zlib.decompressobj(GZIP_WINDOW)
                self._refuse_tiny(members, inflated)
                members += 1
            before = inflater.copy()
            try:
                piece = inflater.decompress(pending, PIECE_BYTES)
            except zlib.error:
                self.truncated = True
                yield _sound_start(before, pending)
                return
            pending = inflater.unconsumed_tail or inflater.unused_data
            inflated += len(piece)
            if piece:
                yield piece

    def _refuse_tiny(self, members: int, inflated: int) -> None:
        if members > FEW_MEMBERS and inflated < members * LEAST_MEMBER_BYTES:
            raise InputError(
                f"{self.path}: its first {members} gzip members hold {inflated} bytes together; "
                "expected a profiler trace, compressed as a whole"
            )


def ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield blocks while the next one is read or inflated in a thread of its own."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = thread.submit(next, blocks, None)
            yield block


def _sound_start(inflater: "zlib._Decompress", pending: bytes) -> bytes:
    """Return what comes before the damage: zlib gives nothing of a piece that fails."""
    sound = bytearray()
    try:
        for at in range(len(pending)):
            sound += inflater.decompress(pending[at : at + 1])
    except zlib.error:
        pass
    return bytes(sound)


def _plain(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(BLOCK_BYTES):
        yield block
