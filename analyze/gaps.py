"""Idle stretches of a device, each with the first cause that applies (design: gap).

A gap runs from the running maximum of ends to the next start. Causes, in order: `profiler`,
`unknown`, `graph`, `sync`, `launch`, `device`.
"""

import polars as pl

from whichwall.analyze.intervals import Int64s, covered_in_groups
from whichwall.analyze.steps import DEVICE
from whichwall.schemas import gaps as causes
from whichwall.schemas.activities import Activities
from whichwall.schemas.gaps import Gaps
from whichwall.schemas.launches import Launches
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.steps import Steps

# No call and no work of the profiler lasts an hour: such a row lacks its end (pytorch#124080).
NEVER_ENDED_NS = 3600 * 10**9
COVERED_SHARE = 0.5  # "covers at least half of it", by definition
SYNC_NAME = (
    r"(?i)synchronize|^ur(EventWait|QueueFinish)$"
    r"|^(cuda|hip|musa)Memcpy(2D|3D|ToSymbol|FromSymbol)?(_v\d+)?$"
    r"|^cuMemcpy(HtoD|DtoH|DtoD)?(_v\d+)?$"
    r"|^hipMemcpyWithStream$"  # the host waits for this one, unlike hipMemcpyAsync
)

_ROW, _REACHED, _END, _BEFORE, _GRAPH, _PROFILED, _SYNCED, _UNTIL = (
    "row", "reached_ns", "gap_end_ns", "before", "same_graph", "profiled_ns", "synced_ns",
    "until_ns",
)  # fmt: skip


def gaps(
    activities: pl.DataFrame, steps: pl.DataFrame, launches: pl.DataFrame, overheads: pl.DataFrame
) -> pl.DataFrame:
    """Return the gaps of every device, as `Gaps`, sorted by device and time.

    Args:
        activities: linked `Activities`, sorted by point, rank, device, start, end.
        steps: `Steps`, for the window that each gap lies in.
        launches: all `Launches`, for the synchronising calls among them.
        overheads: all `Overheads`.
    """
    found = _with_step(_between(activities), steps)
    found = found.with_columns(
        pl.Series(_PROFILED, _covered_by_overheads(found, overheads)),
        pl.Series(_SYNCED, _covered_by_sync(found, launches)),
    )
    return found.with_columns(_cause().alias(Gaps.cause)).select(list(Gaps.COLUMNS))


def _between(activities: pl.DataFrame) -> pl.DataFrame:
    """Return a row per gap, with the activities on both sides and the launch after it."""
    end = pl.col(Activities.end_ns)
    # The activity before a gap is the one whose end is the running maximum. Rows are numbered
    # first: a number made within a window would count from the device's first row.
    numbered = (
        activities.with_columns(
            pl.int_range(pl.len()).alias(_ROW), end.cum_max().over(DEVICE).alias(_REACHED)
        )
        .with_columns(
            pl.when(end == pl.col(_REACHED))
            .then(pl.col(_ROW))
            .forward_fill()
            .over(DEVICE)
            .alias(_BEFORE)
        )
        .with_columns(pl.col(_BEFORE, _REACHED).shift(1).over(DEVICE))
    )
    idle = numbered.filter(pl.col(Activities.start_ns) > pl.col(_REACHED))
    before = activities[idle[_BEFORE]]
    return idle.select(
        Activities.point,
        Activities.rank,
        Activities.device,
        pl.col(_REACHED).alias(Gaps.start_ns),
        pl.col(Activities.start_ns).alias(_END),
        (pl.col(Activities.start_ns) - pl.col(_REACHED)).alias(Gaps.dur_ns),
        before[Activities.name].alias(Gaps.before_name),
        before[Activities.op_name].alias(Gaps.before_op),
        pl.col(Activities.name).alias(Gaps.after_name),
        pl.col(Activities.op_name).alias(Gaps.after_op),
        (
            pl.col(Activities.graph_replay)
            & before[Activities.graph_replay]
            & (pl.col(Activities.launch) == before[Activities.launch])
        )
        .fill_null(value=False)
        .alias(_GRAPH),
        Activities.launch,
        Activities.launch_tid,
        Activities.launch_end_ns,
    )


def _with_step(found: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Add the step whose window holds the start of each gap."""
    windows = steps.filter(pl.col(Steps.start_ns).is_not_null()).select(
        *DEVICE,
        Steps.start_ns,
        Steps.step,
        (pl.col(Steps.start_ns) + pl.col(Steps.window_ns)).alias(_UNTIL),
    )
    inside = pl.col(Gaps.start_ns) < pl.col(_UNTIL)
    return (
        found.with_row_index()
        .sort(Gaps.start_ns)
        .join_asof(
            windows.sort(Steps.start_ns), on=Gaps.start_ns, by=DEVICE, check_sortedness=False
        )
        .with_columns(pl.when(inside).then(pl.col(Gaps.step)).alias(Gaps.step))
        .sort("index")
    )


def _cause() -> pl.Expr:
    half = pl.col(Gaps.dur_ns) * COVERED_SHARE
    return (
        pl.when(pl.col(_PROFILED) >= half)
        .then(pl.lit(causes.PROFILER))
        .when(pl.col(Activities.launch).is_null())
        .then(pl.lit(causes.UNKNOWN))
        .when(pl.col(_GRAPH))
        .then(pl.lit(causes.GRAPH))
        .when(pl.col(_SYNCED) >= half)
        .then(pl.lit(causes.SYNC))
        .when(pl.col(Activities.launch_end_ns) > pl.col(Gaps.start_ns))
        .then(pl.lit(causes.LAUNCH))
        .otherwise(pl.lit(causes.DEVICE))
    )


def _covered_by_overheads(found: pl.DataFrame, overheads: pl.DataFrame) -> Int64s:
    keys = [Overheads.point, Overheads.rank]
    return _covered(found, overheads, keys, keys)


def _covered_by_sync(found: pl.DataFrame, launches: pl.DataFrame) -> Int64s:
    calls = launches.filter(pl.col(Launches.name).str.contains(SYNC_NAME))
    mine = [Activities.point, Activities.rank, Activities.launch_tid]
    theirs = [Launches.point, Launches.rank, Launches.tid]
    return _covered(found, calls, mine, theirs)


def _covered(
    found: pl.DataFrame, spans: pl.DataFrame, mine: list[str], theirs: list[str]
) -> Int64s:
    """Return how much of each gap the spans of its group cover, ns."""
    # Any table of spans calls this column the same.
    spans = spans.filter(pl.col(Overheads.dur_ns) < NEVER_ENDED_NS)
    starts, ends = found[Gaps.start_ns].to_numpy(), found[_END].to_numpy()
    return covered_in_groups(found.select(mine), starts, ends, spans, theirs)
