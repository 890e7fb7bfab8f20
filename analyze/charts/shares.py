"""Draw the clean step as one bar: how much of it each wall takes."""

from typing import Literal

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import WALL_COLOURS
from whichwall.analyze.step_shares import WORDS
from whichwall.schemas.chart import StepShares

BAR_PX, ABOVE_PX, ROW_PX, LINE_PX = 44, 46, 44, 17
# A part with this much of the bar has room for its words; a narrower one is labelled below.
ROOMY = 0.26
# Words that start further right than this would run out of the picture: they end there.
TURN = 0.55

Align = Literal["left", "right"]

_X, _Y, _LEFT, _ROW = "x", "y", "left", "row"


def shares(parts: pl.DataFrame, title: str, subtitle: list[str]) -> ChartType:
    """Draw `StepShares`; parts too narrow for their words get them below, a row each."""
    whole = float(parts.select(pl.col(StepShares.to_ms).max()).item())
    placed = _placed(parts, whole)
    rows = int(placed.select(pl.col(_ROW).max()).item())
    height = ABOVE_PX + BAR_PX + rows * ROW_PX + 8
    layers = [_leaders(placed, height), _bar(placed, whole)]
    sides: tuple[tuple[Align, pl.Expr], ...] = (
        ("left", pl.col(_LEFT)),
        ("right", ~pl.col(_LEFT)),
    )
    for align, chosen in sides:
        said = placed.filter(chosen)
        layers += [
            _words(said, StepShares.label, theme.STRONG, align, 0, height),
            _words(said, StepShares.amount, theme.LABEL, align, LINE_PX, height),
        ]
    chart: ChartType = alt.layer(*layers).properties(
        width=theme.WIDTH,
        height=height,
        title=alt.TitleParams(text=title, subtitle=subtitle),
    )
    return theme.themed(chart)


def _placed(parts: pl.DataFrame, whole: float) -> pl.DataFrame:
    """Decide where the words of each part stand: ms along the bar, pixels from the top."""
    row = pl.col(_ROW)
    below = ABOVE_PX + BAR_PX + ROW_PX * row - LINE_PX - 6
    start = pl.col(StepShares.from_ms)
    return parts.with_columns(pl.Series(_ROW, _rows(parts, whole), pl.Int64)).with_columns(
        ((row == 0) | (start < TURN * whole)).alias(_LEFT),
        pl.when(row > 0).then(StepShares.middle_ms).otherwise(start).alias(_X),
        pl.when(row > 0).then(below).otherwise(ABOVE_PX - LINE_PX - 10).cast(pl.Float64).alias(_Y),
    )


def _rows(parts: pl.DataFrame, whole: float) -> list[int]:
    """Return the row of each part's words: 0 above the bar, 1 and on below it, none overlapping."""
    rows: list[int] = []
    free: list[float] = []  # where the last words of each row below the bar end
    for start, end in parts.select(StepShares.from_ms, StepShares.to_ms).iter_rows():
        if end - start >= ROOMY * whole:
            rows.append(0)
            continue
        left = (start + end) / 2 - (0 if start < TURN * whole else ROOMY * whole)
        row = next((place for place, taken in enumerate(free) if taken <= left), len(free))
        free[row : row + 1] = [left + ROOMY * whole]
        rows.append(row + 1)
    return rows


def _pixels(field: str, height: float) -> alt.Y:
    scale = alt.Scale(domain=[0, height], range=[0, height], nice=False, zero=False)
    return alt.Y(f"{field}:Q", axis=None, scale=scale)


def _bar(placed: pl.DataFrame, whole: float) -> alt.Chart:
    bar: alt.Chart = (
        alt.Chart(placed)
        .mark_rect()
        .encode(
            x=alt.X(
                f"{StepShares.from_ms}:Q",
                title="ms of the clean step",
                scale=alt.Scale(domain=[0, whole], nice=False),
                axis=alt.Axis(grid=False, tickCount=8, format=",~r"),
            ),
            x2=StepShares.to_ms,
            y=alt.value(ABOVE_PX),
            y2=alt.value(ABOVE_PX + BAR_PX),
            color=alt.Color(
                f"{StepShares.wall}:N",
                scale=alt.Scale(domain=list(WORDS), range=[WALL_COLOURS[w] for w in WORDS]),
                legend=None,
            ),
            tooltip=[
                alt.Tooltip(f"{StepShares.label}:N", title="what"),
                alt.Tooltip(f"{StepShares.amount}:N", title="how much"),
            ],
        )
    )
    return bar


def _leaders(placed: pl.DataFrame, height: float) -> alt.Chart:
    """Lead from each narrow part down to its words."""
    lines: alt.Chart = (
        alt.Chart(placed.filter(pl.col(_ROW) > 0).with_columns(pl.col(_Y) + LINE_PX))
        .mark_rule(style=theme.RULE)
        .encode(x=alt.X(f"{_X}:Q"), y=_pixels(_Y, height), y2=alt.value(ABOVE_PX + BAR_PX))
    )
    return lines


def _words(
    said: pl.DataFrame, field: str, style: str, align: Align, down: int, height: float
) -> alt.Chart:
    dx = 6 if align == "left" else -6
    words: alt.Chart = (
        alt.Chart(said)
        .mark_text(style=style, align=align, baseline="middle", dx=dx, dy=down)
        .encode(x=alt.X(f"{_X}:Q"), y=_pixels(_Y, height), text=alt.Text(f"{field}:N"))
    )
    return words
