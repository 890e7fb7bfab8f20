"""Reduce one step to what fits on a screen, before a browser sees it.

The whole step becomes shares of bins of time: a kernel of 1.5 µs in a step of 30 ms is a
twentieth of a pixel, and drawn a pixel wide it would make an idle GPU look busy. One stretch of
the step, a layer where layers are known, is then kept activity by activity.
"""

from dataclasses import dataclass

import polars as pl

from whichwall.analyze.busy_bins import BINS, Window, busy_bins, few_bins
from whichwall.schemas.activities import Activities
from whichwall.schemas.chart import Flows, LaneIntervals, Spans
from whichwall.schemas.gaps import Gaps
from whichwall.schemas.launches import Launches
from whichwall.schemas.ops import Ops
from whichwall.schemas.roles import Roles
from whichwall.schemas.steps import Steps

OPERATORS, CALLS, IDLE = "operators", "launch calls", "idle, by cause"

# A layer of an eager decoder takes 40 to 50 activities. Fewer than the least show no layer, more
# than the most can no longer be told apart.
STRETCH_ACTIVITIES = 48
LEAST_STRETCH_ACTIVITIES, MOST_STRETCH_ACTIVITIES = 3, 160
STRETCH_MARGIN = 0.02
# Streams beside the busiest ones hold a few copies; the chart says how many it leaves out.
MOST_STREAMS = 4
# Width of a plot: what is closer together than one of these cannot be told apart.
PIXELS = 820

_US = 1000.0
_RUN, _TOTAL = "run", "total"
_START, _END = pl.col(LaneIntervals.start_ns), pl.col(LaneIntervals.end_ns)


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
    ops: pl.DataFrame,
    launches: pl.DataFrame,
) -> Timeline | None:
    """Reduce a window; null if nothing ran on the GPU in it.

    `activities` and `roles` are aligned row by row. `gaps`, `ops` and `launches` may be empty.
    """
    work = _work(activities, roles, window)
    if work.is_empty():
        return None
    streams, left_out = _streams(work)
    shown = work.filter(pl.col(LaneIntervals.lane).is_in(streams))
    stretch, layer = _stretch(shown, window)
    launching = pl.col(Launches.name).str.contains("Launch|Memcpy|Memset")
    host = pl.concat(
        [
            _outermost(ops, Ops, window, OPERATORS),
            _outermost(launches.filter(launching), Launches, window, CALLS),
        ]
    )
    full = _within(shown, stretch)
    marks = pl.concat([_within(host, stretch), full, _idle(gaps, stretch)], how="diagonal")
    return Timeline(
        window=window,
        busy=few_bins(shown, window, streams),
        host=busy_bins(_united(host), window, BINS[0], [OPERATORS, CALLS]),
        stretch=stretch,
        layer=layer,
        marks=_spans(marks, window, stretch.span_ns / PIXELS),
        flows=_flows(full, window, stretch),
        streams=streams,
        streams_left_out=left_out,
    )


def _work(activities: pl.DataFrame, roles: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Return the window's activities as intervals, in order of start."""
    inside = (
        (pl.col(Activities.point) == window.point)
        & (pl.col(Activities.rank) == window.rank)
        & pl.col(Activities.device).eq_missing(pl.lit(window.device, pl.Int32))
        & (pl.col(Activities.start_ns) < window.end_ns)
        & (pl.col(Activities.end_ns) > window.start_ns)
    )
    mine = activities.select(inside.fill_null(value=False)).to_series()
    told = roles.select(Roles.role, Roles.layer).filter(mine)
    return (
        activities.filter(mine)
        .select(
            pl.format("stream {}", Activities.stream)
            .fill_null(lane(None))
            .alias(LaneIntervals.lane),
            told.get_column(Roles.role).alias(LaneIntervals.key),
            pl.col(Activities.start_ns).alias(LaneIntervals.start_ns),
            pl.col(Activities.end_ns).alias(LaneIntervals.end_ns),
            pl.col(Activities.name).alias(LaneIntervals.name),
            told.get_column(Roles.layer).alias(LaneIntervals.layer),
            pl.col(Activities.launch_end_ns).alias(LaneIntervals.launch_end_ns),
        )
        .sort(LaneIntervals.start_ns, LaneIntervals.end_ns)
    )


def _streams(work: pl.DataFrame) -> tuple[list[str], int]:
    busiest = (
        work.group_by(LaneIntervals.lane)
        .agg((_END - _START).sum().alias(_TOTAL), _START.min())
        .sort(_TOTAL, LaneIntervals.start_ns, descending=[True, False])
        .get_column(LaneIntervals.lane)
        .to_list()
    )
    return busiest[:MOST_STREAMS], len(busiest[MOST_STREAMS:])


def _outermost(
    table: pl.DataFrame, columns: type[Ops | Launches], window: Window, where: str
) -> pl.DataFrame:
    """Return the outermost intervals of each thread of the window's rank.

    Within a thread intervals nest, so one that starts before the latest end so far is inside.
    """
    start = pl.col(columns.start_ns)
    end = start + pl.col(columns.dur_ns)
    latest = _END.cum_max().shift(1).over(columns.tid)
    return (
        table.filter(
            pl.col(columns.point) == window.point,
            pl.col(columns.rank) == window.rank,
            start < window.end_ns,
            end > window.start_ns,
        )
        .select(
            columns.name,
            columns.tid,
            start.alias(LaneIntervals.start_ns),
            end.alias(LaneIntervals.end_ns),
        )
        .sort(columns.tid, _START, _END, descending=[False, False, True], nulls_last=True)
        .filter(latest.is_null() | (latest <= _START))
        .select(
            pl.lit(where).alias(LaneIntervals.lane),
            pl.lit(where).alias(LaneIntervals.key),
            LaneIntervals.start_ns,
            LaneIntervals.end_ns,
            pl.col(columns.name).alias(LaneIntervals.name),
        )
        .sort(LaneIntervals.start_ns, LaneIntervals.end_ns)
    )


def _united(host: pl.DataFrame) -> pl.DataFrame:
    """Unite the threads of each lane: time covered by two of them counts once."""
    ordered = host.sort(LaneIntervals.lane, LaneIntervals.start_ns, LaneIntervals.end_ns)
    reached = _END.cum_max().shift(1).over(LaneIntervals.lane)
    fresh = (reached < _START).fill_null(value=True)
    return (
        ordered.with_columns(fresh.cum_sum().alias(_RUN))
        .group_by(_RUN, maintain_order=True)
        .agg(pl.col(LaneIntervals.lane, LaneIntervals.key).first(), _START.min(), _END.max())
        .drop(_RUN)
    )


def _stretch(work: pl.DataFrame, window: Window) -> tuple[Window, int | None]:
    """Choose what is kept in full: the middle layer, else the middle activities."""
    layers = work.get_column(LaneIntervals.layer).drop_nulls().unique().sort()
    layer = int(layers[layers.len() // 2]) if layers.len() else None
    part = work.clear() if layer is None else _unbroken(work, layer)
    if not LEAST_STRETCH_ACTIVITIES <= part.height <= MOST_STRETCH_ACTIVITIES:
        layer = None
        part = work.slice(max(0, (work.height - STRETCH_ACTIVITIES) // 2), STRETCH_ACTIVITIES)
    start, end = part.select(_START.min(), _END.max()).row(0)
    margin = int((end - start) * STRETCH_MARGIN)
    chosen = Window(
        window.point,
        window.rank,
        window.device,
        max(window.start_ns, start - margin),
        min(window.end_ns, end + margin),
    )
    return chosen, layer


def _unbroken(work: pl.DataFrame, layer: int) -> pl.DataFrame:
    """Return a layer's longest run of activities with none of another layer in between.

    A recording without steps comes by the same layer more than once.
    """
    runs = work.with_columns(pl.col(LaneIntervals.layer).rle_id().alias(_RUN)).filter(
        pl.col(LaneIntervals.layer) == layer
    )
    counts = runs.group_by(_RUN).len(_TOTAL).sort(_TOTAL, _RUN, descending=[True, False])
    return runs.filter(pl.col(_RUN) == counts.get_column(_RUN)[0]).drop(_RUN)


def _within(intervals: pl.DataFrame, stretch: Window) -> pl.DataFrame:
    """Return the intervals that reach into the stretch, cut at its ends."""
    return intervals.filter(stretch.end_ns > _START, stretch.start_ns < _END).with_columns(
        _START.clip(lower_bound=stretch.start_ns), _END.clip(upper_bound=stretch.end_ns)
    )


def _idle(gaps: pl.DataFrame, stretch: Window) -> pl.DataFrame:
    start = pl.col(Gaps.start_ns)
    mine = gaps.filter(
        pl.col(Gaps.point) == stretch.point,
        pl.col(Gaps.rank) == stretch.rank,
        pl.col(Gaps.device).eq_missing(pl.lit(stretch.device, pl.Int32)),
    ).select(
        pl.lit(IDLE).alias(LaneIntervals.lane),
        pl.col(Gaps.cause).alias(LaneIntervals.key),
        start.alias(LaneIntervals.start_ns),
        (start + pl.col(Gaps.dur_ns)).alias(LaneIntervals.end_ns),
        pl.format("before {}", Gaps.after_name).alias(LaneIntervals.name),
    )
    return _within(mine, stretch)


def _spans(intervals: pl.DataFrame, window: Window, pixel_ns: float) -> pl.DataFrame:
    """Return `Spans`; neighbours of one lane and key that are closer than a pixel become one."""
    where, key = LaneIntervals.lane, pl.col(LaneIntervals.key)
    apart = (key != key.shift(1).over(where)) | (
        _START - _END.cum_max().shift(1).over(where) >= pixel_ns
    )
    return (
        intervals.sort(where, LaneIntervals.start_ns, LaneIntervals.end_ns)
        .with_columns(apart.fill_null(value=True).cum_sum().alias(_RUN))
        .group_by(_RUN, maintain_order=True)
        .agg(
            pl.col(where).first().alias(Spans.lane),
            key.first().alias(Spans.key),
            ((_START.min() - window.start_ns) / _US).alias(Spans.from_us),
            ((_END.max() - window.start_ns) / _US).alias(Spans.to_us),
            ((_END - _START).sum() / _US).alias(Spans.dur_us),
            pl.len().cast(pl.Int64).alias(Spans.count),
            pl.col(LaneIntervals.name).first().alias(Spans.name),
        )
        .select(list(Spans.COLUMNS))
    )


def _flows(work: pl.DataFrame, window: Window, stretch: Window) -> pl.DataFrame:
    launched = pl.col(LaneIntervals.launch_end_ns)
    return work.filter(launched >= stretch.start_ns, launched <= _START).select(
        pl.col(LaneIntervals.lane).alias(Flows.lane),
        ((launched - window.start_ns) / _US).alias(Flows.from_us),
        ((_START - window.start_ns) / _US).alias(Flows.to_us),
    )
