"""Count what one traced step holds: nodes of graph replays, and kernels that fusing would spare.

Fusing is modelled by the trace alone: each run of neighbouring elementwise kernels becomes one
kernel, which takes as long as the longest of the run does now, since that one already reads and
writes a whole tensor. Kernels of the cache are no part of it: what they move has to be moved.
"""

from dataclasses import dataclass

import polars as pl

from whichwall.analyze.steps import STEP
from whichwall.schemas.activities import Activities
from whichwall.schemas.roles import ACTIVATION, MASK, NORM, RESIDUAL, ROPE, SOFTMAX, Roles

ELEMENTWISE = (NORM, ROPE, SOFTMAX, MASK, ACTIVATION, RESIDUAL)
_RUN, _FUSIBLE, _SUM, _LONGEST, _LENGTH = "run", "fusible", "sum_ns", "longest_ns", "length"


@dataclass(frozen=True)
class StepWork:
    """Means per traced step."""

    nodes: int  # activities launched by the replay of a graph
    spared_ns: int  # busy time that fusing elementwise kernels would spare
    spared_kernels: int


def step_work(activities: pl.DataFrame, roles: pl.DataFrame, steps: int) -> StepWork:
    """Return what a step holds; both frames are of `steps` steps, in order of their starts."""
    nodes = activities[Activities.graph_replay].sum() or 0
    runs = _runs(activities, roles)
    spared = runs.select(
        (pl.col(_SUM) - pl.col(_LONGEST)).sum(), (pl.col(_LENGTH).cast(pl.Int64) - 1).sum()
    ).row(0)
    return StepWork(round(nodes / steps), round(spared[0] / steps), round(spared[1] / steps))


def _runs(activities: pl.DataFrame, roles: pl.DataFrame) -> pl.DataFrame:
    """Return a row per run of neighbouring elementwise kernels inside one step."""
    rows = activities.select(*STEP, Activities.start_ns, Activities.dur_ns).with_columns(
        roles[Roles.role].is_in(list(ELEMENTWISE)).alias(_FUSIBLE)
    )
    begins = pl.col(_FUSIBLE).ne_missing(pl.col(_FUSIBLE).shift(1))
    return (
        rows.sort(*STEP, Activities.start_ns)
        .with_columns(begins.over(STEP).alias(_RUN))
        .with_columns(pl.col(_RUN).cum_sum().over(STEP))
        .filter(_FUSIBLE)
        .group_by(*STEP, _RUN)
        .agg(
            pl.col(Activities.dur_ns).sum().alias(_SUM),
            pl.col(Activities.dur_ns).max().alias(_LONGEST),
            pl.len().alias(_LENGTH),
        )
    )
