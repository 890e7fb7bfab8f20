"""Draw what the time went to, role by role."""

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import ROLE_COLOURS
from whichwall.analyze.quantities import whole_percent
from whichwall.schemas.chart import RoleTimes

ROW_PX = 22
# So many roles are named in the title.
NAMED = 3


def roles(times: pl.DataFrame, whose: str, axis: str, subtitle: list[str]) -> ChartType:
    """Draw `RoleTimes` as bars, the largest on top.

    `whose` time it is goes into the title, `axis` names the unit: µs, or µs per step.
    """
    order = times.get_column(RoleTimes.role).to_list()
    y = alt.Y(f"{RoleTimes.role}:N", sort=order, title=None, axis=_names())
    x = alt.X(
        f"{RoleTimes.time_us}:Q",
        title=axis,
        axis=alt.Axis(tickCount=6, format=",~r"),
        # Room for the label of the longest bar.
        scale=alt.Scale(domain=[0, 1.22 * float(times.select(RoleTimes.time_us).max().item())]),
    )
    base = alt.Chart(times)
    bars = base.mark_bar(height=ROW_PX * 0.68).encode(
        x=x,
        y=y,
        color=alt.Color(
            f"{RoleTimes.role}:N",
            scale=alt.Scale(domain=list(ROLE_COLOURS), range=list(ROLE_COLOURS.values())),
            legend=None,
        ),
        tooltip=[
            alt.Tooltip(f"{RoleTimes.role}:N", title="role"),
            alt.Tooltip(f"{RoleTimes.label}:N", title="time"),
            alt.Tooltip(f"{RoleTimes.kernels}:Q", title="kernels", format=",.1f"),
        ],
    )
    labels = base.mark_text(style=theme.LABEL, align="left", baseline="middle", dx=6).encode(
        x=x, y=y, text=alt.Text(f"{RoleTimes.label}:N")
    )
    chart: ChartType = alt.layer(bars, labels).properties(
        width=theme.WIDTH,
        height=ROW_PX * len(order),
        title=alt.TitleParams(text=finding(times, whose), subtitle=subtitle),
    )
    return theme.themed(chart)


def _names() -> alt.Axis:
    return alt.Axis(domain=False, ticks=False, labelFontSize=theme.TEXT_PX, labelPadding=8)


def finding(times: pl.DataFrame, whose: str) -> str:
    """State how much the largest roles take together."""
    first = times.head(NAMED)
    names = first.get_column(RoleTimes.role).to_list()
    share = whole_percent(first.select(pl.col(RoleTimes.share).sum()).item())
    if len(names) == 1:
        return f"{names[0]} takes {share} of {whose}"
    return f"{', '.join(names[:-1])} and {names[-1]} take {share} of {whose}"
