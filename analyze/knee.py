"""Find where the steps of a sweep start to rise, by more than their own visits differ."""

import polars as pl

from whichwall.schemas.knee import LEAST_RISE, Knee, knee
from whichwall.schemas.sweep import Sweep


def knee_of(sweep: pl.DataFrame, varied: str, phase: str) -> Knee | None:
    """Return the knee of one phase over a column of `Sweep`; None where the step never rises."""
    rows = line_of(sweep, varied, phase)
    pairs = rows.select(varied, Sweep.step_ns).iter_rows()
    return knee(pairs, least_rise=max(LEAST_RISE, spread(rows)))


def line_of(sweep: pl.DataFrame, varied: str, phase: str) -> pl.DataFrame:
    """Return the rows of one phase that have both, what was varied first."""
    return sweep.filter(
        (pl.col(Sweep.phase) == phase) & pl.col(varied).is_not_null() & (pl.col(Sweep.step_ns) > 0)
    ).sort(varied, Sweep.point)


def spread(rows: pl.DataFrame) -> float:
    """Return how far the visits of a point lie apart, as a share of its step: the median point."""
    apart = (pl.col(Sweep.visit_ns_highest) - pl.col(Sweep.visit_ns_lowest)) / pl.col(Sweep.step_ns)
    found = rows.select(apart.median()).item()
    return float(found) if isinstance(found, (int, float)) else 0.0
