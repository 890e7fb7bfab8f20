"""Draw a step from its floor to its measured time, a bar per part, each where the last ended."""

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import CALL, CAUSE_COLOURS, HOST, ROLE_COLOURS, WALL_COLOURS
from whichwall.analyze.waterfall import STEP
from whichwall.schemas import account
from whichwall.schemas.chart import Waterfall

WIDTH = theme.WIDTH - 150  # names stand at the left
ROW_PX, BAR_PX = 24, 15
LETTER_PX, GAP_PX = 6.6, 7

_COLOURS = {
    **ROLE_COLOURS,
    **CAUSE_COLOURS,
    **WALL_COLOURS,
    account.HOST: HOST,
    account.REMAINDER: WALL_COLOURS["kernels"],
    STEP: CALL,
}
_LEFT, _RIGHT, _NEXT = "left_ms", "right_ms", "next_name"


def waterfall(parts: pl.DataFrame, title: str, subtitle: list[str]) -> ChartType:
    """Draw `Waterfall`; thin lines lead from the end of each part to the next one's beginning."""
    names = parts.get_column(Waterfall.name).to_list()
    placed = parts.with_columns(
        pl.min_horizontal(Waterfall.from_ms, Waterfall.to_ms).alias(_LEFT),
        pl.max_horizontal(Waterfall.from_ms, Waterfall.to_ms).alias(_RIGHT),
        pl.col(Waterfall.name).shift(-1).alias(_NEXT),
    )
    scale = alt.Scale(domain=_domain(placed), nice=False)
    axis = alt.Axis(tickCount=8, format=",~r")
    order = alt.Scale(domain=names, paddingInner=0.3, paddingOuter=0.2)
    labels = alt.Axis(
        domain=False, ticks=False, labelFontSize=theme.TEXT_PX, labelPadding=8, labelLimit=260
    )
    y = alt.Y(f"{Waterfall.name}:N", sort=names, title=None, scale=order, axis=labels)

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title="ms", scale=scale, axis=axis)

    base = alt.Chart(placed).encode(y=y)
    keys = placed.get_column(Waterfall.key).unique(maintain_order=True).to_list()
    bars = base.mark_bar(height=BAR_PX).encode(
        x=x(_LEFT),
        x2=_RIGHT,
        color=alt.Color(
            f"{Waterfall.key}:N",
            scale=alt.Scale(domain=keys, range=[_COLOURS.get(key, HOST) for key in keys]),
            legend=None,
        ),
        tooltip=[
            alt.Tooltip(f"{Waterfall.name}:N", title="part"),
            alt.Tooltip(f"{Waterfall.label}:N", title="time"),
        ],
    )
    # The last part before the whole needs no line: the whole begins at 0.
    leads = (
        alt.Chart(placed.head(-1).filter(pl.col(_NEXT).is_not_null()))
        .mark_rule(style=theme.RULE)
        .encode(
            x=x(Waterfall.to_ms),
            y=alt.Y(f"{Waterfall.name}:N", sort=names, title=None, scale=order, axis=labels),
            y2=alt.Y2(f"{_NEXT}:N"),
        )
    )
    words = base.mark_text(style=theme.NOTE, align="left", baseline="middle", dx=GAP_PX).encode(
        x=x(_RIGHT), text=alt.Text(f"{Waterfall.label}:N")
    )
    chart: ChartType = alt.layer(leads, bars, words).properties(
        width=WIDTH,
        height=len(names) * ROW_PX,
        title=alt.TitleParams(text=title, subtitle=subtitle),
    )
    return theme.themed(chart)


def _domain(placed: pl.DataFrame) -> list[float]:
    """Return the ends of an axis on which the words behind each bar have room too."""
    rows = placed.select(_RIGHT, pl.col(Waterfall.label).str.len_chars()).iter_rows()
    tops = [end / max(0.25, 1 - (GAP_PX + letters * LETTER_PX) / WIDTH) for end, letters in rows]
    lows = placed.get_column(_LEFT).to_list()
    return [min(0.0, *lows), max(*tops, 1e-6)]
