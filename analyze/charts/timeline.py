"""Draw one step: what the host does, what the GPU does, and how long it waits in between."""

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.causes import LEGEND, legend_expression
from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import CALL, CAUSE_COLOURS, HOST, ROLE_COLOURS
from whichwall.analyze.names import short_name
from whichwall.analyze.quantities import duration
from whichwall.analyze.timeline import CALLS, IDLE, OPERATORS, Timeline
from whichwall.schemas.chart import BusyBins, Flows, Spans
from whichwall.schemas.gaps import CAUSES
from whichwall.schemas.roles import ROLES

HOST_LANE_PX, GPU_LANE_PX, STRETCH_LANE_PX = 34, 72, 30
# Between a lane and the next, as a share of the lane's height.
LANE_GAP = 0.12
# An average letter of an 11 px Arial, wide enough for DejaVu Sans, where Arial is missing.
LETTER_PX = 6.6
# Narrower than this, a mark that exists could not be seen.
LEAST_PX = 1.2
NAME_IN_TOOLTIP = 90

_LOW, _HIGH, _TEXT, _MIDDLE, _LENGTH, _Y = "low_y", "high_y", "text", "middle", "length", "y"


def timeline(data: Timeline, title: str, subtitle: list[str]) -> ChartType:
    """Draw the whole step as shares of bins, and below it one stretch of it in full."""
    chart: ChartType = (
        alt.vconcat(_overview(data), _stretch(data), spacing=34)
        .resolve_scale(color="shared")
        .properties(title=alt.TitleParams(text=title, subtitle=subtitle))
    )
    return theme.themed(chart)


def _overview(data: Timeline) -> alt.LayerChart:
    lanes = [n for n in (OPERATORS, CALLS) if n in data.host.get_column(BusyBins.lane).unique()]
    heights = [HOST_LANE_PX] * len(lanes) + [GPU_LANE_PX] * len(data.streams)
    lanes = [*lanes, *data.streams]
    tops = {name: float(sum(heights[:i])) for i, name in enumerate(lanes)}
    sizes = dict(zip(lanes, heights, strict=True))
    span_us = data.window.span_ns / 1000
    shared = _placed_bins(pl.concat([data.host, data.busy]), tops, sizes)
    chart = alt.layer(
        _stretch_shade(data, float(sum(heights))),
        _lane_lines(tops, sizes, span_us),
        alt.Chart(shared)
        .mark_rect()
        .encode(
            x=alt.X(
                f"{BusyBins.from_us}:Q",
                title="µs since the step's first GPU activity",
                scale=alt.Scale(domain=[0, span_us], nice=False),
                axis=alt.Axis(grid=False, tickCount=10),
            ),
            x2=f"{BusyBins.to_us}:Q",
            y=_y_axis(f"{_LOW}:Q", float(sum(heights))),
            y2=f"{_HIGH}:Q",
            color=_colour(data),
            tooltip=[
                alt.Tooltip(f"{BusyBins.key}:N", title="what"),
                alt.Tooltip(f"{BusyBins.from_us}:Q", title="from, µs", format=",.1f"),
                alt.Tooltip(f"{BusyBins.to_us}:Q", title="to, µs", format=",.1f"),
                alt.Tooltip(f"{_LENGTH}:Q", title="covered, µs", format=",.2f"),
            ],
        ),
        _lane_names(tops, sizes),
    )
    return chart.properties(width=theme.WIDTH, height=sum(heights))


def _placed_bins(
    bins: pl.DataFrame, tops: dict[str, float], sizes: dict[str, int]
) -> pl.DataFrame:
    """Give each part of a bin its pixels: lanes stand on their lower edge."""
    lane = pl.col(BusyBins.lane)
    floor = lane.replace_strict(
        {n: top + sizes[n] for n, top in tops.items()}, return_dtype=pl.Float64
    )
    tall = lane.replace_strict(
        {n: size * (1 - LANE_GAP) for n, size in sizes.items()}, return_dtype=pl.Float64
    )
    return bins.select(
        BusyBins.key,
        pl.col(BusyBins.from_us, BusyBins.to_us).round(3),
        (floor - tall * pl.col(BusyBins.low)).round(2).alias(_LOW),
        (floor - tall * pl.col(BusyBins.high)).round(2).alias(_HIGH),
        (pl.col(BusyBins.covered_ns) / 1000).alias(_LENGTH),
    )


def _stretch_shade(data: Timeline, height: float) -> alt.Chart:
    edges = pl.DataFrame({Spans.from_us: [_us(data, 0)], Spans.to_us: [_us(data, 1)]})
    shade: alt.Chart = (
        alt.Chart(edges)
        .mark_rect(style=theme.SHADE)
        .encode(
            x=alt.X(f"{Spans.from_us}:Q"),
            x2=f"{Spans.to_us}:Q",
            y=alt.value(0),
            y2=alt.value(height),
        )
    )
    return shade


def _us(data: Timeline, end: int) -> float:
    at = (data.stretch.start_ns, data.stretch.end_ns)[end]
    return (at - data.window.start_ns) / 1000


def _y_axis(field: str, height: float) -> alt.Y:
    scale = alt.Scale(domain=[0, height], range=[0, height], nice=False, zero=False)
    return alt.Y(field, axis=None, scale=scale)


def _lane_lines(tops: dict[str, float], sizes: dict[str, int], span_us: float) -> alt.Chart:
    rows = pl.DataFrame({_Y: [tops[n] + sizes[n] for n in tops]}, schema={_Y: pl.Float64})
    lines: alt.Chart = (
        alt.Chart(rows)
        .mark_rule(style=theme.OUTLINE, opacity=0.5)
        .encode(
            x=alt.datum(0, type="quantitative"),
            x2=alt.datum(span_us),
            y=alt.Y(f"{_Y}:Q", axis=None),
        )
    )
    return lines


def _lane_names(tops: dict[str, float], sizes: dict[str, int]) -> alt.Chart:
    rows = pl.DataFrame(
        {
            Spans.lane: [_lane_title(n) for n in tops],
            _Y: [tops[n] + sizes[n] * (1 + LANE_GAP) / 2 for n in tops],
        },
        schema={Spans.lane: pl.String, _Y: pl.Float64},
    )
    names: alt.Chart = (
        alt.Chart(rows)
        .mark_text(style=theme.LABEL, align="right", baseline="middle", dx=-10)
        .encode(
            x=alt.value(0),
            y=alt.Y(f"{_Y}:Q", axis=None),
            text=alt.Text(f"{Spans.lane}:N"),
        )
    )
    return names


def _lane_title(lane: str) -> str:
    return {OPERATORS: "CPU operators", CALLS: "launch calls"}.get(
        lane, lane if lane == IDLE else f"GPU {lane}"
    )


def _colour(data: Timeline) -> alt.Color:
    """Colour roles, causes and the host on one scale; the legend shows what occurs."""
    met = set(data.busy.get_column(BusyBins.key)) | set(data.marks.get_column(Spans.key))
    table = {OPERATORS: HOST, CALLS: CALL, **ROLE_COLOURS}
    table.update({_cause_key(c): CAUSE_COLOURS[c] for c in CAUSES})
    shown = [r for r in ROLES if r in met] + [_cause_key(c) for c in CAUSES if _cause_key(c) in met]
    return alt.Color(
        f"{Spans.key}:N",
        scale=alt.Scale(domain=list(table), range=list(table.values())),
        legend=alt.Legend(
            title=None, values=shown, orient="bottom", columns=6, labelExpr=legend_expression()
        ),
    )


def _cause_key(cause: str) -> str:
    return cause


def _stretch(data: Timeline) -> alt.LayerChart:
    raise NotImplementedError(LEGEND, duration, short_name, LETTER_PX, Flows)
