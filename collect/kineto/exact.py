"""Exact nanoseconds from the decimal microseconds of a trace, never through a float."""

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
    relative to a base. Unreadable and out-of-range values are marked unknown.
    """
    raw = [bytes(t) for t in texts]
    try:
        values = pa.array(raw, pa.binary()).cast(pa.string()).cast(MICROSECONDS)
    except pa.ArrowInvalid:
        return _one_by_one(raw)
    if not len(values):
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    halves = np.frombuffer(memoryview(values.buffers()[1]), np.int64)  # type: ignore[arg-type]
    halves = halves[: 2 * len(values)].reshape(-1, 2)
    low, high = halves[:, 0], halves[:, 1]
    return low.copy(), high == (low >> 63)


def _one_by_one(raw: list[bytes]) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    values = [_exact(text) for text in raw]
    known = np.array([v is not None for v in values], np.bool_)
    return np.array([v or 0 for v in values], np.int64), known


def _exact(text: bytes) -> int | None:
    try:
        value = Decimal(text.decode("ascii").strip(' "'))
    except (InvalidOperation, UnicodeDecodeError):
        return None
    if not value.is_finite() or abs(value) > INT64_MAX:
        return None
    ns = int((value * 1000).to_integral_value())
    return ns if INT64_MIN <= ns <= INT64_MAX else None


def since_epoch(ns: Int64s, base_ns: int | None) -> Int64s:
    """Return times since the epoch: relative ones are moved by the base, absolute ones stay."""
    return np.where(ns >= EPOCH_FROM_NS, ns, ns + np.int64(base_ns or 0))
