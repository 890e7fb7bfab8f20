"""Draw clock, power and temperature over the stages of a run."""

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import STAGE_COLOURS, WARNING
from whichwall.schemas.chart import Readings, StageBands
from whichwall.schemas.passes import AFTER, CLEAN, PROFILED, WARMUP

PANEL_PX, LOW_PANEL_PX, STRIP_PX = 120, 80, 20
HEADROOM = 1.08
BAND_OPACITY = 0.16
LETTER_PX = 6.8
STAGES = (WARMUP, CLEAN, PROFILED, AFTER)

_MIDDLE, _FITS = "middle", "fits"
_PANELS = (
    (Readings.sm_clock_mhz, "SM clock, MHz", PANEL_PX),
    (Readings.power_w, "power, W", PANEL_PX),
    (Readings.temperature_c, "temperature, °C", LOW_PANEL_PX),
)


def clocks(
    readings: pl.DataFrame, bands: pl.DataFrame, title: str, subtitle: list[str]
) -> ChartType:
    """Draw `Readings` in a panel per quantity, with `StageBands` behind; null ones are left out.

    Samples in which the driver gave a reason for a lower clock are marked on the clock.
    """
    domain = _domain(readings, bands)
    known = [p for p in _PANELS if readings.get_column(p[0]).drop_nulls().len()]
    panels: list[ChartType] = []
    if bands.height:
        panels.append(_strip(bands, domain))
    for place, (column, name, height) in enumerate(known):
        last = place == len(known) - 1
        panels.append(_panel(readings, bands, column, name, height, domain, last=last))
    chart: ChartType = (
        alt.vconcat(*panels, spacing=12)
        .resolve_scale(color="independent")
        .properties(title=alt.TitleParams(text=title, subtitle=subtitle))
    )
    return theme.themed(chart)


def _domain(readings: pl.DataFrame, bands: pl.DataFrame) -> list[float]:
    ends = pl.concat(
        [
            readings.get_column(Readings.time_s),
            bands.get_column(StageBands.from_s),
            bands.get_column(StageBands.to_s),
        ]
    )
    ordered = ends.drop_nulls().sort()
    low, high = ordered[0], ordered[-1]
    return [round(low, 3), round(max(high, low + 1e-3), 3)]


def _x(field: str, domain: list[float], *, axis: bool) -> alt.X:
    title = "s since the first sample or pass"
    shown = alt.Axis(grid=False, tickCount=10, format=",~r", title=title)
    return alt.X(
        f"{field}:Q",
        scale=alt.Scale(domain=domain, nice=False),
        axis=shown if axis else None,
    )


def _stage_colour(legend: alt.Legend | None) -> alt.Color:
    return alt.Color(
        f"{StageBands.stage}:N",
        scale=alt.Scale(domain=list(STAGES), range=[STAGE_COLOURS[s] for s in STAGES]),
        legend=legend,
    )


def _strip(bands: pl.DataFrame, domain: list[float]) -> ChartType:
    """Name the stages in a strip; a legend takes over where a name does not fit."""
    length = pl.col(StageBands.to_s) - pl.col(StageBands.from_s)
    pixels = length / (domain[1] - domain[0]) * theme.WIDTH
    said = bands.with_columns(
        ((pl.col(StageBands.from_s) + pl.col(StageBands.to_s)) / 2).alias(_MIDDLE),
        (pl.col(StageBands.stage).str.len_chars() * LETTER_PX + 6 <= pixels).alias(_FITS),
    )
    met = set(bands.get_column(StageBands.stage))
    crowded = not said.get_column(_FITS).all()
    legend = alt.Legend(title="stage", values=[s for s in STAGES if s in met], orient="top")
    base = alt.Chart(said)
    strip: ChartType = alt.layer(
        base.mark_rect().encode(
            x=_x(StageBands.from_s, domain, axis=False),
            x2=StageBands.to_s,
            color=_stage_colour(legend if crowded else None),
        ),
        base.transform_filter(f"datum.{_FITS}")
        .mark_text(style=theme.ON_BRIGHT, baseline="middle")
        .encode(x=_x(_MIDDLE, domain, axis=False), text=alt.Text(f"{StageBands.stage}:N")),
    ).properties(width=theme.WIDTH, height=STRIP_PX)
    return strip


def _panel(
    readings: pl.DataFrame,
    bands: pl.DataFrame,
    column: str,
    name: str,
    height: int,
    domain: list[float],
    *,
    last: bool,
) -> ChartType:
    known = readings.filter(pl.col(column).is_not_null())
    top = _top(readings, column)
    y = alt.Y(
        f"{column}:Q",
        title=name,
        scale=alt.Scale(domain=[0, top * HEADROOM], nice=False),
        axis=alt.Axis(tickCount=4, format=",~r"),
    )
    line = (
        alt.Chart(known.select(Readings.time_s, Readings.segment, column))
        .mark_line(style=theme.LINE, interpolate="linear", strokeWidth=1.6)
        .encode(x=_x(Readings.time_s, domain, axis=last), y=y, detail=f"{Readings.segment}:N")
    )
    layers = [_bands(bands, domain, axis=last), line]
    if column == Readings.sm_clock_mhz:
        layers.append(_slowed(known, y, domain, axis=last))
    if column == Readings.power_w:
        layers += _limit(readings)
    panel: ChartType = alt.layer(*layers).properties(width=theme.WIDTH, height=height)
    return panel


def _top(readings: pl.DataFrame, column: str) -> float:
    """Return the upper end of a panel; the power limit belongs into it where it is known."""
    columns = [column, Readings.power_limit_w] if column == Readings.power_w else [column]
    highest = readings.select(pl.max_horizontal(pl.col(columns).max())).item()
    return max(float(highest), 1.0)


def _bands(bands: pl.DataFrame, domain: list[float], *, axis: bool) -> alt.Chart:
    drawn: alt.Chart = (
        alt.Chart(bands)
        .mark_rect(opacity=BAND_OPACITY)
        .encode(
            x=_x(StageBands.from_s, domain, axis=axis),
            x2=StageBands.to_s,
            color=_stage_colour(None),
        )
    )
    return drawn


def _slowed(known: pl.DataFrame, y: alt.Y, domain: list[float], *, axis: bool) -> alt.Chart:
    rows = known.filter(pl.col(Readings.slowed)).select(Readings.time_s, Readings.sm_clock_mhz)
    points: alt.Chart = (
        alt.Chart(rows)
        .mark_point(filled=True, size=16, color=WARNING, opacity=1)
        .encode(x=_x(Readings.time_s, domain, axis=axis), y=y)
    )
    return points


def _limit(readings: pl.DataFrame) -> list[alt.Chart]:
    """Draw the power limit, where it is known, as a broken line with its name."""
    limits = readings.get_column(Readings.power_limit_w).drop_nulls()
    if limits.is_empty():
        return []
    row = pl.DataFrame({Readings.power_limit_w: [limits[-1]]})
    base = alt.Chart(row).encode(y=alt.Y(f"{Readings.power_limit_w}:Q"))
    note = base.mark_text(
        style=theme.NOTE,
        text=f"limit {limits[-1]:,.0f} W",
        align="right",
        baseline="top",
        dy=4,
    ).encode(x=alt.value(theme.WIDTH - 6))
    return [base.mark_rule(style=theme.MARKER), note]
