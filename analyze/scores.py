"""Put what would move a step beside what did: the same step of the run with that change made."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from whichwall.analyze.floor import floor
from whichwall.analyze.floors import Basis, dtype_of, node_idle_ns
from whichwall.analyze.moves import Changes, Stepped, moves
from whichwall.analyze.operations import operations
from whichwall.analyze.step_groups import Judged
from whichwall.schemas.engines import (
    COMPILE,
    COMPILE_REDUCE_OVERHEAD,
    CUDA_GRAPH,
    STATIC_CACHE,
)
from whichwall.schemas.model import Model
from whichwall.schemas.moves import BATCH, FUSED_ELEMENTWISE, FUSED_GRAPH, GRAPH, Move
from whichwall.schemas.points import Points
from whichwall.schemas.roles import SOFTMAX
from whichwall.schemas.summary import Floor
from whichwall.schemas.sweep import Sweep
from whichwall.schemas.weights import dtype_bytes

Row = Mapping[str, Any]
BATCHES = (2, 4, 8)
# Which engine makes a change, all else the same.
MADE_BY = {
    GRAPH: CUDA_GRAPH,
    FUSED_ELEMENTWISE: COMPILE,
    FUSED_GRAPH: COMPILE_REDUCE_OVERHEAD,
}
_SIZES = (Sweep.batch, Sweep.context_tokens, Sweep.prompt_tokens)
_SAME = (Sweep.phase, Sweep.dtype, Sweep.attention)


def scored_moves(
    basis: Basis, judged: list[Judged], static: Judged | None, rows: Iterable[Row]
) -> list[Move]:
    """Return the moves of the step that the verdict speaks of, scored by the points of the run.

    `static` is the same step kernel by kernel on a cache of fixed size, `rows` are those of
    `Sweep`. Nothing without a traced step.
    """
    if not judged or judged[0].work is None or not judged[0].group.kernels_median:
        return []
    one = judged[0]
    points = list(rows)
    own = _row_of(one, points)
    batches = {*BATCHES, *(row[Sweep.batch] for row in points if own and _alike(row, own, BATCH))}
    changes = _changes(basis, one, sorted(batch for batch in batches if batch))
    found = moves(stepped(one), stepped(static) if static else None, changes)
    return [_scored(move, own, points) for move in found]


def static_of(basis: Basis, judged: list[Judged], beside: list[Judged]) -> Judged | None:
    """Return the traced step of the first one's size on a cache of fixed size, if there is one.

    `beside` are steps that the run recorded of its own pass for the sake of its roles: they are of
    that size, though a trace alone does not tell.
    """
    if not judged:
        return None
    first = judged[0]
    fixed = basis.points.filter(pl.col(Points.engine) == STATIC_CACHE)[Points.point].to_list()
    others = [one for one in judged[1:] if _place(one) == _place(first)]
    others += [one for one in beside if one.group.phase == first.group.phase]
    return next(
        (
            one
            for one in others
            if one.work is not None and one.group.kernels_median and one.group.point in fixed
        ),
        None,
    )


def stepped(one: Judged) -> Stepped:
    """Return a traced step as predictions start from it."""
    group, work = one.group, one.work
    assert group.busy_ns_median is not None
    assert group.kernels_median is not None
    assert work is not None
    soft = [total for total in group.roles if total.role == SOFTMAX]
    return Stepped(
        busy_ns=group.busy_ns_median,
        kernels=group.kernels_median,
        step_ns=group.clean_step_ns_median,
        graph_nodes=work.nodes,
        spared_ns=work.spared_ns,
        spared_kernels=work.spared_kernels,
        softmax_ns=sum(total.busy_ns for total in soft) // group.count,
        softmax_kernels=sum(total.kernels for total in soft) // group.count,
    )


def _place(one: Judged) -> tuple[object, ...]:
    floor, group = one.grounds.floor, one.group
    sizes = (floor.batch, floor.tokens, floor.context_tokens) if floor else None
    return group.phase, group.rank, group.device, sizes


def _changes(basis: Basis, one: Judged, batches: list[int]) -> Changes:
    idle, found, model = node_idle_ns(basis.ceilings), one.grounds.floor, basis.model
    if found is None or found.floor_ns is None or found.cached_weights or model is None:
        return Changes(node_idle_ns=idle)
    dtype = dtype_of(basis.points, model, found.point)
    each = dtype_bytes(dtype) if dtype else 0
    at = _Floors(model, found, each)
    return Changes(
        node_idle_ns=idle,
        floor_ns=found.floor_ns,
        floor_half_ns=at.floor_ns(found.batch, each // 2) if each and each % 2 == 0 else None,
        floors_by_batch={
            batch: at.floor_ns(batch, each) for batch in batches if each and batch != found.batch
        },
    )


@dataclass(frozen=True)
class _Floors:
    """The floors of one pass with other batches and weights."""

    model: Model
    found: Floor
    cache_bytes: int

    def floor_ns(self, batch: int, weight_bytes: int) -> int:
        """Return the floor at the ceilings of the one that was found."""
        listed = operations(
            self.model, batch, self.found.tokens, self.found.context_tokens, weight_bytes,
            self.cache_bytes,
        )  # fmt: skip
        return floor(listed, self.found.bandwidth_gbps, self.found.tflops).floor_ns or 0


def _row_of(one: Judged, points: list[Row]) -> Row | None:
    key = (one.group.point, one.group.phase)
    return next((row for row in points if (row[Sweep.point], row[Sweep.phase]) == key), None)


def _scored(move: Move, own: Row | None, points: list[Row]) -> Move:
    made = _measured(move, own, points) if own else None
    if made is None:
        return move
    took = made[Sweep.step_ns]
    return msgspec.structs.replace(
        move,
        measured_ns=took,
        measured_by=_name(made, own),
        measured_busy_ns=made[Sweep.busy_ns],
        error=move.predicted_ns / took - 1 if move.predicted_ns is not None else None,
    )


def _name(made: Row, own: Row | None) -> str:
    if made is own:
        return "this step"
    return str(made[Sweep.label] or f"point {made[Sweep.point]}")


def _measured(move: Move, own: Row, points: list[Row]) -> Row | None:
    """Return the point that differs from the step by this change alone."""
    for row in points:
        if not row[Sweep.step_ns]:
            continue
        if move.name == BATCH:
            if row[Sweep.batch] == move.batch and _alike(row, own, BATCH):
                return row
        elif row[Sweep.engine] == MADE_BY.get(move.name) and _alike(row, own, Sweep.engine):
            return row
    return None


def _alike(row: Row, own: Row, but: str) -> bool:
    """Tell whether two points do the same but for their batch, or but for their engine."""
    names = [*_SAME, *_SIZES, Sweep.engine]
    return all(row[name] == own[name] for name in names if name != but)
