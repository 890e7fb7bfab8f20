import gzip
from collections.abc import Iterator
from pathlib import Path

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
