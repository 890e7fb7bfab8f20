"""Draw things side by side: a bar each with its spread and floor, and words where there is none."""

from dataclasses import dataclass

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import SERIES_COLOURS
from whichwall.schemas.chart import Bars

WIDTH = theme.WIDTH - 120  # names stand at the left
BAR_PX, GAP_PX, TICK_PX = 17, 15, 2
LONGEST_NAME_PX = 260
LETTER_PX = 6.6

_END = "end"


@dataclass(frozen=True)
class Scale:
    """The axis of bars: its name, and where it must at least reach."""

    title: str
    reach: float = 0.0
    line: float | None = None  # a value that all bars are compared with
    format: str = ",~r"


def bars(rows: pl.DataFrame, scale: Scale, title: str, subtitle: list[str]) -> ChartType:
    """Draw `Bars` in their order; several groups have a colour each and stand side by side."""
    names = rows.get_column(Bars.name).unique(maintain_order=True).to_list()
    groups = rows.get_column(Bars.group).unique(maintain_order=True).to_list()
    placed = rows.with_columns(
        pl.max_horizontal(Bars.value, Bars.high, Bars.floor, pl.lit(scale.line or 0.0)).alias(_END)
    )
    y = alt.Y(
        f"{Bars.name}:N",
        sort=names,
        title=None,
        scale=alt.Scale(paddingInner=0.25, paddingOuter=0.15),
        axis=alt.Axis(
            domain=False,
            ticks=False,
            labelFontSize=theme.TEXT_PX,
            labelPadding=8,
            labelLimit=LONGEST_NAME_PX,
        ),
    )
    offset = alt.YOffset(f"{Bars.group}:N", sort=groups)
    base = alt.Chart(placed).encode(y=y, yOffset=offset)
    x_axis = _axis(placed, scale)
    layers = [
        base.mark_bar(height=BAR_PX).encode(
            x=_x(Bars.value, x_axis, scale),
            color=alt.Color(
                f"{Bars.group}:N",
                scale=alt.Scale(domain=groups, range=list(SERIES_COLOURS[: len(groups)])),
                legend=alt.Legend(title=None, orient="top") if len(groups) > 1 else None,
            ),
            tooltip=[
                alt.Tooltip(f"{Bars.name}:N", title="what"),
                alt.Tooltip(f"{Bars.label}:N", title="value"),
            ],
        )
    ]
    if rows.get_column(Bars.low).drop_nulls().len():
        layers.append(
            base.transform_filter(f"isValid(datum.{Bars.low})")
            .mark_rule(style=theme.LINE)
            .encode(x=_x(Bars.low, x_axis, scale), x2=Bars.high)
        )
    if rows.get_column(Bars.floor).drop_nulls().len():
        layers.append(
            base.transform_filter(f"isValid(datum.{Bars.floor})")
            .mark_tick(style=theme.LINE, thickness=TICK_PX, height=BAR_PX + 6)
            .encode(x=_x(Bars.floor, x_axis, scale))
        )
    if scale.line is not None:
        line = alt.Chart(pl.DataFrame({Bars.value: [scale.line]}))
        layers.append(line.mark_rule(style=theme.MARKER).encode(x=_x(Bars.value, x_axis, scale)))
    layers.append(
        base.mark_text(style=theme.NOTE, align="left", baseline="middle", dx=7).encode(
            x=_x(_END, x_axis, scale), text=alt.Text(f"{Bars.label}:N")
        )
    )
    chart: ChartType = alt.layer(*layers).properties(
        width=WIDTH,
        height=len(names) * (len(groups) * BAR_PX + GAP_PX),
        title=alt.TitleParams(text=title, subtitle=subtitle),
    )
    return theme.themed(chart)


def _axis(placed: pl.DataFrame, scale: Scale) -> alt.Scale:
    """Return an axis on which the words behind each bar have room too."""
    ends = placed.select(_END, pl.col(Bars.label).str.len_chars()).iter_rows()
    # A label of n letters behind a bar of length v ends at v·W/top + n·letter <= W.
    tops = [end / max(0.25, 1 - (7 + letters * LETTER_PX) / WIDTH) for end, letters in ends if end]
    return alt.Scale(domain=[0, max([scale.reach, scale.line or 0.0, *tops]) or 1.0], nice=False)


def _x(field: str, axis: alt.Scale, scale: Scale) -> alt.X:
    return alt.X(
        f"{field}:Q",
        title=scale.title,
        scale=axis,
        axis=alt.Axis(tickCount=6, format=scale.format),
    )
