"""Exact nanoseconds from the decimal microseconds of a trace, never through a float."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64s = npt.NDArray[np.int64]

MICROSECONDS = pa.decimal128(22, 3)  # its unscaled integer is nanoseconds
INT64_MIN = np.iinfo(np.int64).min
INT64_MAX = np.iinfo(np.int64).max
# An epoch time in ns is near 1.8e18; a time relative to the profiler's base stays under 8e15,
# as the base is renewed every 7,889,238 s.
EPOCH_FROM_NS = 10**18


def nanoseconds(texts: list[msgspec.Raw]) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """Return int64 ns for JSON numbers (or strings) of µs, and which of them are known.

    All three forms are exact: whole µs, µs with three decimals since the epoch, and the same
    relative to a base. A number beyond int64 becomes the last one in it, which is no time that any
    clock shows. What is no number is marked unknown.
    """
    try:
        values = joined(texts).cast(MICROSECONDS)
    except pa.ArrowInvalid:
        return _one_by_one([bytes(t) for t in texts])
    if not len(values):
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    halves = np.frombuffer(memoryview(values.buffers()[1]), np.int64)  # type: ignore[arg-type]
    halves = halves[: 2 * len(values)].reshape(-1, 2)
    low, high = halves[:, 0], halves[:, 1]
    beyond = np.where(high < 0, INT64_MIN, INT64_MAX)
    return np.where(high == (low >> 63), low, beyond), np.ones(len(values), np.bool_)


def joined(texts: Sequence[msgspec.Raw | bytes]) -> "pa.StringArray":
    """Return texts as one array, many times faster than one by one; they may not be UTF-8."""
    offsets = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, texts), np.int32, len(texts)), out=offsets[1:])
    places, text = pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(texts))
    return pa.StringArray.from_buffers(len(texts), places, text)


def _one_by_one(raw: list[bytes]) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    values = [_exact(text) for text in raw]
    known = np.array([v is not None for v in values], np.bool_)
    return np.array([v or 0 for v in values], np.int64), known


def _exact(text: bytes) -> int | None:
    try:
        value = Decimal(text.decode("ascii").strip(' "'))
    except (InvalidOperation, UnicodeDecodeError):
        return None
    if not value.is_finite():
        return None
    within = max(min(value, Decimal(INT64_MAX)), Decimal(INT64_MIN))
    return max(min(int((within * 1000).to_integral_value()), INT64_MAX), INT64_MIN)


def since_epoch(ns: Int64s, base_ns: int | None) -> Int64s:
    """Return times since the epoch: relative ones are moved by the base, absolute ones stay."""
    return np.where(ns >= EPOCH_FROM_NS, ns, ns + np.int64(base_ns or 0))
