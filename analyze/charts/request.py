"""Draw one request from text to text: a bar for each way of making its tokens, stage by stage."""

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import REQUEST_COLOURS
from whichwall.analyze.quantities import duration
from whichwall.schemas.chart import RequestStages

WIDTH = theme.WIDTH - 40
ROW_PX, BAR_PX = 46, 26
ROOM = 1.12  # for the total behind the longest bar
NS_PER_MS = 1e6

_ODD, _TOTAL = "odd", "total"


def request(stages: pl.DataFrame, title: str, subtitle: list[str]) -> ChartType:
    """Draw `RequestStages`; every other step is paler, so that each can be seen."""
    loops = stages.get_column(RequestStages.loop).unique(maintain_order=True).to_list()
    shown = [
        name for name in REQUEST_COLOURS if name in set(stages.get_column(RequestStages.stage))
    ]
    y = alt.Y(
        f"{RequestStages.loop}:N",
        sort=loops,
        title=None,
        axis=alt.Axis(domain=False, ticks=False, labelFontSize=theme.TEXT_PX, labelPadding=8),
    )
    longest = float(stages.select(pl.col(RequestStages.to_ms).max()).item())
    scale = alt.Scale(domain=[0, longest * ROOM], nice=False)

    def x(field: str) -> alt.X:
        return alt.X(
            f"{field}:Q",
            title="ms since the request arrived",
            scale=scale,
            axis=alt.Axis(tickCount=8, format=",~r"),
        )

    odd = stages.with_columns((pl.col(RequestStages.number).fill_null(1) % 2 == 1).alias(_ODD))
    marks = (
        alt.Chart(odd)
        .mark_bar(height=BAR_PX)
        .encode(
            x=x(RequestStages.from_ms),
            x2=RequestStages.to_ms,
            y=y,
            color=alt.Color(
                f"{RequestStages.stage}:N",
                scale=alt.Scale(domain=shown, range=[REQUEST_COLOURS[name] for name in shown]),
                legend=alt.Legend(title=None, orient="top"),
            ),
            opacity=alt.Opacity(
                f"{_ODD}:N", scale=alt.Scale(domain=[True, False], range=[1, 0.7]), legend=None
            ),
            tooltip=[
                alt.Tooltip(f"{RequestStages.stage}:N", title="stage"),
                alt.Tooltip(f"{RequestStages.number}:Q", title="number"),
                alt.Tooltip(f"{RequestStages.from_ms}:Q", title="from, ms", format=",.3f"),
                alt.Tooltip(f"{RequestStages.to_ms}:Q", title="to, ms", format=",.3f"),
            ],
        )
    )
    ends = stages.group_by(RequestStages.loop, maintain_order=True).agg(
        pl.col(RequestStages.to_ms).max()
    )
    said = [duration(ms * NS_PER_MS) for ms in ends.get_column(RequestStages.to_ms)]
    totals = (
        alt.Chart(ends.with_columns(pl.Series(_TOTAL, said, pl.String)))
        .mark_text(style=theme.STRONG, align="left", baseline="middle", dx=7)
        .encode(x=x(RequestStages.to_ms), y=y, text=alt.Text(f"{_TOTAL}:N"))
    )
    chart: ChartType = alt.layer(marks, totals).properties(
        width=WIDTH,
        height=ROW_PX * len(loops),
        title=alt.TitleParams(text=title, subtitle=subtitle),
    )
    return theme.themed(chart)
