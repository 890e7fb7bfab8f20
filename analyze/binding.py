"""Find what binds the floor of a decode step over batch and context: bytes or arithmetic."""

from collections.abc import Mapping, Sequence

import polars as pl

from whichwall.analyze.capacity import USABLE_SHARE, conversation_bytes
from whichwall.analyze.floor import FLOPS_PER_NS_OF_TFLOPS
from whichwall.analyze.operations import Operation, operations
from whichwall.analyze.quantities import duration
from whichwall.schemas.chart import Binding
from whichwall.schemas.model import Model
from whichwall.schemas.run import frame
from whichwall.schemas.weights import cache_numbers, parameters

BATCHES = tuple(2**power for power in range(0, 13, 2))
CONTEXTS = tuple(2**power for power in range(9, 18))
_MS = 1e6

Measured = Mapping[tuple[int, int], str]  # batch and context -> wall


def binding(
    model: Model,
    bandwidth_gbps: float,
    tflops: float,
    number_bytes: int,
    memory_bytes: int | None,
    measured: Measured,
) -> pl.DataFrame:
    """Return `Binding`: powers of batch and context, and those that were measured.

    Args:
        model: what decodes.
        bandwidth_gbps: of the card.
        tflops: of the card, in the type that it runs in.
        number_bytes: of one weight, and of one number in the cache.
        memory_bytes: of the card; null: not known.
        measured: the wall at each batch and context where one was told.
    """
    rows = [
        _row(model, batch, context, bandwidth_gbps, tflops, number_bytes)
        | {
            Binding.fits: _fits(model, batch, context, number_bytes, memory_bytes),
            Binding.measured: measured.get((batch, context)),
        }
        for batch in _with(BATCHES, [batch for batch, _ in measured])
        for context in _with(CONTEXTS, [context for _, context in measured])
    ]
    return frame(Binding, [row | {Binding.label: _label(row)} for row in rows])


def _with(plain: Sequence[int], measured: Sequence[int]) -> list[int]:
    return sorted({*plain, *measured})


def _row(
    model: Model, batch: int, context: int, gbps: float, tflops: float, number_bytes: int
) -> dict[str, object]:
    listed = operations(model, batch, 1, context, number_bytes, number_bytes)
    times = [_times(one, gbps, tflops) for one in listed]
    floor = sum(max(pair) for pair in times)
    bound = sum(work for read, work in times if work > read)
    return {
        Binding.batch: batch,
        Binding.context_tokens: context,
        Binding.floor_ms: floor / _MS,
        Binding.arithmetic_share: bound / floor if floor else 0.0,
    }


def _times(one: Operation, gbps: float, tflops: float) -> tuple[float, float]:
    """Return the ns in which an operation's bytes can be read and its arithmetic be done."""
    return one.count * one.bytes / gbps, one.count * one.flops / (tflops * FLOPS_PER_NS_OF_TFLOPS)


def _fits(
    model: Model, batch: int, context: int, number_bytes: int, memory_bytes: int | None
) -> bool | None:
    if memory_bytes is None:
        return None
    entry = cache_numbers(model) * number_bytes
    needed = parameters(model) * number_bytes + batch * conversation_bytes(model, entry, context)
    return needed <= memory_bytes * USABLE_SHARE


def _label(row: dict[str, object]) -> str:
    floor = row[Binding.floor_ms]
    assert isinstance(floor, float)
    return duration(floor * _MS)
