"""Draw what changes with what was varied: measured lines with their spread, floors dashed."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import SERIES_COLOURS
from whichwall.schemas.chart import Lines

WIDTH, HEIGHT = theme.WIDTH - 170, 300  # names of lines stand at the right
BAND_OPACITY = 0.18
# Measured values that differ by more than this are told apart on a logarithmic axis only.
LOGARITHMIC = 20
HEADROOM = 1.1
LABEL_PX = 16

_LABEL_Y = "label_y"


@dataclass(frozen=True)
class Axes:
    """What a picture of lines says around its lines."""

    x: str
    y: str
    doubling: bool = True  # values of x were doubled from one to the next
    mark: float | None = None  # a value of x to point at
    mark_says: str = ""


def lines(rows: pl.DataFrame, axes: Axes, title: str, subtitle: list[str]) -> ChartType:
    """Draw `Lines`, each named at its right end."""
    x, y = _x(rows, axes), _y(rows, axes)
    measured, floors = rows.filter(~pl.col(Lines.floor)), rows.filter(pl.col(Lines.floor))
    names = measured.get_column(Lines.series).unique(maintain_order=True).to_list()
    colour = alt.Color(
        f"{Lines.series}:N",
        scale=alt.Scale(domain=names, range=list(SERIES_COLOURS[: len(names)])),
        legend=None,
    )
    layers = _mark(axes, x) if axes.mark is not None else []
    band = measured.filter(pl.col(Lines.low).is_not_null() & pl.col(Lines.high).is_not_null())
    if band.height:
        layers.append(
            alt.Chart(band)
            .mark_area(opacity=BAND_OPACITY)
            .encode(x=x, y=y(Lines.low), y2=Lines.high, color=colour)
        )
    if floors.height:
        layers.append(
            alt.Chart(floors)
            .mark_line(style=theme.MARKER, strokeWidth=1.6)
            .encode(x=x, y=y(Lines.y), detail=f"{Lines.series}:N")
        )
    base = alt.Chart(measured)
    layers.append(base.mark_line(strokeWidth=2).encode(x=x, y=y(Lines.y), color=colour))
    layers.append(
        base.mark_point(filled=True, size=42, opacity=1).encode(
            x=x,
            y=y(Lines.y),
            color=colour,
            tooltip=[
                alt.Tooltip(f"{Lines.series}:N", title="line"),
                alt.Tooltip(f"{Lines.x}:Q", title=axes.x, format=",~r"),
                alt.Tooltip(f"{Lines.y}:Q", title=axes.y, format=",.4~r"),
            ],
        )
    )
    layers += _names(rows, y)
    chart: ChartType = alt.layer(*layers).properties(
        width=WIDTH, height=HEIGHT, title=alt.TitleParams(text=title, subtitle=subtitle)
    )
    return theme.themed(chart)


def _x(rows: pl.DataFrame, axes: Axes) -> alt.X:
    values = sorted(rows.get_column(Lines.x).unique())
    doubling = axes.doubling and values[0] > 0
    if doubling:
        scale = alt.Scale(type="log", base=2, domain=_wide(values), nice=False)
        axis = alt.Axis(values=values, format=",~r", grid=False, labelOverlap="greedy")
    else:
        scale = alt.Scale(nice=False, zero=False)
        axis = alt.Axis(tickCount=8, format=",~r", grid=False)
    return alt.X(f"{Lines.x}:Q", title=axes.x, scale=scale, axis=axis)


def _wide(values: list[float]) -> list[float]:
    """Return the ends of a logarithmic axis; a single value needs some room around it."""
    if values[0] < values[-1]:
        return [values[0], values[-1]]
    return [values[0] / 2, values[0] * 2]


def _logarithmic(rows: pl.DataFrame) -> bool:
    low, high = _ends(rows.filter(~pl.col(Lines.floor)).get_column(Lines.y))
    least, _ = _ends(rows.get_column(Lines.y))
    return least > 0 and high / low > LOGARITHMIC


def _y(rows: pl.DataFrame, axes: Axes) -> Callable[[str], alt.Y]:
    """Return the axis of what was measured, for a field."""
    kind: Literal["log", "linear"] = "log" if _logarithmic(rows) else "linear"
    low, high = _domain(rows)
    scale = alt.Scale(type=kind, domain=[low, high], nice=False)
    axis = alt.Axis(tickCount=6, format=",~r")
    if kind == "log":
        axis = alt.Axis(values=_round(low, high), format=",~r")
    return lambda field: alt.Y(f"{field}:Q", title=axes.y, scale=scale, axis=axis)


def _domain(rows: pl.DataFrame) -> tuple[float, float]:
    known = pl.concat([rows.get_column(c).drop_nulls() for c in (Lines.y, Lines.low, Lines.high)])
    low, high = _ends(known)
    if _logarithmic(rows):
        return low / HEADROOM, high * HEADROOM
    return 0.0, (high or 1.0) * HEADROOM


def _round(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 of each power of ten between two values."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= high]


def _ends(values: pl.Series) -> tuple[float, float]:
    found = values.to_list()
    return min(found), max(found)


def _mark(axes: Axes, x: alt.X) -> list[alt.Chart]:
    """Point at a value of x with a broken line and a word."""
    base = alt.Chart(pl.DataFrame({Lines.x: [float(axes.mark or 0)]})).encode(x=x)
    return [
        base.mark_rule(style=theme.MARKER),
        base.mark_text(
            style=theme.NOTE, text=axes.mark_says, align="left", baseline="top", dx=5, dy=2
        ).encode(y=alt.value(0)),
    ]


def _names(rows: pl.DataFrame, y: Callable[[str], alt.Y]) -> list[alt.Chart]:
    """Name each line beside its last point; names that would overlap are moved apart."""
    last = rows.sort(Lines.x).group_by(Lines.series, maintain_order=True).last()
    last = last.sort(Lines.y, descending=True, maintain_order=True)
    low, high = _domain(rows)
    logarithmic = _logarithmic(rows)
    per_px = (math.log(high / low) if logarithmic else high - low) / HEIGHT
    pixels: list[float] = []  # from the top
    for value in last.get_column(Lines.y):
        down = (math.log(high / value) if logarithmic else high - value) / per_px
        pixels.append(max(down, pixels[-1] + LABEL_PX if pixels else 0.0))
    over = max(0.0, pixels[-1] - HEIGHT)
    placed = [
        high / math.exp((px - over) * per_px) if logarithmic else high - (px - over) * per_px
        for px in pixels
    ]
    base = alt.Chart(last.with_columns(pl.Series(_LABEL_Y, placed, pl.Float64)))
    return [
        base.transform_filter(f"datum.{Lines.floor} == {str(floor).lower()}")
        .mark_text(style=style, align="left", baseline="middle")
        .encode(x=alt.value(WIDTH + 10), y=y(_LABEL_Y), text=alt.Text(f"{Lines.series}:N"))
        for floor, style in ((False, theme.STRONG), (True, theme.NOTE))
    ]
