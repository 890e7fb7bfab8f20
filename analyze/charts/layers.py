"""Draw how long each role takes in each layer, as a map of layers and roles."""

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import HEAT
from whichwall.analyze.layer_times import by_layer
from whichwall.analyze.quantities import duration
from whichwall.schemas.chart import LayerTimes
from whichwall.schemas.roles import ROLES

ROW_PX = 22
# Numbers of layers that fit below the map.
MOST_TICKS = 40
# Layers that differ by less are said to be alike: kernels of one kind vary by a few percent.
ALIKE = 1.1
NS_PER_US = 1000


def layers(times: pl.DataFrame, unit: str, subtitle: list[str]) -> ChartType:
    """Draw `LayerTimes`, roles from top to bottom as a token meets them; `unit` names the scale."""
    roles = [role for role in ROLES if role in set(times.get_column(LayerTimes.role))]
    numbers = sorted(set(times.get_column(LayerTimes.layer)))
    every = -(-len(numbers) // MOST_TICKS)
    cells = (
        alt.Chart(times)
        .mark_rect()
        .encode(
            x=alt.X(
                f"{LayerTimes.layer}:O",
                title="layer",
                sort=numbers,
                axis=alt.Axis(
                    values=numbers[::every], labelAngle=0, ticks=False, domain=False, grid=False
                ),
            ),
            y=alt.Y(
                f"{LayerTimes.role}:N",
                sort=roles,
                title=None,
                axis=alt.Axis(
                    domain=False, ticks=False, labelFontSize=theme.TEXT_PX, labelPadding=8
                ),
            ),
            color=alt.Color(
                f"{LayerTimes.time_us}:Q",
                scale=alt.Scale(range=list(HEAT), domainMin=0, interpolate="lab"),
                legend=alt.Legend(
                    title=unit, gradientLength=160, gradientThickness=10, orient="right"
                ),
            ),
            tooltip=[
                alt.Tooltip(f"{LayerTimes.layer}:O", title="layer"),
                alt.Tooltip(f"{LayerTimes.role}:N", title="role"),
                alt.Tooltip(f"{LayerTimes.time_us}:Q", title=unit, format=",.2f"),
                alt.Tooltip(f"{LayerTimes.kernels}:Q", title="kernels", format=",.1f"),
            ],
        )
    )
    chart: ChartType = cells.properties(
        width=theme.WIDTH,
        height=ROW_PX * len(roles),
        title=alt.TitleParams(text=finding(times), subtitle=subtitle),
    )
    return theme.themed(chart)


def finding(times: pl.DataFrame) -> str:
    """State whether layers take the same time, and if not which takes most."""
    totals = by_layer(times)
    longest = totals.sort(LayerTimes.time_us, descending=True, maintain_order=True).row(0)
    median = float(totals.select(pl.col(LayerTimes.time_us).median()).item())
    usual = duration(median * NS_PER_US)
    if longest[1] <= ALIKE * median:
        return f"All {totals.height} layers take about the same: {usual} of GPU time each"
    return (
        f"Layer {longest[0]} takes {duration(longest[1] * NS_PER_US)} of GPU time, "
        f"the median layer {usual}"
    )
