"""Draw differences to both sides of nothing: less to the left, more to the right."""

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import SERIES_COLOURS
from whichwall.schemas.chart import Bars

ROW_PX, BAR_PX = 24, 16
WIDTH = theme.WIDTH - 120  # names stand at the left
LETTER_PX = 6.6


def differences(rows: pl.DataFrame, axis: str, title: str, subtitle: list[str]) -> ChartType:
    """Draw `Bars`, whose values may be below 0, in their order."""
    names = rows.get_column(Bars.name).to_list()
    reach = _reach(rows)
    x = alt.X(
        f"{Bars.value}:Q",
        title=axis,
        scale=alt.Scale(domain=[-reach, reach], nice=False),
        axis=alt.Axis(tickCount=7, format="+,~r"),
    )
    y = alt.Y(
        f"{Bars.name}:N",
        sort=names,
        title=None,
        axis=alt.Axis(
            domain=False, ticks=False, labelFontSize=theme.TEXT_PX, labelPadding=8, labelLimit=260
        ),
    )
    base = alt.Chart(rows).encode(x=x, y=y)
    less = f"datum.{Bars.value} < 0"
    bars = base.mark_bar(height=BAR_PX).encode(
        color=alt.condition(less, alt.value(SERIES_COLOURS[0]), alt.value(SERIES_COLOURS[1])),
        tooltip=[
            alt.Tooltip(f"{Bars.name}:N", title="what"),
            alt.Tooltip(f"{Bars.label}:N", title="difference"),
        ],
    )
    words = alt.Text(f"{Bars.label}:N")
    left = base.transform_filter(less).mark_text(
        style=theme.NOTE, align="right", baseline="middle", dx=-6
    )
    right = base.transform_filter(f"!({less})").mark_text(
        style=theme.NOTE, align="left", baseline="middle", dx=6
    )
    nothing = alt.Chart(pl.DataFrame({Bars.value: [0.0]})).mark_rule(style=theme.RULE).encode(x=x)
    chart: ChartType = alt.layer(
        bars, nothing, left.encode(text=words), right.encode(text=words)
    ).properties(
        width=WIDTH,
        height=ROW_PX * len(names),
        title=alt.TitleParams(text=title, subtitle=subtitle),
    )
    return theme.themed(chart)


def _reach(rows: pl.DataFrame) -> float:
    """Return how far the axis goes to each side, with room for the longest label."""
    most = float(rows.select(pl.col(Bars.value).abs().max()).item())
    letters = max(map(len, rows.get_column(Bars.label)))
    return (most or 1.0) / max(0.4, 1 - 2 * (letters * LETTER_PX + 8) / WIDTH)
