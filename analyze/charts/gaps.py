"""Draw how long the gaps are, weighted by the time they cost, and what caused them."""

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.causes import FINDING, legend_expression
from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import CAUSE_COLOURS
from whichwall.analyze.quantities import duration, whole_percent
from whichwall.schemas.chart import GapLengths
from whichwall.schemas.gaps import CAUSES

HEIGHT = 220
# A bar with a smaller part of the idle time is read off the axis.
LABELLED_PERCENT = 3.0
# White space between bars, as a share of a bin; bins are even on the logarithmic axis.
_NARROW = 1.012

_SHARE, _LENGTH = "share", "length"


def gaps(lengths: pl.DataFrame, median_us: float | None, subtitle: list[str]) -> ChartType:
    """Draw `GapLengths` on a logarithmic axis; `median_us` marks the median gap."""
    layers = [_bars(lengths), _totals(lengths)]
    if median_us is not None:
        layers.append(_median(median_us))
        layers.append(_median_note(median_us))
    chart: ChartType = alt.layer(*layers).properties(
        width=theme.WIDTH,
        height=HEIGHT,
        title=alt.TitleParams(text=finding(lengths), subtitle=subtitle),
    )
    return theme.themed(chart)


def finding(lengths: pl.DataFrame) -> str:
    """State which cause holds most of the idle time."""
    total = pl.col(GapLengths.total_ns)
    cause, share = (
        lengths.group_by(GapLengths.cause)
        .agg(total.sum())
        .select(GapLengths.cause, total / total.sum())
        .sort(GapLengths.total_ns, GapLengths.cause, descending=[True, False])
        .row(0)
    )
    return f"{whole_percent(share)} of the GPU's idle time {FINDING[cause]}"


def _x(field: str, lengths: pl.DataFrame) -> alt.X:
    ends = lengths.select(pl.col(GapLengths.from_us).min(), pl.col(GapLengths.to_us).max())
    low, high = ends.row(0)
    return alt.X(
        f"{field}:Q",
        title="length of a gap, µs (logarithmic)",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(grid=False, format=",~r", tickCount=8, labelFlush=False),
    )


def _bars(lengths: pl.DataFrame) -> alt.Chart:
    rows = lengths.with_columns(
        (pl.col(GapLengths.from_us) * _NARROW),
        (pl.col(GapLengths.to_us) / _NARROW),
        (pl.col(GapLengths.high) - pl.col(GapLengths.low)).alias(_SHARE),
        pl.col(GapLengths.total_ns).map_elements(duration, return_dtype=pl.String).alias(_LENGTH),
    ).drop(GapLengths.total_ns)
    met = set(rows.get_column(GapLengths.cause))
    bars: alt.Chart = (
        alt.Chart(rows)
        .mark_rect()
        .encode(
            x=_x(GapLengths.from_us, lengths),
            x2=GapLengths.to_us,
            y=alt.Y(f"{GapLengths.low}:Q", title="% of all idle time", axis=alt.Axis(tickCount=5)),
            y2=GapLengths.high,
            color=alt.Color(
                f"{GapLengths.cause}:N",
                scale=alt.Scale(domain=list(CAUSES), range=[CAUSE_COLOURS[c] for c in CAUSES]),
                legend=alt.Legend(
                    title=None,
                    values=[cause for cause in CAUSES if cause in met],
                    orient="bottom",
                    columns=6,
                    labelExpr=legend_expression(),
                ),
            ),
            tooltip=[
                alt.Tooltip(f"{GapLengths.cause}:N", title="cause"),
                alt.Tooltip(f"{GapLengths.count}:Q", title="gaps", format=","),
                alt.Tooltip(f"{_LENGTH}:N", title="idle"),
                alt.Tooltip(f"{_SHARE}:Q", title="% of all idle time", format=".1f"),
            ],
        )
    )
    return bars


def _totals(lengths: pl.DataFrame) -> alt.Chart:
    rounded = pl.col(GapLengths.high).round(0).cast(pl.Int64)
    rows = (
        lengths.group_by(GapLengths.bin, maintain_order=True)
        .agg(
            (pl.col(GapLengths.from_us) * pl.col(GapLengths.to_us)).sqrt().first(),
            pl.col(GapLengths.high).max(),
        )
        .filter(pl.col(GapLengths.high) >= LABELLED_PERCENT)
        .with_columns(pl.format("{} %", rounded).alias(_SHARE))
    )
    labels: alt.Chart = (
        alt.Chart(rows)
        .mark_text(style=theme.LABEL, baseline="bottom", dy=-4)
        .encode(
            x=alt.X(f"{GapLengths.from_us}:Q"),
            y=alt.Y(f"{GapLengths.high}:Q"),
            text=alt.Text(f"{_SHARE}:N"),
        )
    )
    return labels


def _median(median_us: float) -> alt.Chart:
    rule: alt.Chart = (
        alt.Chart(pl.DataFrame({GapLengths.from_us: [median_us]}))
        .mark_rule(style=theme.MARKER)
        .encode(x=alt.X(f"{GapLengths.from_us}:Q"))
    )
    return rule


def _median_note(median_us: float) -> alt.Chart:
    note: alt.Chart = (
        alt.Chart(pl.DataFrame({GapLengths.from_us: [median_us]}))
        .mark_text(
            style=theme.NOTE,
            text=f"median gap {duration(1000 * median_us)}",
            align="left",
            baseline="top",
            dx=5,
            dy=-14,
        )
        .encode(x=alt.X(f"{GapLengths.from_us}:Q"), y=alt.value(0))
    )
    return note
