"""Reduce intervals on lanes to the share of each bin of time that they cover."""

from dataclasses import dataclass

import polars as pl

from whichwall.schemas.chart import BusyBins, LaneIntervals
from whichwall.schemas.roles import ROLES

# A plot is about 820 pixels wide: a bin of 5 pixels can still be told from its neighbour.
BINS = (180, 120, 80, 60, 40, 30, 20)
# Above this many marks an SVG grows beyond what a code host shows without delay.
MOST_MARKS = 1000

_US = 1000.0
_TOTAL = "total"


@dataclass(frozen=True)
class Window:
    """A stretch of one device's time, in Unix epoch ns."""

    point: int
    rank: int
    device: int | None
    start_ns: int
    end_ns: int

    @property
    def span_ns(self) -> int:
        """Length; at least 1, so that it can be divided by."""
        return max(1, self.end_ns - self.start_ns)


def few_bins(intervals: pl.DataFrame, window: Window, lanes: list[str]) -> pl.DataFrame:
    """Return the finest bins that stay within the bound on marks."""
    for bins in BINS:
        binned = busy_bins(intervals, window, bins, lanes)
        if binned.height <= MOST_MARKS:
            break
    return binned


def busy_bins(intervals: pl.DataFrame, window: Window, bins: int, lanes: list[str]) -> pl.DataFrame:
    """Return the share of each bin that each key covers, stacked in the order of `ROLES`.

    Where activities of a lane overlap, or several threads share it, a bin could be more than
    full: its parts are then scaled to fill it.
    """
    width = -(-window.span_ns // bins)
    number = pl.col(BusyBins.bin)
    start = (pl.col(LaneIntervals.start_ns) - window.start_ns).clip(0, window.span_ns)
    end = (pl.col(LaneIntervals.end_ns) - window.start_ns).clip(0, window.span_ns)
    order = {key: place for place, key in enumerate((*ROLES, *lanes))}
    covered = pl.col(BusyBins.covered_ns)
    within = [LaneIntervals.lane, BusyBins.bin]
    lane_order = {name: place for place, name in enumerate(lanes)}
    counted = (
        intervals.select(
            LaneIntervals.lane,
            LaneIntervals.key,
            start.alias(LaneIntervals.start_ns),
            end.alias(LaneIntervals.end_ns),
        )
        .filter(pl.col(LaneIntervals.end_ns) > pl.col(LaneIntervals.start_ns))
        .with_columns(
            pl.int_ranges(
                pl.col(LaneIntervals.start_ns) // width,
                (pl.col(LaneIntervals.end_ns) - 1) // width + 1,
            ).alias(BusyBins.bin)
        )
        .explode(BusyBins.bin)
        .with_columns(
            (
                pl.min_horizontal(LaneIntervals.end_ns, (number + 1) * width)
                - pl.max_horizontal(LaneIntervals.start_ns, number * width)
            ).alias(BusyBins.covered_ns)
        )
        .group_by(LaneIntervals.lane, BusyBins.bin, LaneIntervals.key)
        .agg(covered.sum())
        .sort(
            pl.col(LaneIntervals.lane).replace_strict(lane_order, return_dtype=pl.Int32),
            BusyBins.bin,
            pl.col(LaneIntervals.key).replace_strict(order, return_dtype=pl.Int32),
        )
        .with_columns(pl.max_horizontal(covered.sum().over(within), pl.lit(width)).alias(_TOTAL))
    )
    upper = covered.cum_sum().over(within)
    return counted.select(
        pl.col(LaneIntervals.lane).alias(BusyBins.lane),
        number,
        pl.col(LaneIntervals.key).alias(BusyBins.key),
        (number * width / _US).alias(BusyBins.from_us),
        (pl.min_horizontal((number + 1) * width, window.span_ns) / _US).alias(BusyBins.to_us),
        ((upper - covered) / pl.col(_TOTAL)).alias(BusyBins.low),
        (upper / pl.col(_TOTAL)).alias(BusyBins.high),
        covered,
    ).cast({BusyBins.covered_ns: pl.Int64})
