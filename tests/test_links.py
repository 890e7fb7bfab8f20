from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frames import Row, call, kernel, linked, op, table
from tests.properties import PROPERTY
from whichwall.analyze.links import BY_CONTAINMENT, BY_EXTERNAL_ID, external_ids_trusted, link
from whichwall.schemas.activities import Activities
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.ops import Ops

# One launch inside two nested operators, named 1 and 2.
OPS = [op(0, 100, "outer", external_id=1), op(10, 50, "inner", external_id=2)]
LAUNCH = call(20, 25, 700)


def found(activities: pl.DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return activities.select(columns).rows()


def ops_of(kernels: Sequence[Row], calls: Sequence[Row], ops: Sequence[Row]) -> list[object]:
    return linked(kernels, calls, ops)[Activities.op_name].to_list()


def test_a_kernel_is_linked_to_its_launch_by_correlation_and_rank() -> None:
    activities = linked(
        [kernel(30, 40, 700), kernel(31, 41, 700, rank=1), kernel(50, 60, 9)],
        [LAUNCH, call(5, 6, 700, rank=1, name="cudaGraphLaunch", tid=4)],
    )
    assert found(
        activities,
        Activities.launch, Activities.launch_name, Activities.launch_tid,
        Activities.launch_start_ns, Activities.launch_end_ns, Activities.graph_replay,
    ) == [
        (0, "cudaLaunchKernel", 1, 20, 25, False),
        (None, None, None, None, None, False),
        (1, "cudaGraphLaunch", 4, 5, 6, True),
    ]  # fmt: skip


def test_correlation_zero_is_no_link() -> None:
    activities = linked([kernel(30, 40, 0), kernel(50, 60, 0)], [call(20, 25, 0)])
    assert activities[Activities.launch].to_list() == [None, None]


def test_of_several_calls_with_one_correlation_the_launch_is_taken() -> None:
    calls = [call(18, 30, 700, name="cudaStreamIsCapturing"), LAUNCH]
    assert found(linked([kernel(30, 40, 700)], calls), Activities.launch_name) == [
        ("cudaLaunchKernel",)
    ]


def test_the_operator_that_an_external_id_names_is_taken_where_it_holds_the_launch() -> None:
    activities = linked([kernel(30, 40, 700, external_id=1)], [LAUNCH], OPS)
    assert found(activities, Activities.op_name, Activities.op_link) == [("outer", BY_EXTERNAL_ID)]


def test_an_external_id_that_names_an_operator_elsewhere_is_not_believed() -> None:
    other = op(200, 300, "elsewhere", external_id=3)
    activities = linked([kernel(30, 40, 700, external_id=3)], [LAUNCH], [*OPS, other])
    assert found(activities, Activities.op_name, Activities.op_link) == [("inner", BY_CONTAINMENT)]


def test_the_launchs_own_external_id_counts_where_the_kernel_has_none() -> None:
    launch = call(20, 25, 700, external_id=1)
    activities = linked([kernel(30, 40, 700)], [launch], OPS)
    assert found(activities, Activities.op_name, Activities.op_link) == [("outer", BY_EXTERNAL_ID)]


def test_an_external_id_of_zero_names_nothing() -> None:
    unnamed = op(0, 100, "zero", external_id=0)
    activities = linked([kernel(30, 40, 700, external_id=0)], [LAUNCH], [unnamed, OPS[1]])
    assert found(activities, Activities.op_name, Activities.op_link) == [("inner", BY_CONTAINMENT)]


def test_without_a_launch_on_record_nothing_speaks_against_the_external_id() -> None:
    activities = linked([kernel(30, 40, 700, external_id=2)], [], OPS)
    assert found(activities, Activities.op_name, Activities.op_link) == [("inner", BY_EXTERNAL_ID)]


def test_without_launch_and_id_there_is_no_operator() -> None:
    assert ops_of([kernel(30, 40)], [LAUNCH], OPS) == [None]


def test_ids_that_repeat_the_correlation_name_no_operator() -> None:
    kernels = [kernel(30 + i, 31 + i, i, external_id=i) for i in range(1, 11)]
    calls = [call(20, 25, i) for i in range(1, 11)]
    assert ops_of(kernels, calls, OPS) == ["inner"] * 10


@pytest.mark.parametrize(
    ("same", "of", "trusted"), [(0, 10, True), (8, 10, True), (9, 10, False), (10, 10, False)]
)
def test_trust_is_a_question_to_the_whole_file(same: int, of: int, trusted: bool) -> None:
    rows = [kernel(i, i + 1, i + 1, external_id=i + 1 + (i >= same)) for i in range(of)]
    # Neither a row without ids nor one with zeros says anything of the others.
    rows += [kernel(99, 100, 5), kernel(99, 100, external_id=5), kernel(99, 100, 0, external_id=0)]
    assert external_ids_trusted(table(Kernels, *rows)) is trusted


def test_no_ids_at_all_are_nothing_to_distrust() -> None:
    assert external_ids_trusted(table(Kernels, kernel(0, 1, 0, external_id=0), kernel(2, 3)))


@PROPERTY
@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 4)), max_size=15),
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 4), st.booleans()), max_size=8),
)
def test_each_kernel_is_kept_once_and_linked_to_a_call_of_its_correlation(
    kernels: list[tuple[int, int]], calls: list[tuple[int, int, bool]]
) -> None:
    rows = [kernel(start, start + 1, correlation) for start, correlation in kernels]
    called = [
        call(start, start + 1, correlation, name="cuLaunchKernel" if launches else "cudaMalloc")
        for start, correlation, launches in calls
    ]
    activities = link(table(Kernels, *rows), table(Launches, *called), table(Ops))
    assert sorted(found(activities, Activities.start_ns, Activities.correlation)) == sorted(kernels)
    for correlation, launch in found(activities, Activities.correlation, Activities.launch):
        candidates = [i for i, c in enumerate(calls) if c[1] == correlation != 0]
        launching = [i for i in candidates if calls[i][2]]
        assert launch == next(iter([*launching, *candidates]), None)
