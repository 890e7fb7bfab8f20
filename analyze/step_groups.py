"""Put the steps of a run into groups of one phase, point and device, the one to judge by first."""

from dataclasses import dataclass

import polars as pl

from whichwall.analyze.devices import attributed_share, role_totals
from whichwall.analyze.floors import Grounds, floor_of
from whichwall.analyze.groups import PHASES, clean_of, groups_of, traced_group, untraced_group
from whichwall.analyze.trace import Trace
from whichwall.schemas.marks import Marks
from whichwall.schemas.run import Run
from whichwall.schemas.steps import Steps
from whichwall.schemas.summary import StepGroup
from whichwall.schemas.timings import Timings

STEP = [Steps.point, Steps.rank, Steps.device, Steps.step]
SERIES = [Timings.point, Timings.rank, Timings.phase]
_MINE = "mine"


@dataclass(frozen=True)
class Judged:
    """A step group, with what its floor rests on."""

    group: StepGroup
    grounds: Grounds


def step_groups(run: Run, trace: Trace, timed: pl.DataFrame, option_ns: int | None) -> list[Judged]:
    """Return the groups of a run, in the order in which they speak for it."""
    make = _traced if trace.activities.height else _untraced
    return sorted(make(run, trace, timed, option_ns), key=lambda one: _precedence(one.group))


def _traced(run: Run, trace: Trace, timed: pl.DataFrame, option_ns: int | None) -> list[Judged]:
    found = []
    for key, rows in groups_of(trace.steps):
        clean = clean_of(timed, key.point, key.rank, key.phase, option_ns)
        grounds = floor_of(run, trace.model, timed, trace.steps, key.point, key.rank, key.phase)
        # Activities and roles go row by row, so one mask serves both.
        mine = _belongs_to(trace.activities, rows)
        by_role = role_totals(trace.activities.filter(mine), trace.roles.filter(mine))
        group = traced_group(
            key, rows, trace.gaps, clean, grounds.floor, by_role, attributed_share(by_role)
        )
        found.append(Judged(group, grounds))
    return found


def _untraced(run: Run, trace: Trace, timed: pl.DataFrame, option_ns: int | None) -> list[Judged]:
    """Return a group per timed series of a run without GPU work."""
    found = []
    for point, rank, phase in timed.select(SERIES).unique(maintain_order=True).iter_rows():
        clean = clean_of(timed, point, rank, phase, option_ns)
        grounds = floor_of(run, trace.model, timed, trace.steps, point, rank, phase)
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


def _precedence(group: StepGroup) -> tuple[int, int, int, int]:
    device = -1 if group.device is None else group.device
    return (group.point, PHASES.index(group.phase), group.rank, device)
