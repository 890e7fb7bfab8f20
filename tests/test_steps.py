from collections.abc import Sequence

import polars as pl
from polars.testing import assert_frame_equal

from tests.frames import Row, annotation, call, kernel, linked, op, table
from whichwall.analyze.gaps import gaps
from whichwall.analyze.marks import marks
from whichwall.analyze.steps import assign, steps, with_gaps
from whichwall.schemas.activities import Activities
from whichwall.schemas.gaps import Gaps
from whichwall.schemas.launches import Launches
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.run import frame
from whichwall.schemas.steps import Steps

FIRST, SECOND = (
    annotation(0, 100, "whichwall::prefill#0"),
    annotation(200, 300, "whichwall::decode#0"),
)
THIRD = annotation(400, 500, "whichwall::decode#1")


def found(
    kernels: Sequence[Row], calls: Sequence[Row], annotations: Sequence[Row]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return activities with their steps, and the steps."""
    marked = marks(table(Ranges, *annotations))
    activities = assign(linked(kernels, calls, [op(0, 1, "x")]), marked)
    return activities, steps(activities, marked)


def windows(of: pl.DataFrame) -> list[tuple[object, ...]]:
    return of.select(
        Steps.device, Steps.step, Steps.start_ns, Steps.window_ns, Steps.busy_ns
    ).rows()


def test_a_launch_belongs_to_the_latest_step_begun_however_late_its_kernel_runs() -> None:
    calls = [
        call(199, 201, 1),  # begun before the second step: the first's, though it has ended
        call(200, 205, 2),
        call(350, 355, 3),  # sampling, after the forward annotation
        call(450, 455, 4),
    ]
    kernels = [kernel(1000 * i, 1000 * i + 10, i) for i in (1, 2, 3, 4)]
    activities, of_steps = found(kernels, calls, [FIRST, SECOND, THIRD])
    assert activities[Activities.step].to_list() == [0, 1, 1, 2]
    assert of_steps[Steps.phase].to_list() == ["prefill", "decode", "decode"]


def test_an_activity_before_the_first_step_belongs_to_none() -> None:
    calls = [call(150, 155, 1), call(250, 255, 2)]
    activities, of_steps = found([kernel(160, 170, 1), kernel(260, 270, 2)], calls, [SECOND])
    assert activities[Activities.step].to_list() == [None, 0]
    assert windows(of_steps) == [(0, 0, 260, 10, 10)]


def test_an_activity_without_a_launch_follows_the_one_before_it_on_its_device() -> None:
    calls = [call(10, 15, 1), call(250, 255, 2), call(260, 265, 3)]
    kernels = [
        kernel(5, 8), kernel(20, 30, 1), kernel(40, 50), kernel(300, 310, 2),
        kernel(35, 36, device=1), kernel(305, 306, 3, device=1), kernel(400, 401, device=1),
    ]  # fmt: skip
    activities, _ = found(kernels, calls, [FIRST, SECOND])
    assert activities.select(Activities.device, Activities.step).rows() == [
        (0, None), (0, 0), (0, 0), (0, 1), (1, None), (1, 1), (1, 1),
    ]  # fmt: skip


def test_a_window_runs_to_the_next_steps_first_activity_and_the_last_to_its_end() -> None:
    calls = [call(10, 15, 1), call(20, 25, 2), call(210, 215, 3), call(410, 415, 4)]
    kernels = [
        kernel(50, 100, 1), kernel(90, 160, 2), kernel(250, 300, 3), kernel(450, 470, 4),
    ]  # fmt: skip
    _, of_steps = found(kernels, calls, [FIRST, SECOND, THIRD])
    assert windows(of_steps) == [(0, 0, 50, 200, 110), (0, 1, 250, 200, 50), (0, 2, 450, 20, 20)]


def test_busy_time_is_cut_at_the_window_where_a_step_runs_into_the_next() -> None:
    calls = [call(10, 15, 1), call(210, 215, 2)]
    _, of_steps = found([kernel(50, 300, 1), kernel(260, 280, 2)], calls, [FIRST, SECOND])
    assert windows(of_steps) == [(0, 0, 50, 210, 210), (0, 1, 260, 20, 20)]


def test_a_collective_that_waits_is_busy_and_no_work() -> None:
    calls = [call(10, 15, 1), call(20, 25, 2), call(210, 215, 3)]
    collective = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    kernels = [
        kernel(50, 100, 1), kernel(90, 160, 2, name=collective),
        kernel(250, 300, 3, name=collective),
    ]  # fmt: skip
    _, of_steps = found(kernels, calls, [FIRST, SECOND])
    columns = [Steps.busy_ns, Steps.busy_without_communication_ns]
    assert of_steps.select(columns).rows() == [(110, 50), (50, 0)]


def test_a_mark_without_any_activity_is_no_step() -> None:
    calls = [call(10, 15, 1)]
    _, of_steps = found([kernel(50, 60, 1)], calls, [FIRST, SECOND, THIRD])
    assert windows(of_steps) == [(0, 0, 50, 10, 10)]


def test_an_empty_step_in_between_ends_nobodys_window() -> None:
    calls = [call(10, 15, 1), call(410, 415, 2)]
    _, of_steps = found([kernel(50, 60, 1), kernel(420, 430, 2)], calls, [FIRST, SECOND, THIRD])
    assert windows(of_steps) == [(0, 0, 50, 370, 10), (0, 2, 420, 10, 10)]


def test_each_device_has_its_own_window_of_a_step() -> None:
    calls = [call(10 + i, 12 + i, i + 1) for i in range(2)] + [
        call(210 + i, 212 + i, i + 3) for i in range(2)
    ]
    kernels = [
        kernel(50, 60, 1), kernel(70, 90, 2, device=1),
        kernel(250, 260, 3), kernel(300, 330, 4, device=1),
    ]  # fmt: skip
    _, of_steps = found(kernels, calls, [FIRST, SECOND])
    assert windows(of_steps) == [
        (0, 0, 50, 200, 10), (0, 1, 250, 10, 10), (1, 0, 70, 230, 20), (1, 1, 300, 30, 30),
    ]  # fmt: skip


def test_ranks_have_their_own_steps() -> None:
    calls = [call(10, 15, 1), call(10, 15, 1, rank=1), call(210, 215, 2, rank=1)]
    kernels = [kernel(50, 60, 1), kernel(55, 60, 1, rank=1), kernel(250, 260, 2, rank=1)]
    annotations = [FIRST, FIRST | {"rank": 1}, SECOND | {"rank": 1}]
    _, of_steps = found(kernels, calls, annotations)
    assert of_steps.select(Steps.rank, Steps.step, Steps.window_ns).rows() == [
        (0, 0, 10), (1, 0, 195), (1, 1, 10),
    ]  # fmt: skip


def test_no_marks_are_no_steps() -> None:
    activities, of_steps = found([kernel(50, 60, 1)], [call(10, 15, 1)], [])
    assert activities[Activities.step].to_list() == [None]
    assert of_steps.height == 0


def test_busy_and_gaps_fill_each_steps_window() -> None:
    calls = [call(10 + i, 11 + i, i + 1) for i in range(3)] + [call(210, 215, 4)]
    kernels = [
        kernel(50, 60, 1), kernel(62, 70, 2), kernel(75, 80, 3), kernel(250, 260, 4),
        kernel(265, 270),
    ]  # fmt: skip
    activities, of_steps = found(kernels, calls, [FIRST, SECOND])
    idle = gaps(activities, of_steps, table(Launches, *calls), table(Overheads))
    per_step = dict(idle.group_by(Gaps.step).agg(pl.col(Gaps.dur_ns).sum()).iter_rows())
    for _, step, _, window, busy in windows(of_steps):
        assert busy + per_step[step] == window
    assert with_gaps(of_steps, idle)[Steps.gap_median_ns].to_list() == [5, 5]


def test_a_step_is_described_whole() -> None:
    calls = [call(10, 15, 1), call(16, 17, 2)]
    kernels = [kernel(50, 60, 1), kernel(60, 90, 1), kernel(95, 97, 2, kind="memcpy")]
    name = "execute_context_0(0)_generation_8(8)"
    _, of_steps = found(kernels, calls, [annotation(0, 40, name)])
    expected: Row = {
        "point": 0, "rank": 0, "device": 0, "step": 0, "name": name, "found_by": "annotation",
        "phase": "decode", "batch": 8, "tokens": 8, "begin_ns": 0, "start_ns": 50, "window_ns": 47,
        "busy_ns": 42, "busy_without_communication_ns": 42, "activities": 3, "kernels": 2,
        "launches": 2, "kernel_median_ns": 20, "gap_median_ns": None,
    }  # fmt: skip
    assert_frame_equal(of_steps, frame(Steps, [expected]))
