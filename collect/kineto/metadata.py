"""Named facts from the text around a trace's events; everything else there is left behind.

Top-level metadata can hold environment dumps with tokens, so nothing is carried over unnamed.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from whichwall.collect.kineto.exact import EPOCH_FROM_NS
from whichwall.collect.kineto.source import Source
from whichwall.schemas.manifest import Gpu
from whichwall.schemas.table import LATEST_NS

# With what follows the digits, so that a number cut off by a block's end is not taken for whole.
BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*"?(\d{1,19})"?\s*[,}\r\n]')
DISTRIBUTED = re.compile(rb'"distributedInfo"\s*:\s*')
WORDS = {key: re.compile(rb'"%s"\s*:\s*"?(\d{1,6})' % key) for key in (b"rank", b"world_size")}
NESTED = re.compile(rb"\{[^{}]*\}|\[[^\[\]]*\]")  # process groups have ranks of their own
DEVICES = re.compile(rb'"deviceProperties"\s*:\s*(?=\[)')
VERSION = rb'"%s"\s*:\s*"?([\w.]{1,20})'
DISTRIBUTED_BYTES = 1 << 18  # groups of a thousand ranks take 5 kB each
GPUS_BYTES = 1 << 16  # 16 GPUs take 6 kB
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
        rank=_distributed(b"rank", text),
        world_size=_distributed(b"world_size", text),
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
        if (base := _base(text)) is not None:
            return base
        before = text[-BASE_OVERLAP:]
    return None


def peek_rank(path: Path, *, inflate: bool = True) -> int | None:
    """Return the rank that a file states before its events, or at its very end.

    The end of a gzip file takes inflating all of it: without `inflate` it is not looked at.

    Raises:
        InputError: the file cannot be read.
    """
    source = Source(path)
    rank = _distributed(b"rank", next(source.blocks(), b""))
    if rank is None and (inflate or not source.gzipped):
        rank = _distributed(b"rank", source.tail(TAIL_BYTES))
    return rank


def _distributed(key: bytes, text: bytes) -> int | None:
    """Return a number of distributedInfo's own, not one of the groups listed in it."""
    match = DISTRIBUTED.search(text)
    if match is None or text[match.end() : match.end() + 1] != b"{":
        return None
    own = text[match.end() + 1 : match.end() + DISTRIBUTED_BYTES]
    count = 1
    while count:
        own, count = NESTED.subn(b"null", own)
    return _number(WORDS[key], own.partition(b"}")[0])


def _base(text: bytes) -> int | None:
    """Return the first base that is a time of an epoch, which 64 bits can hold with what is added.

    A base of 0 is how a tool writes that it knows none; other tools have keys of the same name.
    """
    bases = (int(match.group(1)) for match in BASE.finditer(text))
    return next((base for base in bases if EPOCH_FROM_NS <= base < LATEST_NS), None)


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
    listing = text[match.end() : match.end() + GPUS_BYTES].decode("utf-8", "replace")
    try:
        listed, _ = json.JSONDecoder(strict=False).raw_decode(listing)
    except (ValueError, RecursionError):
        return []
    return [_gpu(entry) for entry in listed if isinstance(entry, dict)]


def _gpu(entry: dict[str, object]) -> Gpu:
    def whole(key: str) -> int | None:
        value = entry.get(key)
        return value if type(value) is int and 0 <= value < LATEST_NS else None

    major, minor = whole("computeMajor"), whole("computeMinor")
    return Gpu(
        name=name if isinstance(name := entry.get("name"), str) else "",
        ordinal=whole("id"),
        memory_bytes=whole("totalGlobalMem"),
        multiprocessors=whole("numSms"),
        compute_capability=None if major is None or minor is None else f"{major}.{minor}",
    )
