from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frames import Row, call, kernel, linked, overhead, table
from tests.properties import PROPERTY
from whichwall.analyze.busy import busy
from whichwall.analyze.gaps import gaps
from whichwall.schemas import gaps as causes
from whichwall.schemas.activities import Activities
from whichwall.schemas.busy import Busy
from whichwall.schemas.gaps import CAUSES, Gaps
from whichwall.schemas.launches import Launches
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.run import polars_schema
from whichwall.schemas.steps import Steps

NO_STEPS = pl.DataFrame(schema=polars_schema(Steps))

# Two kernels with an idle stretch from 100 to 200 between them, and their launches, in time.
BEFORE, AFTER = kernel(50, 100, 1), kernel(200, 250, 2)
FIRST, IN_TIME, LATE = call(10, 20, 1), call(30, 40, 2), call(150, 190, 2)
GRAPH = call(10, 20, 1, name="cudaGraphLaunch")
SYNC = "cudaStreamSynchronize"


def gaps_of(
    kernels: Sequence[Row], calls: Sequence[Row] = (), overheads: Sequence[Row] = ()
) -> pl.DataFrame:
    return gaps(
        linked(kernels, calls), NO_STEPS, table(Launches, *calls), table(Overheads, *overheads)
    )


def cause(calls: Sequence[Row], overheads: Sequence[Row] = (), after: Row = AFTER) -> object:
    """Return the cause of the only gap between BEFORE and the activity after it."""
    return gaps_of([BEFORE, after], calls, overheads)[Gaps.cause].item()


def test_late_is_a_launch_that_had_not_ended_when_the_kernel_before_ended() -> None:
    assert cause([FIRST, LATE]) == causes.LAUNCH
    assert cause([FIRST, call(95, 101, 2)]) == causes.LAUNCH


def test_device_is_a_launch_that_was_queued_in_time() -> None:
    assert cause([FIRST, IN_TIME]) == causes.DEVICE
    assert cause([FIRST, call(95, 100, 2)]) == causes.DEVICE


def test_unknown_is_a_kernel_without_a_launch_on_record() -> None:
    assert cause([FIRST]) == causes.UNKNOWN
    assert cause([FIRST, call(150, 190, 0)], after=kernel(200, 250, 0)) == causes.UNKNOWN


def test_graph_is_between_two_nodes_of_one_replay() -> None:
    assert cause([GRAPH], after=kernel(200, 250, 1)) == causes.GRAPH


def test_kernels_of_one_plain_launch_are_no_graph() -> None:
    assert cause([FIRST], after=kernel(200, 250, 1)) == causes.DEVICE


def test_two_replays_are_not_one_graph() -> None:
    second = call(150, 190, 2, name="cudaGraphLaunch")
    assert cause([GRAPH, second]) == causes.LAUNCH


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(100, 150, causes.SYNC), (50, 150, causes.SYNC), (101, 150, causes.LAUNCH),
     (150, 500, causes.SYNC), (0, 100, causes.LAUNCH)],
)  # fmt: skip
def test_sync_covers_at_least_half_of_the_gap(start: int, end: int, expected: str) -> None:
    assert cause([FIRST, LATE, call(start, end, name=SYNC)]) == expected


def test_two_waits_together_may_cover_half_and_overlaps_count_once() -> None:
    waits = [call(100, 130, name=SYNC), call(160, 180, name="cudaDeviceSynchronize")]
    assert cause([FIRST, LATE, *waits]) == causes.SYNC
    nested = [call(100, 130, name=SYNC), call(110, 130, name="cudaEventSynchronize")]
    assert cause([FIRST, LATE, *nested]) == causes.LAUNCH


@pytest.mark.parametrize(
    "name",
    ["cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy",
     "cuCtxSynchronize", "cuStreamSynchronize", "hipStreamSynchronize", "hipMemcpyWithStream",
     "cudaStreamSynchronize_ptsz", "cuMemcpyDtoH_v2"],
)  # fmt: skip
def test_these_calls_make_the_host_wait(name: str) -> None:
    assert cause([FIRST, LATE, call(100, 200, name=name)]) == causes.SYNC


@pytest.mark.parametrize(
    "name", ["cudaMemcpyAsync", "hipMemcpyAsync", "cudaStreamWaitEvent", "cudaEventQuery",
             "cuMemcpyHtoDAsync_v2", "cudaMemsetAsync", "cudaMalloc"],
)  # fmt: skip
def test_these_calls_do_not(name: str) -> None:
    assert cause([FIRST, LATE, call(100, 200, name=name)]) == causes.LAUNCH


def test_a_wait_on_another_thread_or_rank_is_not_the_launching_threads() -> None:
    assert cause([FIRST, LATE, call(100, 200, name=SYNC, tid=2)]) == causes.LAUNCH
    assert cause([FIRST, LATE, call(100, 200, name=SYNC, rank=1)]) == causes.LAUNCH


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(100, 150, causes.PROFILER), (100, 149, causes.LAUNCH), (0, 900, causes.PROFILER)],
)
def test_the_profiler_covers_at_least_half_of_the_gap(start: int, end: int, expected: str) -> None:
    assert cause([FIRST, LATE], [overhead(start, end)]) == expected


def test_overheads_of_another_rank_are_not_this_ones() -> None:
    assert cause([FIRST, LATE], [overhead(100, 200, rank=1)]) == causes.LAUNCH


def test_the_first_cause_that_applies_is_taken() -> None:
    profiler, sync = overhead(100, 200), call(100, 200, name=SYNC)
    assert CAUSES == ("profiler", "unknown", "graph", "sync", "launch", "device")
    assert cause([FIRST, sync], [profiler]) == causes.PROFILER
    assert cause([GRAPH, sync], [profiler], after=kernel(200, 250, 1)) == causes.PROFILER
    assert cause([FIRST, sync]) == causes.UNKNOWN
    assert cause([GRAPH, sync], after=kernel(200, 250, 1)) == causes.GRAPH
    assert cause([FIRST, IN_TIME, sync]) == causes.SYNC
    assert cause([FIRST, LATE, sync]) == causes.SYNC


def test_a_gap_begins_at_the_running_maximum_and_names_the_activity_that_ended_there() -> None:
    long, short = kernel(0, 100, name="long"), kernel(10, 20, name="short", stream=8)
    found = gaps_of([long, short, kernel(130, 140, name="next"), kernel(140, 150, name="touching")])
    columns = [Gaps.start_ns, Gaps.dur_ns, Gaps.before_name, Gaps.after_name]
    assert found.select(columns).rows() == [(100, 30, "long", "next")]


def test_each_device_and_rank_has_its_own_neighbours() -> None:
    places: list[Row] = [{}, {"device": 1}, {"rank": 1}]
    rows = [
        kernel(start, start + 5, name=f"{i}: {start}") | place
        for i, place in enumerate(places)
        for start in (0, 10 + i, 30 + i)
    ]
    found = gaps_of(rows).select(Gaps.rank, Gaps.device, Gaps.before_name, Gaps.after_name).rows()
    assert found == [
        (0, 0, "0: 0", "0: 10"), (0, 0, "0: 10", "0: 30"),
        (0, 1, "1: 0", "1: 11"), (0, 1, "1: 11", "1: 31"),
        (1, 0, "2: 0", "2: 12"), (1, 0, "2: 12", "2: 32"),
    ]  # fmt: skip


def test_a_replay_on_the_second_device_is_a_graph_too() -> None:
    replay = call(5, 6, 9, name="cudaGraphLaunch", tid=2)
    nodes = [kernel(start, start + 5, 9, device=1) for start in (60, 70, 80)]
    found = gaps_of([BEFORE, AFTER, *nodes], [FIRST, LATE, replay])
    assert found.select(Gaps.device, Gaps.cause).rows() == [
        (0, causes.LAUNCH), (1, causes.GRAPH), (1, causes.GRAPH),
    ]  # fmt: skip


@PROPERTY
@given(
    st.lists(
        st.tuples(st.integers(0, 80), st.integers(0, 12), st.integers(0, 1), st.integers(0, 1)),
        min_size=1, max_size=20,
    )
)  # fmt: skip
def test_busy_and_gaps_fill_the_window_of_each_device(
    written: list[tuple[int, int, int, int]],
) -> None:
    activities = linked(
        [kernel(start, start + dur, device=d, rank=r) for start, dur, d, r in written]
    )
    group = [Activities.rank, Activities.device]
    idle = (
        gaps(activities, NO_STEPS, table(Launches), table(Overheads))
        .group_by(group)
        .agg(pl.col(Gaps.dur_ns).sum(), pl.col(Gaps.dur_ns).min().alias("least"))
    )
    whole = busy(activities).join(idle, on=group, how="left")
    for row in whole.iter_rows(named=True):
        assert row[Busy.busy_ns] + (row[Gaps.dur_ns] or 0) == row[Busy.window_ns]
        assert row["least"] is None or row["least"] > 0
