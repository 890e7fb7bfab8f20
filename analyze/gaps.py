"""Idle stretches of a device, each with the first cause that applies (design: gap).

A gap runs from the running maximum of ends to the next start. Causes, in order: `profiler`,
`unknown`, `graph`, `sync`, `launch`, `device`.
"""

import numpy as np
import numpy.typing as npt
import polars as pl

from whichwall.schemas import gaps as causes
from whichwall.schemas.activities import Activities
from whichwall.schemas.gaps import Gaps
from whichwall.schemas.launches import Launches
from whichwall.schemas.overheads import Overheads

Int64s = npt.NDArray[np.int64]

COVERED_SHARE = 0.5  # "covers at least half of it", by definition
SYNC_NAME = (
    r"(?i)^(cuda|hip)(Device|Stream|Event|Thread)Synchronize|^cu(Ctx|Stream|Event)Synchronize"
    r"|^(cuda|hip)Memcpy(2D|3D|ToSymbol|FromSymbol)?(_v\d+)?$|^cuMemcpy(HtoD|DtoH|DtoD)?(_v\d+)?$"
)
DEVICE = [Activities.point, Activities.rank, Activities.device]

_REACHED, _END, _BEFORE, _GRAPH, _PROFILED, _SYNCED = (
    "reached_ns", "gap_end_ns", "before", "same_graph", "profiled_ns", "synced_ns",
)  # fmt: skip


def gaps(
    activities: pl.DataFrame, launches: pl.DataFrame, overheads: pl.DataFrame
) -> pl.DataFrame:
    """Return the gaps of every device, as `Gaps`, sorted by device and time.

    Args:
        activities: linked `Activities`, sorted by point, rank, device, start, end.
        launches: all `Launches`, for the synchronising calls among them.
        overheads: all `Overheads`.
    """
    found = _between(activities)
    found = found.with_columns(
        pl.Series(_PROFILED, _covered_by_overheads(found, overheads)),
        pl.Series(_SYNCED, _covered_by_sync(found, launches)),
    )
    return found.with_columns(_cause().alias(Gaps.cause)).select(list(Gaps.COLUMNS))


def _between(activities: pl.DataFrame) -> pl.DataFrame:
    """Return a row per gap, with the activities on both sides and the launch after it."""
    row = pl.int_range(pl.len())
    end = pl.col(Activities.end_ns)
    # The activity before a gap is the one whose end is the running maximum.
    sets_maximum = end == end.cum_max().over(DEVICE)
    numbered = activities.with_columns(
        pl.when(sets_maximum).then(row).forward_fill().over(DEVICE).alias(_BEFORE)
    ).with_columns(
        pl.col(_BEFORE).shift(1).over(DEVICE),
        end.cum_max().shift(1).over(DEVICE).alias(_REACHED),
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
        before[Activities.step].alias(Gaps.step),
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
    """Return how much of each gap the union of the spans of its group covers, in ns."""
    covered = np.zeros(found.height, np.int64)
    if not found.height or not spans.height:
        return covered
    groups = spans.partition_by(theirs, as_dict=True, maintain_order=True)
    numbered = found.select(*mine, Gaps.start_ns, _END).with_row_index()
    for key, rows in numbered.partition_by(mine, as_dict=True, maintain_order=True).items():
        if key in groups:
            starts, ends = _union(groups[key])
            until_end = _measure_before(rows[_END].to_numpy(), starts, ends)
            until_start = _measure_before(rows[Gaps.start_ns].to_numpy(), starts, ends)
            covered[rows["index"].to_numpy()] = until_end - until_start
    return covered


def _union(spans: pl.DataFrame) -> tuple[Int64s, Int64s]:
    """Return the disjoint intervals that a table's start and duration columns cover."""
    ordered = spans.sort(Overheads.start_ns)
    starts = ordered[Overheads.start_ns].to_numpy()
    ends = np.maximum.accumulate(starts + ordered[Overheads.dur_ns].to_numpy())
    fresh = np.concatenate([[True], starts[1:] > ends[:-1]])
    last = np.concatenate([np.flatnonzero(fresh)[1:] - 1, [len(starts) - 1]])
    return starts[fresh], ends[last]


def _measure_before(times: Int64s, starts: Int64s, ends: Int64s) -> Int64s:
    """Return how much of the disjoint intervals lies before each time."""
    whole = np.concatenate([[0], np.cumsum(ends - starts)])
    index = np.searchsorted(starts, times, side="right")
    inside = np.clip(ends[np.maximum(index - 1, 0)] - times, 0, None)
    return np.asarray(whole[index] - np.where(index > 0, inside, 0), np.int64)
