"""Draw how long tokens are waited for: a rising curve for each kind of wait."""

import math

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import SERIES_COLOURS
from whichwall.schemas.chart import WaitShares

WIDTH, HEIGHT = theme.WIDTH - 60, 260
MIDDLE = 0.5
LEAST_SPAN = 1.2  # of an axis on which all values are one
HEADROOM = 1.15


def waits(rows: pl.DataFrame, title: str, subtitle: list[str]) -> ChartType:
    """Draw `WaitShares`: the share of waits over their length on a logarithmic axis."""
    kinds = rows.get_column(WaitShares.kind).unique(maintain_order=True).to_list()
    colour = alt.Color(
        f"{WaitShares.kind}:N",
        scale=alt.Scale(domain=kinds, range=list(SERIES_COLOURS[: len(kinds)])),
        legend=alt.Legend(title=None, orient="top", symbolType="stroke"),
    )
    low, high = _ends(rows)
    x = alt.X(
        f"{WaitShares.wait_ms}:Q",
        title="wait, ms",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=_round(low, high), format=",~r", labelOverlap="greedy"),
    )
    y = alt.Y(
        f"{WaitShares.share}:Q",
        title="share of waits that were no longer",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(tickCount=5, format=".0%"),
    )
    half = alt.Chart(pl.DataFrame({WaitShares.share: [MIDDLE]})).mark_rule(style=theme.MARKER)
    curves = alt.Chart(rows).mark_line(interpolate="step-after", strokeWidth=2)
    # A kind that waited once has no curve, but a place.
    ends = alt.Chart(rows).mark_point(filled=True, size=18, opacity=1)
    tooltip = [
        alt.Tooltip(f"{WaitShares.kind}:N", title="wait"),
        alt.Tooltip(f"{WaitShares.wait_ms}:Q", title="ms", format=",.4~r"),
        alt.Tooltip(f"{WaitShares.share}:Q", title="no longer", format=".1%"),
    ]
    chart: ChartType = alt.layer(
        half.encode(y=y),
        curves.encode(x=x, y=y, color=colour),
        ends.encode(x=x, y=y, color=colour, tooltip=tooltip),
    ).properties(width=WIDTH, height=HEIGHT, title=alt.TitleParams(text=title, subtitle=subtitle))
    return theme.themed(chart)


def _ends(rows: pl.DataFrame) -> tuple[float, float]:
    values = rows.get_column(WaitShares.wait_ms).to_list()
    low, high = min(values), max(values)
    room = LEAST_SPAN if high / low < LEAST_SPAN else HEADROOM
    return low / room, high * room


def _round(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 of each power of ten between two values, or the ends if there are none."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    inside = [tick for tick in ticks if low <= tick <= high]
    return inside if len(inside) > 1 else [low, math.sqrt(low * high), high]
