"""Sort gaps by length, and ask where the idle time lies: in many short or in few long ones."""

import polars as pl

from whichwall.analyze.medians import median
from whichwall.schemas.chart import GapLengths
from whichwall.schemas.gaps import CAUSES, Gaps

# Six bins a decade: neighbouring bars differ by a factor of 1.47.
BINS_PER_DECADE = 6
# log10(1000) comes out as 2.9999999999999996; no two lengths in whole ns are this close.
_ROUNDING = 1e-11
_US = 1000.0


def gap_lengths(gaps: pl.DataFrame) -> pl.DataFrame:
    """Return `GapLengths`: per bin of length and cause, its part of all idle time.

    Bins are even on a logarithmic axis, and no edge is 0. Parts of one bin are stacked in the
    order of `CAUSES`.
    """
    length = pl.col(Gaps.dur_ns)
    number = (length.log10() * BINS_PER_DECADE + _ROUNDING).floor().cast(pl.Int64)
    total = pl.col(GapLengths.total_ns)
    upper = total.cum_sum().over(GapLengths.bin)
    edge = pl.col(GapLengths.bin) / BINS_PER_DECADE
    return (
        gaps.filter(length > 0)
        .group_by(number.alias(GapLengths.bin), pl.col(Gaps.cause).alias(GapLengths.cause))
        .agg(
            length.sum().alias(GapLengths.total_ns),
            pl.len().cast(pl.Int64).alias(GapLengths.count),
        )
        .sort(
            GapLengths.bin,
            pl.col(GapLengths.cause).replace_strict(
                {cause: place for place, cause in enumerate(CAUSES)}, return_dtype=pl.Int32
            ),
        )
        .select(
            GapLengths.bin,
            GapLengths.cause,
            (pl.lit(10.0).pow(edge) / _US).alias(GapLengths.from_us),
            (pl.lit(10.0).pow(edge + 1 / BINS_PER_DECADE) / _US).alias(GapLengths.to_us),
            GapLengths.total_ns,
            GapLengths.count,
            (100 * (upper - total) / total.sum()).alias(GapLengths.low),
            (100 * upper / total.sum()).alias(GapLengths.high),
        )
    )


def median_gap_us(gaps: pl.DataFrame) -> float | None:
    """Return the median length of a gap in µs; null if there is none."""
    length = median(gaps.filter(pl.col(Gaps.dur_ns) > 0)[Gaps.dur_ns])
    return None if length is None else length / _US
