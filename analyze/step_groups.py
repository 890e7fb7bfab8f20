"""Put the steps of a run into groups of one phase, point and device, the one to judge by first."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

from whichwall.analyze.account import StepFacts
from whichwall.analyze.devices import role_totals
from whichwall.analyze.floor import floor_by_role
from whichwall.analyze.floors import Basis, Grounds, dtype_of, floor_of, node_idle_ns
from whichwall.analyze.groups import (
    FROM_PASSES,
    PHASES,
    Clean,
    clean_of,
    groups_of,
    traced_group,
    untraced_group,
)
from whichwall.analyze.operations import Operation, operations
from whichwall.analyze.role_rates import needed, with_rates
from whichwall.analyze.step_work import StepWork, step_work
from whichwall.analyze.steps import STEP
from whichwall.analyze.thresholds import LEAST_OF_FLOOR
from whichwall.analyze.trace import Trace
from whichwall.analyze.walls import ARITHMETIC, BYTES
from whichwall.schemas.marks import Marks
from whichwall.schemas.passes import CLEAN, DECODE
from whichwall.schemas.summary import StepGroup
from whichwall.schemas.timings import Timings
from whichwall.schemas.weights import dtype_bytes

SERIES = [Timings.point, Timings.rank, Timings.phase]
_MINE = "mine"


@dataclass(frozen=True)
class Judged:
    """A step group, with what its floor rests on and, where it was traced, what it holds."""

    group: StepGroup
    grounds: Grounds
    facts: StepFacts | None = None
    work: StepWork | None = None


def step_groups(
    trace: Trace, basis: Basis, option_ns: int | None, served: Mapping[int, Clean] | None = None
) -> list[Judged]:
    """Return the groups of a run, in the order in which they speak for it.

    Steps with GPU work go first; after them what was timed and not traced. Where GPU work lies in
    no step at all there are none, and the whole recording speaks. `served` has the decode step of
    a point as a client of a server timed it, for steps that were traced there.
    """
    traced = _in_order(_traced(trace, basis, option_ns, served or {}))
    if trace.activities.height and not traced:
        return []
    seen = {(one.group.point, one.group.rank, one.group.phase) for one in traced}
    return traced + _in_order(_untraced(trace, basis, option_ns, seen))


def is_below_floor(one: Judged) -> bool:
    """Tell whether a clean step is shorter than it can be."""
    step, floor = one.group.clean_step_ns_median, one.grounds.floor
    if step is None or floor is None or floor.floor_ns is None or floor.cached_weights:
        return False
    return step < LEAST_OF_FLOOR * floor.floor_ns


def _traced(
    trace: Trace, basis: Basis, option_ns: int | None, served: Mapping[int, Clean]
) -> list[Judged]:
    found = []
    for key, rows in groups_of(trace.steps):
        clean = clean_of(basis.timings, key.point, key.rank, key.phase, option_ns)
        if clean is None and key.phase == DECODE:
            clean = served.get(key.point)
        grounds = floor_of(basis, key.point, key.rank, key.phase)
        # Activities and roles go row by row, so one mask serves both.
        mine = _belongs_to(trace.activities, rows)
        own, own_roles = trace.activities.filter(mine), trace.roles.filter(mine)
        listed = _operations(basis, grounds)
        by_role = with_rates(
            role_totals(own, own_roles),
            needed(listed, context_known=grounds.context_known),
            rows.height,
        )
        group = traced_group(key, rows, trace.gaps, clean, grounds.floor, by_role)
        work = step_work(own, own_roles, rows.height)
        found.append(Judged(group, grounds, _facts(basis, group, grounds, listed, work), work))
    return found


def _operations(basis: Basis, grounds: Grounds) -> list[Operation]:
    """Return what one pass of a group does; nothing where that is not known."""
    floor, model = grounds.floor, basis.model
    dtype = dtype_of(basis.points, model, floor.point) if model and floor else None
    if model is None or floor is None or dtype is None:
        return []
    each = dtype_bytes(dtype)
    return operations(model, floor.batch, floor.tokens, floor.context_tokens, each, each)


def _facts(
    basis: Basis, group: StepGroup, grounds: Grounds, listed: list[Operation], work: StepWork
) -> StepFacts:
    """Return what the account of a traced step rests on."""
    measured = node_idle_ns(basis.ceilings)
    floor = grounds.floor
    gpu_ns = _clean_gpu_ns(basis, group) if group.clean_from == FROM_PASSES else None
    facts = StepFacts(gpu_ns=gpu_ns, graph_nodes=work.nodes, node_idle_ns=measured)
    if floor is None or floor.floor_ns is None or floor.bandwidth_gbps is None:
        return facts
    return replace(
        facts,
        floor_ns=floor.floor_ns,
        floor_of=BYTES if (floor.bytes_ns or 0) >= (floor.arithmetic_ns or 0) else ARITHMETIC,
        floor_by_role=floor_by_role(listed, floor.bandwidth_gbps, floor.tflops),
        cached_weights=floor.cached_weights,
    )


def _clean_gpu_ns(basis: Basis, group: StepGroup) -> int | None:
    """Return the clean pass between events on the GPU, null where none were recorded."""
    rows = basis.timings.filter(
        (pl.col(Timings.point) == group.point)
        & (pl.col(Timings.rank) == group.rank)
        & pl.col(Timings.phase).eq_missing(pl.lit(group.phase, pl.String))
        & (pl.col(Timings.stage) == CLEAN)
    )
    value = rows[Timings.gpu_ns_median].max()
    return value if isinstance(value, int) else None


def _untraced(
    trace: Trace, basis: Basis, option_ns: int | None, seen: set[tuple[int, int, str | None]]
) -> list[Judged]:
    """Return a group per timed series that was not seen to have GPU work."""
    found = []
    for point, rank, phase in basis.timings.select(SERIES).unique(maintain_order=True).iter_rows():
        if (point, rank, phase) in seen:
            continue
        clean = clean_of(basis.timings, point, rank, phase, option_ns)
        grounds = floor_of(basis, point, rank, phase)
        profiled = trace.marks.filter(
            (pl.col(Marks.point) == point)
            & (pl.col(Marks.rank) == rank)
            & (pl.col(Marks.phase) == phase)
        )
        group = untraced_group(point, rank, phase, profiled.height, clean, grounds.floor)
        found.append(Judged(group, grounds))
    return found


def _belongs_to(activities: pl.DataFrame, steps: pl.DataFrame) -> pl.Series:
    marked = steps.select(*STEP, pl.lit(value=True).alias(_MINE))
    joined = activities.select(STEP).join(
        marked, on=STEP, how="left", nulls_equal=True, maintain_order="left"
    )
    return joined[_MINE].fill_null(value=False)


def _in_order(groups: list[Judged]) -> list[Judged]:
    return sorted(groups, key=lambda one: _precedence(one.group))


def _precedence(group: StepGroup) -> tuple[int, int, int, int]:
    device = -1 if group.device is None else group.device
    return (group.point, PHASES.index(group.phase), group.rank, device)
