"""Named facts from the text around a trace's events; everything else there is left behind.

Top-level metadata can hold environment dumps with tokens, so nothing is carried over unnamed.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from whichwall.collect.kineto.source import Source
from whichwall.schemas.manifest import Gpu
from whichwall.schemas.table import LATEST_NS

# With what follows the digits, so that a number cut off by a block's end is not taken for whole.
BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*"?(\d{1,19})"?\s*[,}\r\n]')
RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*"rank"\s*:\s*"?(\d{1,6})')
WORLD = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*"world_size"\s*:\s*"?(\d{1,6})')
DISTRIBUTED = re.compile(rb'"distributedInfo"\s*:')
DEVICES = re.compile(rb'"deviceProperties"\s*:\s*(?=\[)')
VERSION = rb'"%s"\s*:\s*"?([\w.]{1,20})'
TAIL_BYTES = 1 << 18
BASE_OVERLAP = 64  # longer than the base's key and digits, so that a border cannot hide it


class Metadata(msgspec.Struct, frozen=True):
    """What the text around the events says, by named fields."""

    base_ns: int | None
    rank: int | None
    world_size: int | None
    distributed: bool
    gpus: list[Gpu]
    cuda_runtime: str | None
    cuda_driver: str | None
    cupti: str | None


def read_metadata(text: bytes) -> Metadata:
    """Read the named facts; whatever is broken or absent is null and costs nothing else."""
    return Metadata(
        base_ns=_base(text),
        rank=_number(RANK, text),
        world_size=_number(WORLD, text),
        distributed=DISTRIBUTED.search(text) is not None,
        gpus=_gpus(text),
        cuda_runtime=_version(b"cuda_runtime_version", text),
        cuda_driver=_version(b"cuda_driver_version", text),
        cupti=_version(b"cupti_version", text),
    )


def is_whole(head: bytes, tail: bytes) -> bool:
    """Tell whether the text around the events is legal JSON; logs written there may not be."""
    try:
        json.loads(head + b'"traceEvents":[]' + tail, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def find_base(blocks: Iterator[bytes]) -> int | None:
    """Return baseTimeNanoseconds from anywhere in a file: torch 2.4 to 2.7 write it last."""
    before = b""
    for block in blocks:
        text = before + block
        if BASE.search(text):
            return _base(text)
        before = text[-BASE_OVERLAP:]
    return None


def peek_rank(path: Path) -> int | None:
    """Return the rank that a file states before its events, or at its very end.

    Raises:
        InputError: the file cannot be read.
    """
    rank = _number(RANK, next(Source(path).blocks(), b""))
    return _number(RANK, Source(path).tail(TAIL_BYTES)) if rank is None else rank


def _base(text: bytes) -> int | None:
    """Return the base, if it is a time that 64 bits can hold together with what is added to it."""
    base = _number(BASE, text)
    return base if base is not None and base < LATEST_NS else None


def _number(pattern: re.Pattern[bytes], text: bytes) -> int | None:
    match = pattern.search(text)
    return int(match.group(1)) if match else None


def _version(key: bytes, text: bytes) -> str | None:
    match = re.search(VERSION % re.escape(key), text)
    return match.group(1).decode() if match else None


def _gpus(text: bytes) -> list[Gpu]:
    match = DEVICES.search(text)
    if match is None:
        return []
    try:
        listed, _ = json.JSONDecoder(strict=False).raw_decode(
            text.decode("utf-8", "replace"), len(text[: match.end()].decode("utf-8", "replace"))
        )
    except (ValueError, RecursionError):
        return []
    return [_gpu(entry) for entry in listed if isinstance(entry, dict)]


def _gpu(entry: dict[str, object]) -> Gpu:
    def whole(key: str) -> int | None:
        value = entry.get(key)
        return value if isinstance(value, int) else None

    major, minor = whole("computeMajor"), whole("computeMinor")
    return Gpu(
        name=str(entry.get("name", "")),
        ordinal=whole("id"),
        memory_bytes=whole("totalGlobalMem"),
        multiprocessors=whole("numSms"),
        compute_capability=None if major is None or minor is None else f"{major}.{minor}",
    )
