"""Which records are missing: launches that ran and left no GPU row, and rows without a launch.

Lost records are reported as lost, never as idle. A launch under stream capture runs nothing;
of two nested calls for one launch only one carries the kernel's correlation, mostly the inner one.
"""

from dataclasses import dataclass

import polars as pl

from whichwall.analyze.links import GRAPH_LAUNCH_NAME, LAUNCH_NAME, NO_LINK
from whichwall.schemas.activities import Activities
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches

NOT_A_LAUNCH = r"(?i)HostFunc|KernelExHost"
BEGIN_CAPTURE, END_CAPTURE = r"(?i)StreamBeginCapture", r"(?i)StreamEndCapture"
PLACE = [Launches.point, Launches.rank]
THREAD = [*PLACE, Launches.tid]
CALL = [*PLACE, Launches.correlation]

# A replay with less than half the kernels of the median replay lacks records.
UNDERRECORDED_SHARE = 0.5
# Fewer lost launches than this at the end of a trace are the ordinary edge of a recording.
BUFFER_CAP_LEAST = 10

_END, _KERNELS, _CAPTURES, _FIRST_LOST, _STRAYS = (
    "call_end_ns", "gpu_rows", "open_captures", "first_lost_ns", "stray_rows",
)  # fmt: skip


@dataclass(frozen=True)
class Completeness:
    """Counts of what is missing."""

    launches: int  # calls that should have left a GPU row
    lost: int  # of them, those without one
    lost_at_end: bool  # all lost ones follow the last recorded one: the profiler's buffer limit
    unlinked: int  # GPU rows without a launch on record
    late_launches: int  # GPU rows that start before their launch does: clock skew
    underrecorded_replays: int


def completeness(
    activities: pl.DataFrame, launches: pl.DataFrame, kernels: pl.DataFrame
) -> Completeness:
    """Compare launches with GPU rows, both ways.

    Args:
        activities: linked `Activities`.
        launches: all `Launches`.
        kernels: all `Kernels`, void ones too: a broken record is a record.
    """
    counted, lost = expected_and_lost(launches, kernels)
    found = counted.filter(pl.col(_KERNELS).is_not_null())
    late = pl.col(Activities.start_ns) < pl.col(Activities.launch_start_ns)
    return Completeness(
        launches=counted.height,
        lost=lost.height,
        lost_at_end=_all_at_end(lost, found),
        unlinked=activities[Activities.launch].null_count(),
        late_launches=int(activities.select(late.sum()).item() or 0),
        underrecorded_replays=_underrecorded(activities),
    )


def expected_and_lost(
    launches: pl.DataFrame, kernels: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the calls that should have left a GPU row, and those of them that left none."""
    recorded = (
        kernels.filter(pl.col(Kernels.correlation) != NO_LINK)
        .group_by(CALL)
        .agg(pl.len().alias(_KERNELS))
    )
    expected = _expected(launches)
    if kernels.height:
        expected = expected.filter(pl.col(Launches.correlation) != NO_LINK)
    counted = expected.join(recorded, on=CALL, how="left", maintain_order="left")
    counted = _without_nested_calls(counted)
    lost = _without_strays(counted, kernels)
    return counted, lost


def _expected(launches: pl.DataFrame) -> pl.DataFrame:
    """Return the calls that launch GPU work, outside stream captures."""
    name = pl.col(Launches.name)
    begins = name.str.contains(BEGIN_CAPTURE).cast(pl.Int32)
    ends = name.str.contains(END_CAPTURE).cast(pl.Int32)
    return (
        launches.with_columns(
            (pl.col(Launches.start_ns) + pl.col(Launches.dur_ns)).alias(_END),
        )
        .sort([*THREAD, Launches.start_ns, _END], descending=[False] * 4 + [True], nulls_last=True)
        .with_columns((begins - ends).cum_sum().over(THREAD).alias(_CAPTURES))
        .filter(
            name.str.contains(LAUNCH_NAME)
            & ~name.str.contains(NOT_A_LAUNCH)
            # A recording may begin within a capture: its end then comes without a beginning.
            & (pl.col(_CAPTURES) <= pl.col(_CAPTURES).min().over(THREAD).clip(upper_bound=0))
        )
    )


def _without_nested_calls(counted: pl.DataFrame) -> pl.DataFrame:
    """Drop a call without GPU rows that holds one with GPU rows on its thread, or lies in one."""
    start, end, rows = pl.col(Launches.start_ns), pl.col(_END), pl.col(_KERNELS)

    def beside(column: pl.Expr, by: int) -> pl.Expr:
        return column.shift(by).over(THREAD)

    outer = beside(rows, -1).is_not_null() & (beside(end, -1) <= end)
    inner = beside(rows, 1).is_not_null() & (end <= beside(end, 1)) & (start < beside(end, 1))
    return counted.filter(~(rows.is_null() & (outer | inner)).fill_null(value=False))


def _without_strays(counted: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """Return the calls without GPU rows, less as many as there are rows that no call explains.

    A row that names no call may be that of any, and so may all but one that name the same, unless
    it launches a graph.
    """
    nameless = kernels.filter((pl.col(Kernels.correlation) == NO_LINK).fill_null(value=True))
    surplus = counted.filter(~pl.col(Launches.name).str.contains(GRAPH_LAUNCH_NAME)).with_columns(
        (pl.col(_KERNELS) - 1).alias(_STRAYS)
    )
    strays = (
        pl.concat([
            nameless.select(*PLACE, pl.lit(1, pl.Int64).alias(_STRAYS)),
            surplus.select(*PLACE, pl.col(_STRAYS).cast(pl.Int64)),
        ])
        .group_by(PLACE)
        .agg(pl.col(_STRAYS).sum())
    )  # fmt: skip
    order = pl.int_range(pl.len()).over(PLACE)
    return (
        counted.filter(pl.col(_KERNELS).is_null())
        .sort(Launches.start_ns, maintain_order=True)
        .join(strays, on=PLACE, how="left", maintain_order="left")
        .filter(order >= pl.col(_STRAYS).fill_null(0))
        .drop(_STRAYS)
    )


def _all_at_end(lost: pl.DataFrame, found: pl.DataFrame) -> bool:
    """Tell whether on each rank that lost records all of them follow its last recorded launch."""
    if lost.height < BUFFER_CAP_LEAST:
        return False
    first_lost = lost.group_by(PLACE).agg(pl.col(Launches.start_ns).min().alias(_FIRST_LOST))
    last_found = found.group_by(PLACE).agg(pl.col(Launches.start_ns).max())
    after = pl.col(_FIRST_LOST) > pl.col(Launches.start_ns)
    joined = first_lost.join(last_found, on=PLACE, how="left")
    return bool(joined.select(after.fill_null(value=False).all()).item())


def _underrecorded(activities: pl.DataFrame) -> int:
    """Count graph replays that hold far fewer kernels than the median one, and no others.

    Pieces of a model captured as several graphs differ in size too, but a piece has kernels
    that the typical replay lacks, or is of its own size class.
    """
    replays = (
        activities.filter(pl.col(Activities.graph_replay))
        .group_by(Activities.launch, maintain_order=True)
        .agg(pl.len().cast(pl.Int64).alias(_KERNELS), pl.col(Activities.name).unique())
    )
    median = replays[_KERNELS].median()
    if not isinstance(median, float):
        return 0
    typical = replays.sort((pl.col(_KERNELS) - median).abs(), maintain_order=True)[0]
    foreign = pl.col(Activities.name).list.set_difference(
        pl.lit(typical[Activities.name].to_list()[0], pl.List(pl.String))
    )
    short = (pl.col(_KERNELS) < UNDERRECORDED_SHARE * median) & (foreign.list.len() == 0)
    return int(replays.select(short.sum()).item())
