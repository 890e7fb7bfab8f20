"""Draw one step: what the host does, what the GPU does, and how long it waits in between."""

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.causes import legend_expression
from whichwall.analyze.charts import theme
from whichwall.analyze.charts.lanes import Lanes
from whichwall.analyze.charts.palette import CALL, CAUSE_COLOURS, HOST, ROLE_COLOURS, is_bright
from whichwall.analyze.names import short_name
from whichwall.analyze.quantities import duration
from whichwall.analyze.timeline import CALLS, IDLE, OPERATORS, Timeline
from whichwall.schemas.chart import BusyBins, Flows, Spans
from whichwall.schemas.gaps import CAUSES
from whichwall.schemas.roles import ROLES

HOST_LANE_PX, GPU_LANE_PX, STRETCH_LANE_PX, IDLE_LANE_PX = 34, 74, 30, 20
# An average letter of the text inside marks, wide enough for DejaVu Sans where Arial is missing.
LETTER_PX = 6.4
# Narrower than this, a mark that exists could not be seen.
LEAST_PX = 1.4
NAME_IN_TOOLTIP = 90
# A stream with less than this share of the GPU's time gets a narrow lane.
MINOR_STREAM = 0.05
_US = 1000

_LOW, _HIGH, _TEXT, _MIDDLE, _COVERED, _Y, _Y2 = (
    "low_y", "high_y", "text", "middle", "covered", "y", "y2",
)  # fmt: skip
_X_TITLE = "µs since the first GPU activity"
_COLOURS = {OPERATORS: HOST, CALLS: CALL, **ROLE_COLOURS}


def timeline(data: Timeline, what: str, title: str, subtitle: list[str]) -> ChartType:
    """Draw the whole as shares of bins, and below it one stretch of it in full.

    `what` the whole is: a step, or the recording.
    """
    chart: ChartType = (
        alt.vconcat(_overview(data, what), _stretch(data), spacing=30)
        .resolve_scale(fill="independent", color="independent")
        .properties(title=alt.TitleParams(text=title, subtitle=subtitle))
    )
    return theme.themed(chart)


def _host_lanes(data: Timeline) -> list[str]:
    met = set(data.host.get_column(BusyBins.lane))
    return [name for name in (OPERATORS, CALLS) if name in met]


def _lanes(data: Timeline, *, stretch: bool) -> Lanes:
    met = set(data.marks.get_column(Spans.lane))
    if stretch:
        heights = {n: STRETCH_LANE_PX for n in (*_host_lanes(data), *data.streams) if n in met}
        heights[IDLE] = IDLE_LANE_PX
    else:
        heights = dict.fromkeys(_host_lanes(data), HOST_LANE_PX)
        heights |= {name: _stream_height(data, name) for name in data.streams}
    titles = {OPERATORS: "CPU operators", IDLE: "GPU idle"}
    return Lanes(heights, titles | {name: f"GPU {name}" for name in data.streams})


def _stream_height(data: Timeline, name: str) -> int:
    """Return a full lane for a stream that works, a narrow one for the odd copy."""
    mine = pl.col(BusyBins.covered_ns).filter(pl.col(BusyBins.lane) == name).sum()
    share = data.busy.select(mine / pl.col(BusyBins.covered_ns).sum()).item()
    return GPU_LANE_PX if share >= MINOR_STREAM else HOST_LANE_PX


def _overview(data: Timeline, what: str) -> ChartType:
    lanes = _lanes(data, stretch=False)
    parts = _placed_bins(pl.concat([data.host, data.busy]), lanes)
    tooltip = [
        alt.Tooltip(f"{BusyBins.key}:N", title="what"),
        alt.Tooltip(f"{BusyBins.from_us}:Q", title="from, µs", format=",.1f"),
        alt.Tooltip(f"{BusyBins.to_us}:Q", title="to, µs", format=",.1f"),
        alt.Tooltip(f"{_COVERED}:Q", title="of it covered, µs", format=",.2f"),
    ]
    x = _x(0, data.window.span_ns / _US, _X_TITLE)
    bars = alt.Chart(parts).mark_rect().encode(
        x=x,
        x2=BusyBins.to_us,
        y=lanes.y(_LOW),
        y2=_HIGH,
        fill=_fill(_role_legend(data)),
        tooltip=tooltip,
    )  # fmt: skip
    drawn: ChartType = alt.layer(
        _shade(data, lanes), bars, lanes.lines(), lanes.names(), _shade_note(data)
    ).properties(
        width=theme.WIDTH,
        height=lanes.height,
        title=_panel_title(f"The whole {what}: height is the share of the time that is covered"),
    )
    return drawn


def _panel_title(text: str) -> alt.TitleParams:
    return alt.TitleParams(
        text, fontSize=theme.TEXT_PX, fontWeight="normal", frame="group", offset=6
    )


def _x(start: float, end: float, title: str) -> alt.X:
    return alt.X(
        f"{Spans.from_us}:Q",
        title=title,
        scale=alt.Scale(domain=[round(start, 3), round(end, 3)], nice=False, zero=False),
        axis=alt.Axis(grid=False, tickCount=10, format=",~r"),
    )


def _placed_bins(bins: pl.DataFrame, lanes: Lanes) -> pl.DataFrame:
    """Give each part of a bin its pixels; a lane's parts stand on its line."""
    floor, full = lanes.floor(pl.col(BusyBins.lane)), lanes.full(pl.col(BusyBins.lane))
    return bins.select(
        BusyBins.key,
        pl.col(BusyBins.from_us, BusyBins.to_us).round(3),
        (floor - full * pl.col(BusyBins.low)).round(2).alias(_LOW),
        (floor - full * pl.col(BusyBins.high)).round(2).alias(_HIGH),
        (pl.col(BusyBins.covered_ns) / _US).alias(_COVERED),
    )


def _edges(data: Timeline) -> pl.DataFrame:
    start, end = (
        (at - data.window.start_ns) / _US for at in (data.stretch.start_ns, data.stretch.end_ns)
    )
    return pl.DataFrame({Spans.from_us: [start], Spans.to_us: [end]})


def _shade(data: Timeline, lanes: Lanes) -> alt.Chart:
    """Mark in the whole step the stretch that is drawn below."""
    shade: alt.Chart = (
        alt.Chart(_edges(data))
        .mark_rect(style=theme.SHADE)
        .encode(
            x=alt.X(f"{Spans.from_us}:Q"),
            x2=Spans.to_us,
            y=alt.value(0),
            y2=alt.value(lanes.height),
        )
    )
    return shade


def _shade_note(data: Timeline) -> alt.Chart:
    edges = _edges(data).with_columns(
        ((pl.col(Spans.from_us) + pl.col(Spans.to_us)) / 2).alias(_MIDDLE)
    )
    note: alt.Chart = (
        alt.Chart(edges)
        .mark_text(style=theme.NOTE, text="below", baseline="bottom", dy=-2)
        .encode(x=alt.X(f"{_MIDDLE}:Q"), y=alt.value(0))
    )
    return note


def _stretch(data: Timeline) -> ChartType:
    lanes = _lanes(data, stretch=True)
    start, end = _edges(data).row(0)
    marks = _placed_marks(data.marks, lanes, (end - start) / theme.WIDTH)
    idle = pl.col(Spans.lane) == IDLE
    tooltip = [
        alt.Tooltip(f"{Spans.name}:N", title="name"),
        alt.Tooltip(f"{Spans.key}:N", title="what"),
        alt.Tooltip(f"{_COVERED}:Q", title="µs", format=",.2f"),
        alt.Tooltip(f"{Spans.count}:Q", title="count"),
    ]
    base = {"x": _x(start, end, _X_TITLE), "x2": Spans.to_us, "y": lanes.y(_LOW), "y2": _HIGH}
    work = alt.Chart(marks.filter(~idle)).mark_rect().encode(
        **base, fill=_fill(None), tooltip=tooltip
    )  # fmt: skip
    waits = alt.Chart(marks.filter(idle)).mark_rect().encode(
        **base, color=_cause_colour(data), tooltip=tooltip
    )  # fmt: skip
    drawn: ChartType = alt.layer(
        lanes.lines(), _arrows(data, lanes), work, waits, *_inside(marks), lanes.names()
    ).properties(width=theme.WIDTH, height=lanes.height, title=_panel_title(_stretch_title(data)))
    return drawn


def _stretch_title(data: Timeline) -> str:
    activities = data.marks.filter(pl.col(Spans.lane).is_in(data.streams))
    how_many = activities.get_column(Spans.count).sum()
    what = "One stretch" if data.layer is None else f"Layer {data.layer}"
    return f"{what}: {how_many} activities in {duration(data.stretch.span_ns)}"


def _placed_marks(marks: pl.DataFrame, lanes: Lanes, pixel_us: float) -> pl.DataFrame:
    """Give each mark its pixels, at least a visible width, and the words that fit into it."""
    floor, full = lanes.floor(pl.col(Spans.lane)), lanes.full(pl.col(Spans.lane))
    least = pl.col(Spans.from_us) + LEAST_PX * pixel_us
    names = {name: short_name(name, NAME_IN_TOOLTIP) for name in marks.get_column(Spans.name)}
    placed = marks.filter(pl.col(Spans.lane).is_in(list(lanes.heights))).select(
        Spans.lane,
        Spans.key,
        Spans.count,
        pl.col(Spans.name).replace_strict(names, return_dtype=pl.String),
        pl.col(Spans.from_us).round(3),
        pl.max_horizontal(Spans.to_us, least).round(3).alias(Spans.to_us),
        floor.round(2).alias(_LOW),
        (floor - full).round(2).alias(_HIGH),
        pl.col(Spans.dur_us).round(3).alias(_COVERED),
    )
    return placed.with_columns(_words(pixel_us).alias(_TEXT))


def _words(pixel_us: float) -> pl.Expr:
    """Return what a mark says of itself; null where it does not fit."""
    name = pl.col(Spans.name).str.replace(r"^aten::", "")
    said = (
        pl.when(pl.col(Spans.lane) == OPERATORS)
        .then(name)
        .when(pl.col(Spans.lane).is_in([CALLS, IDLE]))
        .then(None)
        .otherwise(pl.col(Spans.key))
    )
    room = (pl.col(Spans.to_us) - pl.col(Spans.from_us)) / pixel_us
    # Operators merged into one mark have different names; activities share the role they show.
    one = (pl.col(Spans.count) == 1) | (pl.col(Spans.lane) != OPERATORS)
    fits = one & (said.str.len_chars() * LETTER_PX + 4 <= room)
    return pl.when(fits).then(said)


def _inside(marks: pl.DataFrame) -> list[alt.Chart]:
    """Write into the marks that have room, dark on bright ones and white on dark ones."""
    bright = [key for key, colour in _COLOURS.items() if is_bright(colour)]
    said = marks.filter(pl.col(_TEXT).is_not_null()).with_columns(
        ((pl.col(Spans.from_us) + pl.col(Spans.to_us)) / 2).alias(_MIDDLE),
        ((pl.col(_LOW) + pl.col(_HIGH)) / 2).alias(_Y),
    )
    on_bright = pl.col(Spans.key).is_in(bright)
    layers = []
    for style, chosen in ((theme.ON_BRIGHT, on_bright), (theme.ON_DARK, ~on_bright)):
        layers.append(
            alt.Chart(said.filter(chosen).select(_MIDDLE, _Y, _TEXT))
            .mark_text(style=style, baseline="middle")
            .encode(
                x=alt.X(f"{_MIDDLE}:Q"),
                y=alt.Y(f"{_Y}:Q", axis=None),
                text=alt.Text(f"{_TEXT}:N"),
            )
        )
    return layers


def _arrows(data: Timeline, lanes: Lanes) -> alt.Chart:
    """Draw from the end of each launch call to the start of what it launched."""
    known = data.flows if CALLS in lanes.heights else data.flows.clear()
    rows = known.with_columns(
        pl.lit(float(lanes.tops().get(CALLS, 0) + STRETCH_LANE_PX)).alias(_Y),
        (lanes.floor(pl.col(Flows.lane)) - lanes.full(pl.col(Flows.lane))).alias(_Y2),
        pl.col(Flows.from_us, Flows.to_us).round(3),
    )
    drawn: alt.Chart = (
        alt.Chart(rows)
        .mark_rule(style=theme.RULE, opacity=0.8)
        .encode(x=alt.X(f"{Flows.from_us}:Q"), x2=Flows.to_us, y=lanes.y(_Y), y2=_Y2)
    )
    return drawn


def _fill(legend: alt.Legend | None) -> alt.Fill:
    return alt.Fill(
        f"{Spans.key}:N",
        scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())),
        legend=legend,
    )


def _role_legend(data: Timeline) -> alt.Legend:
    """Name the roles that occur, in the order of `ROLES`."""
    met = set(data.busy.get_column(BusyBins.key)) | set(data.marks.get_column(Spans.key))
    return alt.Legend(
        title="GPU time by role",
        values=[role for role in ROLES if role in met],
        orient="bottom",
        columns=8,
    )


def _cause_colour(data: Timeline) -> alt.Color:
    met = set(data.marks.get_column(Spans.key))
    return alt.Color(
        f"{Spans.key}:N",
        scale=alt.Scale(domain=list(CAUSES), range=[CAUSE_COLOURS[c] for c in CAUSES]),
        legend=alt.Legend(
            title="GPU idle, by cause",
            values=[cause for cause in CAUSES if cause in met],
            orient="bottom",
            columns=6,
            labelExpr=legend_expression(),
        ),
    )
