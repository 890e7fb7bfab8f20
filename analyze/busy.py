"""Busy time: the union of activity intervals on one device; never the sum of durations."""

import polars as pl

from whichwall.schemas.activities import Activities
from whichwall.schemas.busy import Busy
from whichwall.schemas.kernels import KERNEL

DEVICE = [Activities.rank, Activities.device]
_REACHED = "reached_ns"


def reached_before(group: list[str]) -> pl.Expr:
    """Return the running maximum of ends before each row, null for the first of a group.

    Rows must be sorted by start within the group.
    """
    return pl.col(Activities.end_ns).cum_max().shift(1).over(group)


def busy(activities: pl.DataFrame) -> pl.DataFrame:
    """Return window, busy time and sums per device, as `Busy` with the device's columns before.

    Busy = sum over rows of end - max(start, ends so far), where that is positive. The window
    is first start to last end.
    """
    ordered = activities.sort([*DEVICE, Activities.start_ns, Activities.end_ns], nulls_last=True)
    is_kernel = pl.col(Activities.kind) == KERNEL
    start, end = pl.col(Activities.start_ns), pl.col(Activities.end_ns)
    new = end - pl.max_horizontal(start, pl.col(_REACHED).fill_null(start))
    return (
        ordered.with_columns(reached_before(DEVICE).alias(_REACHED))
        .group_by(DEVICE, maintain_order=True)
        .agg(
            (end.max() - start.min()).alias(Busy.window_ns),
            new.clip(lower_bound=0).sum().alias(Busy.busy_ns),
            pl.col(Activities.dur_ns).sum().alias(Busy.duration_sum_ns),
            pl.len().cast(pl.Int64).alias(Busy.activities),
            is_kernel.sum().cast(pl.Int64).alias(Busy.kernels),
            pl.col(Activities.dur_ns).filter(is_kernel).median().alias(Busy.kernel_median_ns),
        )
    )


def busy_without_communication(activities: pl.DataFrame) -> pl.DataFrame:
    """Return busy time of all but collectives, per device; a collective that waits is no work."""
    return busy(activities.filter(~pl.col(Activities.communication))).select(
        *DEVICE, pl.col(Busy.busy_ns).alias(Busy.busy_without_communication_ns)
    )
