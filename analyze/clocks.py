"""Reduce samples and passes to what a chart of clocks and power can show."""

import polars as pl

from whichwall.analyze.sampled import HELD_BACK, POWER, REASONS
from whichwall.schemas.chart import Readings, StageBands
from whichwall.schemas.passes import Passes
from whichwall.schemas.run import frame
from whichwall.schemas.samples import Samples

# A plot is about 820 pixels wide; more points than this fall on the same pixel.
MOST_READINGS = 600
# More bands could not be told apart; a long sweep keeps its longest ones.
MOST_BANDS = 80
# Samples further apart than this many usual intervals are not joined by a line.
BREAK_INTERVALS = 5
# Bits of the driver's reasons that do not hold a working GPU back.
HARMLESS = sum(bit for bit, name in REASONS.items() if name not in HELD_BACK)

_S = 1e9
_RUN = "run"


def origin_ns(samples: pl.DataFrame, passes: pl.DataFrame) -> int:
    """Return the time that the chart counts from: the first sample or pass."""
    starts = [
        frame.get_column(name).min()
        for frame, name in ((samples, Samples.time_ns), (passes, Passes.start_ns))
    ]
    known = [start for start in starts if isinstance(start, int)]
    return min(known, default=0)


def one_gpu(samples: pl.DataFrame, gpu_uuid: str | None) -> pl.DataFrame:
    """Return the samples of one GPU: the one named, else the first met."""
    if samples.is_empty():
        return samples
    uuids = samples.get_column(Samples.gpu_uuid)
    chosen = gpu_uuid if gpu_uuid in uuids.unique().to_list() else uuids[0]
    return samples.filter(pl.col(Samples.gpu_uuid).eq_missing(pl.lit(chosen, pl.String)))


def power_column(samples: pl.DataFrame) -> str | None:
    """Return the power to show, the first of `POWER` that was read; null if there is none."""
    return next((name for name in POWER.values() if samples[name].drop_nulls().len()), None)


def readings(samples: pl.DataFrame, origin: int) -> pl.DataFrame:
    """Return `Readings` of one GPU's samples, averaged within bins where there are many."""
    power = power_column(samples)
    reasons = pl.col(Samples.throttle_reasons)
    named = samples.sort(Samples.time_ns).select(
        ((pl.col(Samples.time_ns) - origin) / _S).alias(Readings.time_s),
        Samples.sm_clock_mhz,
        (pl.col(power) if power else pl.lit(None, pl.Float64)).alias(Readings.power_w),
        Samples.power_limit_w,
        Samples.temperature_c,
        ((reasons & ~HARMLESS) != 0).alias(Readings.slowed),
    )
    step = pl.col(Readings.time_s).diff()
    late = (step > BREAK_INTERVALS * step.median()).fill_null(value=False)
    broken = named.with_columns(late.cum_sum().cast(pl.Int64).alias(Readings.segment))
    if broken.height > MOST_READINGS:
        broken = _averaged(broken)
    return broken.select(list(Readings.COLUMNS))


def _averaged(many: pl.DataFrame) -> pl.DataFrame:
    time = pl.col(Readings.time_s)
    width = (time.max() - time.min()) / MOST_READINGS
    means = [Readings.sm_clock_mhz, Readings.power_w, Readings.power_limit_w]
    return (
        many.group_by(
            ((time - time.min()) / width).floor().alias(_RUN),
            Readings.segment,
            maintain_order=True,
        )
        .agg(
            time.mean(),
            pl.col(*means, Readings.temperature_c).mean(),
            pl.col(Readings.slowed).any(ignore_nulls=False),
        )
        .sort(Readings.time_s)
    )


def stage_bands(passes: pl.DataFrame, origin: int) -> pl.DataFrame:
    """Return `StageBands`: passes of one stage after another become one band."""
    if passes.is_empty():
        return frame(StageBands, [])
    start = pl.col(Passes.start_ns)
    return (
        passes.sort(Passes.start_ns)
        .group_by(
            pl.col(Passes.stage).rle_id().alias(_RUN),
            pl.col(Passes.stage).alias(StageBands.stage),
            maintain_order=True,
        )
        .agg(
            ((start.min() - origin) / _S).alias(StageBands.from_s),
            (((start + pl.col(Passes.wall_ns)).max() - origin) / _S).alias(StageBands.to_s),
        )
        .drop(_RUN)
        .top_k(MOST_BANDS, by=pl.col(StageBands.to_s) - pl.col(StageBands.from_s))
        .sort(StageBands.from_s)
    )
