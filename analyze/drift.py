"""Compare the first steps of one long answer with its last: what a growing cache does to them."""

import polars as pl

from whichwall.schemas.experiments import Drift
from whichwall.schemas.passes import CLEAN, DECODE, PREFILL, Passes
from whichwall.schemas.points import LONG_GENERATION, Points

# Steps taken together: single ones differ by more than a drift.
BIN = 32
_ANSWER, _BIN, _MEAN = "answer", "bin", "mean_ns"
_FIRST, _LAST, _STEPS = "first_ns", "last_ns", "steps"
_ONE = [Passes.point, Passes.visit, _ANSWER]


def drift(points: pl.DataFrame, passes: pl.DataFrame) -> Drift | None:
    """Return the drift over the point of a long generation; null without two bins of steps in it.

    Means over the first and over the last `BIN` steps of each answer, and over whole bins from
    its first step on; of each the median over answers.
    """
    steps = _steps(points, passes)
    wall = pl.col(Passes.wall_ns)
    ends = (
        steps.group_by(_ONE, maintain_order=True)
        .agg(
            wall.head(BIN).mean().alias(_FIRST),
            wall.tail(BIN).mean().alias(_LAST),
            pl.len().alias(_STEPS),
        )
        .filter(pl.col(_STEPS) >= 2 * BIN)
    )
    if ends.is_empty():
        return None
    first, last, longest = ends.select(
        pl.col(_FIRST).median(), pl.col(_LAST).median(), pl.col(_STEPS).max()
    ).row(0)
    return Drift(
        steps=longest,
        bin=BIN,
        first_ns=round(first),
        last_ns=round(last),
        ratio=last / first,
        binned_ns=_binned(steps),
    )


def _binned(steps: pl.DataFrame) -> list[int]:
    """Return the mean of each whole bin of steps, the median over answers."""
    numbered = steps.with_columns((pl.int_range(pl.len()).over(_ONE) // BIN).alias(_BIN))
    means = (
        numbered.group_by([*_ONE, _BIN])
        .agg(pl.col(Passes.wall_ns).mean().alias(_MEAN), pl.len().alias(_STEPS))
        .filter(pl.col(_STEPS) == BIN)
        .group_by(_BIN)
        .agg(pl.col(_MEAN).median())
        .sort(_BIN)
    )
    return [round(mean) for mean in means[_MEAN]]


def _steps(points: pl.DataFrame, passes: pl.DataFrame) -> pl.DataFrame:
    """Return the clean decode steps of the long generation in order, each with its answer."""
    long = points.filter(pl.col(Points.label) == LONG_GENERATION)
    mine = passes.join(long.select(Points.point), on=Points.point, how="semi").filter(
        pl.col(Passes.stage) == CLEAN
    )
    # A prefill begins an answer, if there are several in a visit.
    begun = (pl.col(Passes.phase) == PREFILL).cast(pl.Int64).cum_sum()
    return (
        mine.filter(pl.col(Passes.rank) == pl.col(Passes.rank).min())
        .sort(Passes.start_ns, maintain_order=True)
        .with_columns(begun.over(Passes.point, Passes.visit).alias(_ANSWER))
        .filter(pl.col(Passes.phase) == DECODE)
    )
