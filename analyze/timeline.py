"""Reduce one step to what fits on a screen, before a browser sees it.

The whole step becomes shares of bins of time: a kernel of 1.5 µs in a step of 30 ms is a
twentieth of a pixel, and drawn a pixel wide it would make an idle GPU look busy. One stretch of
the step, a layer where layers are known, is then kept activity by activity.
"""

from dataclasses import dataclass

import polars as pl

from whichwall.schemas.activities import Activities
from whichwall.schemas.chart import BusyBins, Flows, Spans
from whichwall.schemas.gaps import Gaps
from whichwall.schemas.launches import Launches
from whichwall.schemas.ops import Ops
from whichwall.schemas.roles import ROLES, Roles
from whichwall.schemas.run import polars_schema
from whichwall.schemas.steps import Steps

OPERATORS, CALLS, IDLE = "operators", "launch calls", "idle, by cause"

# A plot is about 900 pixels wide: a bin of 5 pixels can still be told from its neighbour.
BINS = (180, 120, 80, 60, 40, 30, 20)
# Above this many marks an SVG grows beyond what a code host shows without delay.
MOST_BIN_MARKS = 1000
# A layer of an eager decoder takes 40 to 50 activities; more than this are no longer told apart.
STRETCH_ACTIVITIES = 48
MOST_STRETCH_ACTIVITIES = 160
STRETCH_MARGIN = 0.02
# Streams beside the busiest ones hold a few copies; the chart says how many it leaves out.
MOST_STREAMS = 4
PIXELS = 900
_US = 1000.0

_FROM, _TO, _FIRST, _LAST, _KEY, _LANE, _NEXT, _TOTAL, _SCALE = (
    "from", "to", "first", "last", "key", "lane", "next", "total", "scale",
)  # fmt: skip


@dataclass(frozen=True)
class Window:
    """A stretch of one device's time, in Unix epoch ns."""

    point: int
    rank: int
    device: int | None
    start_ns: int
    end_ns: int

    @property
    def span_ns(self) -> int:
        """Length; at least 1, so that it can be divided by."""
        return max(1, self.end_ns - self.start_ns)


@dataclass(frozen=True)
class Timeline:
    """What the chart of one step draws; every frame is bounded in size."""

    window: Window
    busy: pl.DataFrame  # BusyBins of the GPU's streams, by role
    host: pl.DataFrame  # BusyBins of operators and launch calls
    stretch: Window  # the part that is kept in full
    layer: int | None  # the layer that the stretch is, if it is one
    marks: pl.DataFrame  # Spans inside the stretch
    flows: pl.DataFrame  # Flows inside the stretch
    streams: list[str]  # lanes of the GPU, busiest first
    streams_left_out: int


def lane(stream: int | None) -> str:
    """Return the name of a stream's lane."""
    return "stream not known" if stream is None else f"stream {stream}"


def median_step(steps: pl.DataFrame) -> dict[str, int] | None:
    """Return the step with the median window, as a row; null if no step has a window."""
    known = steps.filter(pl.col(Steps.window_ns) > 0).sort(Steps.window_ns, Steps.step)
    return known.row((known.height - 1) // 2, named=True) if known.height else None


def timeline(
    window: Window,
    activities: pl.DataFrame,
    roles: pl.DataFrame,
    gaps: pl.DataFrame,
    ops: pl.LazyFrame,
    launches: pl.LazyFrame,
) -> Timeline | None:
    """Reduce a window; null if nothing ran on the GPU in it.

    `activities` and `roles` are aligned row by row. `gaps`, `ops` and `launches` may be empty.
    """
    work = _work(activities, roles, window)
    if work.is_empty():
        return None
    streams, left_out = _streams(work)
    shown = work.filter(pl.col(_LANE).is_in(streams))
    stretch, layer = _stretch(shown, window)
    calls = _host(launches.filter(_launching()), Launches, window, CALLS)
    operators = _host(ops, Ops, window, OPERATORS)
    host = pl.concat([operators, calls])
    full = _within(shown, stretch)
    marks = [_within(host, stretch), full, _idle(gaps, stretch)]
    return Timeline(
        window=window,
        busy=_few_bins(shown, window, streams),
        host=_bins(host, window, BINS[0], [OPERATORS, CALLS]),
        stretch=stretch,
        layer=layer,
        marks=_merged(pl.concat(marks, how="diagonal"), window, stretch.span_ns / PIXELS),
        flows=_flows(full, window, stretch),
        streams=streams,
        streams_left_out=left_out,
    )


def _launching() -> pl.Expr:
    return pl.col(Launches.name).str.contains("Launch|Memcpy|Memset")


def _work(activities: pl.DataFrame, roles: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Return the window's activities with lane, role and layer, in order of start."""
    start, end = pl.col(Activities.start_ns), pl.col(Activities.end_ns)
    inside = (
        (pl.col(Activities.point) == window.point)
        & (pl.col(Activities.rank) == window.rank)
        & pl.col(Activities.device).eq_missing(pl.lit(window.device, pl.Int32))
        & (start < window.end_ns)
        & (end > window.start_ns)
    )
    kept = (
        Activities.stream, Activities.name, Activities.start_ns, Activities.end_ns,
        Activities.launch_end_ns,
    )  # fmt: skip
    both = activities.select(inside.alias(_FIRST), *kept).with_columns(
        roles.get_column(Roles.role).alias(_KEY), roles.get_column(Roles.layer)
    )
    named = pl.format("stream {}", Activities.stream).fill_null(lane(None)).alias(_LANE)
    return (
        both.filter(_FIRST)
        .drop(_FIRST)
        .with_columns(named, start.alias(_FROM), end.alias(_TO))
        .sort(_FROM, _TO)
    )


def _streams(work: pl.DataFrame) -> tuple[list[str], int]:
    busiest = (
        work.group_by(_LANE)
        .agg((pl.col(_TO) - pl.col(_FROM)).sum().alias(_TOTAL), pl.col(_FROM).min())
        .sort(_TOTAL, _FROM, descending=[True, False])
        .get_column(_LANE)
        .to_list()
    )
    return busiest[:MOST_STREAMS], len(busiest[MOST_STREAMS:])


def _host(
    table: pl.LazyFrame, columns: type[Ops | Launches], window: Window, where: str
) -> pl.DataFrame:
    """Return the outermost intervals of each thread of the window's rank.

    Within a thread intervals nest, so one that starts before the latest end so far is inside.
    """
    start = pl.col(columns.start_ns)
    end = start + pl.col(columns.dur_ns)
    latest = pl.col(_TO).cum_max().shift(1).over(columns.tid)
    return (
        table.filter(
            pl.col(columns.point) == window.point,
            pl.col(columns.rank) == window.rank,
            start < window.end_ns,
            end > window.start_ns,
        )
        .select(columns.name, columns.tid, start.alias(_FROM), end.alias(_TO))
        .collect()
        .sort(columns.tid, _FROM, _TO, descending=[False, False, True], nulls_last=True)
        .filter(latest.is_null() | (pl.col(_FROM) >= latest))
        .select(columns.name, _FROM, _TO, pl.lit(where).alias(_LANE), pl.lit(where).alias(_KEY))
        .sort(_FROM, _TO)
    )


def _stretch(work: pl.DataFrame, window: Window) -> tuple[Window, int | None]:
    """Choose what is kept in full: the middle layer, else the middle activities."""
    layers = work.get_column(Roles.layer).drop_nulls().unique().sort()
    layer = None
    part = work
    if layers.len():
        layer = int(layers[layers.len() // 2])
        part = work.filter(pl.col(Roles.layer) == layer)
    if part.height > MOST_STRETCH_ACTIVITIES or not layers.len():
        layer = None
        middle = max(0, (work.height - STRETCH_ACTIVITIES) // 2)
        part = work.slice(middle, STRETCH_ACTIVITIES)
    start = part.select(pl.col(_FROM).min()).item()
    end = part.select(pl.col(_TO).max()).item()
    margin = int((end - start) * STRETCH_MARGIN)
    chosen = Window(
        window.point,
        window.rank,
        window.device,
        max(window.start_ns, start - margin),
        min(window.end_ns, end + margin),
    )
    return chosen, layer


def _within(spans: pl.DataFrame, stretch: Window) -> pl.DataFrame:
    """Return the spans that reach into the stretch, cut at its ends."""
    return spans.filter(
        pl.col(_FROM) < stretch.end_ns, pl.col(_TO) > stretch.start_ns
    ).with_columns(
        pl.col(_FROM).clip(lower_bound=stretch.start_ns),
        pl.col(_TO).clip(upper_bound=stretch.end_ns),
    )


def _idle(gaps: pl.DataFrame, stretch: Window) -> pl.DataFrame:
    mine = gaps.filter(
        pl.col(Gaps.point) == stretch.point,
        pl.col(Gaps.rank) == stretch.rank,
        pl.col(Gaps.device).eq_missing(pl.lit(stretch.device, pl.Int32)),
    )
    start = pl.col(Gaps.start_ns)
    spans = mine.select(
        pl.format("before {}", Gaps.after_name).alias(Ops.name),
        start.alias(_FROM),
        (start + pl.col(Gaps.dur_ns)).alias(_TO),
        pl.lit(IDLE).alias(_LANE),
        pl.col(Gaps.cause).alias(_KEY),
    )
    return _within(spans, stretch)


def _merged(spans: pl.DataFrame, window: Window, pixel_ns: float) -> pl.DataFrame:
    """Merge neighbours of one lane and key that are closer than a pixel."""
    ordered = spans.sort(_LANE, _FROM, _TO)
    apart = (
        (pl.col(_KEY) != pl.col(_KEY).shift(1).over(_LANE))
        | (pl.col(_FROM) - pl.col(_TO).cum_max().shift(1).over(_LANE) >= pixel_ns)
    ).fill_null(value=True)
    return (
        ordered.with_columns(apart.cum_sum().alias(_NEXT))
        .group_by(_NEXT, maintain_order=True)
        .agg(
            pl.col(_LANE).first().alias(Spans.lane),
            pl.col(_KEY).first().alias(Spans.key),
            ((pl.col(_FROM).min() - window.start_ns) / _US).alias(Spans.from_us),
            ((pl.col(_TO).max() - window.start_ns) / _US).alias(Spans.to_us),
            ((pl.col(_TO) - pl.col(_FROM)).sum() / _US).alias(Spans.dur_us),
            pl.len().cast(pl.Int64).alias(Spans.count),
            pl.col(Ops.name).first().alias(Spans.name),
        )
        .select(list(polars_schema(Spans)))
    )


def _flows(work: pl.DataFrame, window: Window, stretch: Window) -> pl.DataFrame:
    launched = pl.col(Activities.launch_end_ns)
    return work.filter(launched >= stretch.start_ns, launched <= pl.col(_FROM)).select(
        pl.col(_LANE).alias(Flows.lane),
        ((launched - window.start_ns) / _US).alias(Flows.from_us),
        ((pl.col(_FROM) - window.start_ns) / _US).alias(Flows.to_us),
    )
