import gzip
from collections.abc import Iterator
from pathlib import Path
from zlib import decompressobj

import pytest

from whichwall.collect.kineto import source
from whichwall.collect.kineto.source import Source, ahead
from whichwall.schemas.errors import InputError

TEXT = bytes(range(256)) * 999


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(source, "PIECE_BYTES", 1000)


@pytest.mark.parametrize("written", [TEXT, gzip.compress(TEXT), gzip.compress(TEXT[:500]) * 3])
def test_blocks_are_the_whole_file_in_order(tmp_path: Path, written: bytes) -> None:
    path = tmp_path / "trace"
    path.write_bytes(written)
    whole = gzip.decompress(written) if written[:2] == b"\x1f\x8b" else written
    blocks = list(Source(path).blocks())
    assert b"".join(blocks) == whole
    assert all(4096 <= len(block) < 4096 + 1000 for block in blocks[:-1])


def test_zeros_around_members_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "trace.gz"
    member, zeros = gzip.compress(TEXT), bytes(source.READ_BYTES + 1)
    path.write_bytes(member + zeros + member + zeros)
    read = Source(path)
    assert b"".join(read.blocks()) == TEXT + TEXT
    assert not read.truncated


class Counted:
    """A decompressor of zlib's that counts the bytes that it is given."""

    given = 0

    def __init__(self, wbits: int) -> None:
        self.inner = decompressobj(wbits)

    def decompress(self, text: bytes, most: int) -> bytes:
        Counted.given += len(text)
        return self.inner.decompress(text, most)

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


def test_tiny_members_are_work_by_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlib.decompressobj", Counted)
    given = []
    for members in (source.FEW_MEMBERS // 2, source.FEW_MEMBERS):
        path = tmp_path / f"{members}.gz"
        path.write_bytes(gzip.compress(b"") * members)
        Counted.given = 0
        assert list(Source(path).blocks()) == []
        given.append(Counted.given)
    assert given[0] < given[1] < 2.1 * given[0]


def test_more_tiny_members_than_any_writer_makes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.gz"
    event = bytes(source.LEAST_MEMBER_BYTES)
    path.write_bytes(gzip.compress(event) * (source.FEW_MEMBERS + 2))
    assert sum(map(len, Source(path).blocks())) == len(event) * (source.FEW_MEMBERS + 2)
    path.write_bytes(gzip.compress(event[1:]) * (source.FEW_MEMBERS + 2))
    with pytest.raises(InputError, match="gzip members hold"):
        list(Source(path).blocks())


@pytest.mark.parametrize("written", [TEXT, gzip.compress(TEXT)])
@pytest.mark.parametrize("size", [1, 999, 1000, 5000, len(TEXT), len(TEXT) + 1])
def test_the_tail_is_the_end_of_the_file(tmp_path: Path, written: bytes, size: int) -> None:
    path = tmp_path / "trace"
    path.write_bytes(written)
    assert Source(path).tail(size) == TEXT[-size:]


def test_blocks_read_ahead_are_the_same_in_order(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(TEXT)
    assert list(ahead(Source(path).blocks())) == list(Source(path).blocks())


def test_a_failure_while_reading_ahead_comes_after_what_was_read() -> None:
    def failing() -> Iterator[bytes]:
        yield b"read"
        raise InputError("the disk is gone")

    blocks = ahead(failing())
    assert next(blocks) == b"read"
    with pytest.raises(InputError, match="the disk is gone"):
        next(blocks)


def test_reading_ahead_stops_when_nobody_reads_on() -> None:
    taken = []

    def endless() -> Iterator[bytes]:
        while True:
            taken.append(1)
            yield b"more"

    blocks = ahead(endless())
    next(blocks)
    del blocks
    assert len(taken) <= 3
