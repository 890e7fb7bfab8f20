"""Say what a server gives: TTFT, TPOT, ITL, and tokens a second while all lanes are under way.

Definitions as serving benchmarks have them (vLLM's `bench serve`, genai-perf): TTFT is request to
first token, TPOT (last - first) / (n - 1) of one request, ITL the time between two chunks of one
stream that brought tokens. A closed loop of N lanes has N requests on their way from the moment the
last lane began until the first lane ended: rates are of that window alone.
"""

from dataclasses import dataclass

import polars as pl

from whichwall.analyze.medians import median_ns
from whichwall.analyze.thresholds import FEWEST_FOR_P99
from whichwall.schemas.completions import DONE, Completions
from whichwall.schemas.passes import CLEAN
from whichwall.schemas.points import Points
from whichwall.schemas.serving import Served, Waits
from whichwall.schemas.tokens import Tokens

NS_PER_S = 1e9
# Columns of `chunks`, `tpots` and `windows`.
AT, ITL, SHARE, FIRST, LAST, CHUNKS, TPOT, FROM, TO = (
    "arrived_ns", "itl_ns", "tokens_share", "first_ns", "last_ns", "chunks", "tpot_ns", "from_ns",
    "to_ns",
)  # fmt: skip
_KEY = [Completions.point, Completions.index]


def serving(points: pl.DataFrame, completions: pl.DataFrame, tokens: pl.DataFrame) -> list[Served]:
    """Return what each point of a served run gave, in order; none where no server was asked.

    Args:
        points: `Points`.
        completions: `Completions`, of which the clean ones count.
        tokens: `Tokens` of the same run.
    """
    if completions.is_empty():
        return []
    clean = completions.filter(pl.col(Completions.stage) == CLEAN)
    came = chunks(clean, tokens)
    return [
        _served(
            point,
            clean.filter(pl.col(Completions.point) == point[Points.point]),
            came.filter(pl.col(Tokens.point) == point[Points.point]),
        )
        for point in points.sort(Points.point).iter_rows(named=True)
    ]


def answered(completions: pl.DataFrame) -> pl.DataFrame:
    """Keep the requests that ended in done."""
    return completions.filter(pl.col(Completions.outcome) == DONE)


def chunks(completions: pl.DataFrame, tokens: pl.DataFrame) -> pl.DataFrame:
    """Return the chunks of answered requests, in order, with the wait before each.

    Adds to `Tokens` the visit and start of its request, `AT` (Unix epoch), `ITL` (since the chunk
    before; null for the first) and `SHARE`: its tokens, where they are not counted an equal share
    of the answer's, null where those are not known either.
    """
    asked = answered(completions).select(
        pl.col(Completions.point),
        pl.col(Completions.index).alias(Tokens.completion),
        pl.col(Completions.visit),
        pl.col(Completions.start_ns),
        pl.col(Completions.new_tokens),
    )
    mine = [Tokens.point, Tokens.completion]
    counted = pl.col(Tokens.tokens).null_count().over(mine) == 0
    return (
        tokens.join(asked, on=mine, how="inner")
        .sort([*mine, Tokens.index])
        .with_columns(
            (pl.col(Completions.start_ns) + pl.col(Tokens.at_ns)).alias(AT),
            pl.col(Tokens.at_ns).diff().over(mine).alias(ITL),
            pl.when(counted)
            .then(pl.col(Tokens.tokens).cast(pl.Float64))
            .otherwise(pl.col(Completions.new_tokens) / pl.len().over(mine))
            .alias(SHARE),
        )
    )


def waits(values: pl.Series) -> Waits | None:
    """Return median and percentiles, linear between values; null where there are none."""
    known = values.drop_nulls()
    if known.is_empty():
        return None

    def at(share: float) -> int:
        found = known.quantile(share, "linear")
        assert found is not None
        return round(found)

    enough = len(known) >= FEWEST_FOR_P99
    return Waits(len(known), at(0.5), at(0.1), at(0.9), at(0.99) if enough else None)


def tpots(done: pl.DataFrame, came: pl.DataFrame) -> pl.Series:
    """Return (last - first) / (n - 1) of each answered request whose tokens are counted, ns.

    One whose tokens came in a single chunk has no time between them.
    """
    mine = came.group_by(Tokens.point, Tokens.completion).agg(
        pl.col(Tokens.at_ns).min().alias(FIRST),
        pl.col(Tokens.at_ns).max().alias(LAST),
        pl.len().alias(CHUNKS),
    )
    several = (pl.col(CHUNKS) > 1) & (pl.col(Completions.new_tokens) > 1)
    tpot = (pl.col(LAST) - pl.col(FIRST)) / (pl.col(Completions.new_tokens) - 1)
    return (
        done.join(mine, left_on=_KEY, right_on=[Tokens.point, Tokens.completion], how="inner")
        .filter(several)
        .select(tpot.alias(TPOT))
        .to_series()
    )


def windows(clean: pl.DataFrame) -> pl.DataFrame:
    """Return a row per visit of a point: from when until when every lane was under way.

    From the last lane's first request to the end of that lane's last one which ended first; visits
    in which the lanes did not overlap have none.
    """
    end = pl.col(Completions.start_ns) + pl.col(Completions.total_ns)
    lanes = clean.group_by(Completions.visit, Completions.lane).agg(
        pl.col(Completions.start_ns).min().alias(FROM), end.max().alias(TO)
    )
    return (
        lanes.group_by(Completions.visit)
        .agg(pl.col(FROM).max(), pl.col(TO).min())
        .filter(pl.col(TO) > pl.col(FROM))
        .sort(Completions.visit)
    )


@dataclass(frozen=True)
class _Rates:
    """What came in the windows of a point; null: not known."""

    window_ns: int | None = None
    lanes_busy: float | None = None
    tokens_per_s: float | None = None
    requests_per_s: float | None = None


def _rates(clean: pl.DataFrame, came: pl.DataFrame) -> _Rates:
    spans = windows(clean)
    window_ns = int(spans.select((pl.col(TO) - pl.col(FROM)).sum()).item() or 0)
    if not window_ns:
        return _Rates()
    done = answered(clean).join(spans, on=Completions.visit, how="inner")
    end = pl.col(Completions.start_ns) + pl.col(Completions.total_ns)
    inside = pl.min_horizontal(end, TO) - pl.max_horizontal(Completions.start_ns, FROM)
    busy_ns = done.select(inside.clip(lower_bound=0).sum()).item() or 0
    ended = done.filter(end.is_between(FROM, TO)).height
    tokens = came.join(spans, on=Completions.visit, how="inner").filter(
        pl.col(AT).is_between(FROM, TO)
    )[SHARE]
    known = not tokens.null_count()
    return _Rates(
        window_ns,
        busy_ns / window_ns,
        float(tokens.sum()) * NS_PER_S / window_ns if known else None,
        ended * NS_PER_S / window_ns,
    )


def _per_chunk(came: pl.DataFrame) -> float | None:
    """Return tokens over chunks, where tokens are counted."""
    shares = came[SHARE]
    return None if shares.is_empty() or shares.null_count() else float(shares.sum()) / len(shares)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _served(point: dict[str, object], clean: pl.DataFrame, came: pl.DataFrame) -> Served:
    done = answered(clean)
    failed = clean.filter(pl.col(Completions.outcome) != DONE).sort(Completions.index)
    kinds = failed[Completions.outcome].value_counts(sort=True)
    firsts = failed.unique(Completions.outcome, keep="first", maintain_order=True)
    lanes = _whole(point[Points.batch])
    rates = _rates(clean, came)
    all_lanes = rates.tokens_per_s
    return Served(
        point=_whole(point[Points.point]) or 0,
        label=_text(point[Points.label]),
        lanes=lanes,
        prompt_tokens=_whole(point[Points.prompt_tokens]),
        new_tokens=_whole(point[Points.new_tokens]),
        outcome=str(point[Points.outcome]),
        reason=_text(point[Points.reason]),
        requests=clean.height,
        done=done.height,
        failures=dict(kinds.iter_rows()),
        reasons=dict(firsts.select(Completions.outcome, Completions.reason).iter_rows()),
        prompt_tokens_served=median_ns(done[Completions.prompt_tokens_served]),
        cached_tokens=median_ns(done[Completions.cached_tokens]),
        new_tokens_served=median_ns(done[Completions.new_tokens]),
        tokens_per_chunk=_per_chunk(came),
        ttft=waits(done[Completions.ttft_ns]),
        tpot=waits(tpots(done, came)),
        itl=waits(came[ITL]),
        total=waits(done[Completions.total_ns]),
        window_ns=rates.window_ns,
        lanes_busy=rates.lanes_busy,
        tokens_per_s=all_lanes,
        tokens_per_s_each=all_lanes / lanes if all_lanes is not None and lanes else None,
        requests_per_s=rates.requests_per_s,
    )
