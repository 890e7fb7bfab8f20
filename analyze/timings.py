"""What the stopwatch says: steps before, under and after the profiler, TTFT and TPOT."""

import polars as pl

from whichwall.analyze.medians import median_ns
from whichwall.schemas.passes import CLEAN, DECODE, PREFILL, Passes
from whichwall.schemas.run import frame
from whichwall.schemas.timings import Timings

SERIES = [Passes.point, Passes.rank, Passes.phase, Passes.stage]
_REQUEST, _FIRST, _LAST = "request", "first_token_ns", "last_token_ns"


def timings(passes: pl.DataFrame) -> pl.DataFrame:
    """Return a row per point, rank, phase and stage, as `Timings`."""
    if not passes.height:
        return frame(Timings, [])
    wall = pl.col(Passes.wall_ns)
    return (
        passes.group_by(SERIES)
        .agg(
            pl.len().cast(pl.Int64).alias(Timings.count),
            _whole(wall.median()).alias(Timings.wall_ns_median),
            _whole(wall.quantile(0.1, "linear")).alias(Timings.wall_ns_p10),
            _whole(wall.quantile(0.9, "linear")).alias(Timings.wall_ns_p90),
            _whole(pl.col(Passes.gpu_ns).median()).alias(Timings.gpu_ns_median),
            pl.col(Passes.batch).max().cast(pl.Int64),
            pl.col(Passes.tokens).median(),
            pl.col(Passes.context_tokens).median(),
            pl.col(Passes.start_ns).min(),
            (pl.col(Passes.start_ns) + wall).max().alias(Timings.end_ns),
        )
        .sort([Passes.point, Passes.rank, Timings.start_ns, Passes.phase])
        .select(list(Timings.COLUMNS))
    )


def ttft_ns(passes: pl.DataFrame) -> int | None:
    """Return the median clean prefill of the first point: request to first token."""
    prefills = _clean(passes).filter(pl.col(Passes.phase) == PREFILL)
    return median_ns(prefills[Passes.wall_ns])


def tpot_ns(passes: pl.DataFrame) -> int | None:
    """Return (last token - first token) / (n - 1), the median over clean requests.

    A request is a prefill and the decode steps that follow it; n is its number of tokens.
    """
    clean = _clean(passes).sort(Passes.start_ns)
    is_decode = pl.col(Passes.phase) == DECODE
    requests = (
        clean.with_columns((~is_decode).cum_sum().alias(_REQUEST))
        .group_by(_REQUEST)
        .agg(
            (pl.col(Passes.start_ns) + pl.col(Passes.wall_ns))
            .filter(~is_decode)
            .max()
            .alias(_FIRST),
            (pl.col(Passes.start_ns) + pl.col(Passes.wall_ns)).filter(is_decode).max().alias(_LAST),
            is_decode.sum().alias(Timings.count),
        )
        .filter((pl.col(Timings.count) > 0) & pl.col(_FIRST).is_not_null())
    )
    each = requests.select((pl.col(_LAST) - pl.col(_FIRST)) / pl.col(Timings.count))
    return median_ns(each.to_series())


def _clean(passes: pl.DataFrame) -> pl.DataFrame:
    """Return the clean passes of the first point on its first rank."""
    return first_place(passes.filter(pl.col(Passes.stage) == CLEAN))


def first_place(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the first point on its first rank, in order."""
    place = [Passes.point, Passes.rank]
    first = rows.select(place).sort(place).head(1)
    return rows.join(first, on=place, how="semi", maintain_order="left")


def _whole(value: pl.Expr) -> pl.Expr:
    return value.round().cast(pl.Int64)
