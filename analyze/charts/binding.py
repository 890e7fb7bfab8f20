"""Draw batch against context: what binds the floor of a decode step, and what was measured."""

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import WALL_COLOURS, is_bright
from whichwall.analyze.walls import ARITHMETIC, BYTES
from whichwall.schemas.chart import Binding

CELL_PX, ROW_PX, INSET_PX = 74, 38, 2
# Colours by the part of the floor that arithmetic binds: none, half, all.
COLOURS = (WALL_COLOURS[BYTES], "#eef0f2", WALL_COLOURS[ARITHMETIC])

_SHOWN, _STYLE = "shown", "words"


def binding(cells: pl.DataFrame, title: str, subtitle: list[str]) -> ChartType:
    """Draw `Binding`; a cell that does not fit in memory is left empty."""
    fits = cells.get_column(Binding.fits).fill_null(value=True)
    styles = [
        _style(share) if shown else theme.NOTE
        for share, shown in zip(cells.get_column(Binding.arithmetic_share), fits, strict=True)
    ]
    placed = cells.with_columns(fits.alias(_SHOWN), pl.Series(_STYLE, styles, pl.String))
    base = alt.Chart(placed)
    x = _axis(alt.X, cells, Binding.context_tokens, "tokens in the cache of each sequence")
    y = _axis(alt.Y, cells, Binding.batch, "sequences generating at once")
    boxes = (
        base.transform_filter(f"datum.{_SHOWN}")
        .mark_rect()
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                f"{Binding.arithmetic_share}:Q",
                scale=alt.Scale(domain=[0, 0.5, 1], range=list(COLOURS), interpolate="rgb"),
                legend=alt.Legend(
                    title="floor bound by arithmetic",
                    format="%",
                    values=[0, 0.25, 0.5, 0.75, 1],
                    orient="right",
                    gradientLength=140,
                    gradientOpacity=1,
                ),
            ),
            tooltip=[
                alt.Tooltip(f"{Binding.batch}:Q", title="batch"),
                alt.Tooltip(f"{Binding.context_tokens}:Q", title="context", format=","),
                alt.Tooltip(f"{Binding.floor_ms}:Q", title="floor, ms", format=",.3~r"),
                alt.Tooltip(f"{Binding.arithmetic_share}:Q", title="arithmetic", format=".0%"),
                alt.Tooltip(f"{Binding.measured}:N", title="measured wall"),
            ],
        )
    )
    rings = (
        base.transform_filter(f"isValid(datum.{Binding.measured})")
        .mark_rect(style=theme.LINE, filled=False, strokeWidth=2)
        .encode(x=x, y=y)
    )
    chart: ChartType = alt.layer(boxes, rings, *_words(base, x, y)).properties(
        width=cells.get_column(Binding.context_tokens).n_unique() * CELL_PX,
        height=cells.get_column(Binding.batch).n_unique() * ROW_PX,
        title=alt.TitleParams(text=title, subtitle=subtitle),
    )
    return theme.themed(chart)


def _style(share: float) -> str:
    """Return the style of words on the colour of a share."""
    half = min(int(2 * share), 1)
    low, high = COLOURS[half], COLOURS[half + 1]
    way = 2 * share - half
    mixed = [
        round(int(low[at : at + 2], 16) * (1 - way) + int(high[at : at + 2], 16) * way)
        for at in (1, 3, 5)
    ]
    return theme.ON_BRIGHT if is_bright("#" + bytes(mixed).hex()) else theme.ON_DARK


def _axis(kind: type[alt.X] | type[alt.Y], cells: pl.DataFrame, field: str, title: str) -> object:
    values = sorted(cells.get_column(field).unique())
    return kind(
        f"{field}:O",
        title=title,
        sort=values if kind is alt.X else values[::-1],
        scale=alt.Scale(paddingInner=0.04),
        axis=alt.Axis(labelAngle=0, format=",", domain=False, ticks=False),
    )


def _words(base: alt.Chart, x: object, y: object) -> list[alt.Chart]:
    """Write the floor into each cell, and under it the wall of a step measured there."""
    layers = []
    for style in (theme.NOTE, theme.ON_DARK, theme.ON_BRIGHT):
        chosen = base.transform_filter(f"datum.{_STYLE} == '{style}'")
        for field, dy, only in (
            (Binding.label, 0, f"!isValid(datum.{Binding.measured})"),
            (Binding.label, -7, f"isValid(datum.{Binding.measured})"),
            (Binding.measured, 8, f"isValid(datum.{Binding.measured})"),
        ):
            layers.append(
                chosen.transform_filter(only)
                .mark_text(style=style, baseline="middle", dy=dy)
                .encode(x=x, y=y, text=alt.Text(f"{field}:N"))
            )
    return layers
