"""What the stopwatch says: steps before, under and after the profiler, TTFT and TPOT."""

import polars as pl

from whichwall.analyze.medians import median_ns
from whichwall.schemas.passes import CLEAN, DECODE, PREFILL, Passes
from whichwall.schemas.run import frame
from whichwall.schemas.timings import Timings

SERIES = [Passes.point, Passes.rank, Passes.phase, Passes.stage]
# Columns of `requests`.
BEGIN, FIRST, LAST, TOKENS = "begin_ns", "first_token_ns", "last_token_ns", "tokens"
_REQUEST = "request"


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
    """Return (last token - first token) / (n - 1), the median over clean requests."""
    found = requests(_clean(passes)).filter(pl.col(TOKENS) > 1)
    return median_ns(found.select(tpot()).to_series())


def tpot() -> pl.Expr:
    """Return (last token - first token) / (n - 1) of a row of `requests`."""
    return (pl.col(LAST) - pl.col(FIRST)) / (pl.col(TOKENS) - 1)


def requests(passes: pl.DataFrame) -> pl.DataFrame:
    """Return a row per request: a prefill and the decode steps that follow it in its visit.

    Its columns are point, rank and visit, `BEGIN`, `FIRST` and `LAST` (first and last token, ns)
    and `TOKENS`. Steps before the first prefill of a visit belong to no request.
    """
    end = pl.col(Passes.start_ns) + pl.col(Passes.wall_ns)
    is_prefill = pl.col(Passes.phase) == PREFILL
    visit = [Passes.point, Passes.rank, Passes.visit]
    return (
        passes.filter(pl.col(Passes.phase).is_in([PREFILL, DECODE]))
        .sort(Passes.start_ns, maintain_order=True)
        .with_columns(is_prefill.cast(pl.Int64).cum_sum().over(visit).alias(_REQUEST))
        .filter(pl.col(_REQUEST) > 0)
        .group_by([*visit, _REQUEST], maintain_order=True)
        .agg(
            pl.col(Passes.start_ns).min().alias(BEGIN),
            end.filter(is_prefill).max().alias(FIRST),
            end.max().alias(LAST),
            pl.len().cast(pl.Int64).alias(TOKENS),
        )
        .drop(_REQUEST)
    )


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
