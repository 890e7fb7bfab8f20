from collections.abc import Sequence
from dataclasses import replace

from tests.frames import Row, call, kernel, linked, table
from whichwall.analyze.completeness import Completeness, completeness
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import DRIVER, Launches

GRAPH = "cudaGraphLaunch"


def found(kernels: Sequence[Row], calls: Sequence[Row], void: Sequence[Row] = ()) -> Completeness:
    activities = linked(kernels, calls)
    return completeness(activities, table(Launches, *calls), table(Kernels, *kernels, *void))


def expected(launches: int, **more: int | bool) -> Completeness:
    nothing = Completeness(
        launches=launches, lost=0, lost_at_end=False, unlinked=0, late_launches=0,
        underrecorded_replays=0,
    )  # fmt: skip
    return replace(nothing, **more)  # type: ignore[arg-type]


def test_each_launch_with_a_kernel_is_whole() -> None:
    assert found([kernel(10, 20, 1)], [call(0, 5, 1)]) == expected(1)


def test_a_launch_without_a_gpu_row_is_lost_and_a_row_without_a_launch_is_unlinked() -> None:
    calls = [call(0, 5, 1), call(6, 7, 2), call(8, 9, 3, name="cuLaunchKernelEx")]
    assert found([kernel(10, 20, 1), kernel(30, 40, 99)], calls) == expected(3, lost=2, unlinked=1)


def test_calls_that_launch_nothing_are_not_missed() -> None:
    names = ["cudaDeviceSynchronize", "cudaMalloc", "cudaLaunchHostFunc", "cudaMemcpyAsync",
             "cuLaunchHostFunc"]  # fmt: skip
    assert found([], [call(i, i, i + 1, name=name) for i, name in enumerate(names)]) == expected(0)


def test_a_launch_under_capture_runs_nothing_and_is_not_lost() -> None:
    calls = [
        call(0, 5, 1, name="cudaStreamBeginCapture"),
        call(6, 7, 2),
        call(8, 9, 3, tid=2),
        call(10, 15, 4, name="cudaStreamEndCapture_v10000"),
        call(16, 17, 5),
    ]
    # On another thread nothing is captured; after the end nothing more is.
    assert found([kernel(20, 30, 9)], calls) == expected(2, lost=2, unlinked=1)


def test_of_two_nested_calls_for_one_launch_neither_is_lost() -> None:
    outer, inner = call(0, 20, 1), call(5, 15, 2, name="cuLaunchKernel", api=DRIVER)
    assert found([kernel(30, 40, 2)], [outer, inner]) == expected(1)


def test_two_calls_that_share_a_correlation_share_its_record() -> None:
    outer, inner = call(0, 20, 1), call(5, 15, 1, name="cuLaunchKernel", api=DRIVER)
    assert found([kernel(30, 40, 1)], [outer, inner]) == expected(2)


def test_calls_that_only_follow_one_another_are_two_launches() -> None:
    assert found([kernel(30, 40, 2)], [call(0, 4, 1), call(5, 15, 2)]) == expected(2, lost=1)


def test_a_void_record_is_a_record() -> None:
    calls = [call(0, 5, 1), call(6, 7, 2)]
    assert found([kernel(10, 20, 1)], calls, void=[kernel(0, -9, 2)]) == expected(2)


def test_rows_that_name_no_launch_at_all_do_not_make_every_launch_a_lost_one() -> None:
    calls = [call(0, 5, 1), call(6, 7, 2)]
    assert found([kernel(10, 20), kernel(30, 40, 0)], calls) == expected(2, unlinked=2)


def test_ranks_do_not_stand_in_for_one_another() -> None:
    calls = [call(0, 5, 1), call(0, 5, 1, rank=1)]
    assert found([kernel(10, 20, 1)], calls) == expected(2, lost=1)


def test_launches_that_go_on_after_the_last_kernel_are_the_buffer_limit() -> None:
    calls = [call(i, i, i + 1) for i in range(20)]
    kept = [kernel(100 + i, 101 + i, i + 1) for i in range(10)]
    assert found(kept, calls) == expected(20, lost=10, lost_at_end=True)
    # Nine are the ordinary edge of a recording.
    assert found(kept, calls[:19]) == expected(19, lost=9)
    # One in the middle, and it is not only the end.
    assert found(kept[:4] + kept[5:], calls) == expected(20, lost=11)


def test_the_buffer_limit_of_one_rank_is_not_hidden_by_another() -> None:
    calls = [call(i, i, i + 1, rank=rank) for rank in (0, 1) for i in range(20)]
    whole = [kernel(100 + i, 101 + i, i + 1) for i in range(20)]
    kept = [kernel(100 + i, 101 + i, i + 1, rank=1) for i in range(5)]
    assert found(whole + kept, calls) == expected(40, lost=15, lost_at_end=True)


def test_with_no_record_at_all_there_is_no_end_to_speak_of() -> None:
    assert found([], [call(i, i, i + 1) for i in range(20)]) == expected(20, lost=20)


def test_a_kernel_before_its_own_launch_is_counted() -> None:
    kernels = [kernel(10, 20, 1), kernel(30, 40, 2)]
    assert found(kernels, [call(11, 12, 1), call(25, 35, 2)]) == expected(2, late_launches=1)


def replays(*sizes: int, foreign: bool = False) -> tuple[list[Row], list[Row]]:
    """Return kernels and calls of graph replays with so many kernels each."""
    calls = [call(1000 * i, 1000 * i + 5, i + 1, name=GRAPH) for i in range(len(sizes))]
    kernels = [
        kernel(
            1000 * i + 10 * k + 10, 1000 * i + 10 * k + 15, i + 1,
            name=f"{'other' if foreign and size == min(sizes) else 'node'} {k}",
        )
        for i, size in enumerate(sizes)
        for k in range(size)
    ]  # fmt: skip
    return kernels, calls


def test_a_replay_with_under_half_the_kernels_of_the_others_lacks_records() -> None:
    assert found(*replays(10, 10, 4, 10)) == expected(4, underrecorded_replays=1)
    assert found(*replays(10, 10, 5, 10)) == expected(4)


def test_a_smaller_graph_of_other_kernels_lacks_nothing() -> None:
    assert found(*replays(10, 10, 4, 10, foreign=True)) == expected(4)
