"""Draw what decode and prefill spend their time on, side by side."""

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import PHASE_COLOURS
from whichwall.analyze.quantities import whole_percent
from whichwall.schemas.chart import PhaseShares
from whichwall.schemas.passes import DECODE, PREFILL

ROW_PX = 34
BAR_PX = 13


def phases(shares: pl.DataFrame, subtitle: list[str]) -> ChartType:
    """Draw `PhaseShares`: a bar for decode and one for prefill for each role, largest on top."""
    order = shares.get_column(PhaseShares.role).unique(maintain_order=True).to_list()
    names = list(PHASE_COLOURS)
    y = alt.Y(
        f"{PhaseShares.role}:N",
        sort=order,
        title=None,
        axis=alt.Axis(domain=False, ticks=False, labelFontSize=theme.TEXT_PX, labelPadding=8),
    )
    offset = alt.YOffset(f"{PhaseShares.phase}:N", sort=names)
    largest = float(shares.select(pl.col(PhaseShares.share).max()).item())
    x = alt.X(
        f"{PhaseShares.share}:Q",
        title="share of the phase's GPU time",
        axis=alt.Axis(tickCount=6, format=".0%"),
        # Room for the label of the longest bar.
        scale=alt.Scale(domain=[0, 1.22 * largest]),
    )
    base = alt.Chart(shares)
    bars = base.mark_bar(height=BAR_PX).encode(
        x=x,
        y=y,
        yOffset=offset,
        color=alt.Color(
            f"{PhaseShares.phase}:N",
            scale=alt.Scale(domain=names, range=list(PHASE_COLOURS.values())),
            legend=alt.Legend(title=None, orient="top"),
        ),
        tooltip=[
            alt.Tooltip(f"{PhaseShares.role}:N", title="role"),
            alt.Tooltip(f"{PhaseShares.phase}:N", title="phase"),
            alt.Tooltip(f"{PhaseShares.label}:N", title="share and time"),
        ],
    )
    labels = base.mark_text(style=theme.NOTE, align="left", baseline="middle", dx=6).encode(
        x=x, y=y, yOffset=offset, text=alt.Text(f"{PhaseShares.label}:N")
    )
    chart: ChartType = alt.layer(bars, labels).properties(
        width=theme.WIDTH,
        height=ROW_PX * len(order),
        title=alt.TitleParams(text=finding(shares), subtitle=subtitle),
    )
    return theme.themed(chart)


def finding(shares: pl.DataFrame) -> str:
    """State what each phase spends most on."""
    largest = {}
    for phase in (DECODE, PREFILL):
        rows = shares.filter(pl.col(PhaseShares.phase) == phase)
        top = rows.sort(PhaseShares.share, descending=True, maintain_order=True)
        role, share = top.select(PhaseShares.role, PhaseShares.share).row(0)
        largest[phase] = f"{role} ({whole_percent(share)})"
    return f"Decode spends most on {largest[DECODE]}, prefill on {largest[PREFILL]}"
