"""Operators of graph replays, from the capture that the same file holds."""

import polars as pl

from tests.frames import call, kernel, op
from whichwall.analyze.links import BY_CAPTURE, link
from whichwall.analyze.roles.captured import captured, with_captured
from whichwall.schemas.activities import Activities
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.ops import Ops
from whichwall.schemas.run import frame

WORDS = ("mul", "add", "silu", "mm", "cat")
KERNELS = {
    "mul": "elementwise_kernel<MulFunctor>",
    "add": "vectorized_elementwise_kernel<CUDAFunctor_add>",
    "silu": "vectorized_elementwise_kernel<silu_kernel>",
    "mm": "nvjet_sm90_tst",
    "cat": "CatArrayBatchedCopy",
}
BEGIN, END, REPLAY = "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphLaunch"
Frame = pl.DataFrame


def captures(*sequences: tuple[str, ...]) -> tuple[Frame, Frame]:
    """Return launches and operators: one capture for each sequence of words."""
    launches, ops, time = [], [], 0
    for sequence in sequences:
        launches.append(call(time, time + 1, None, name=BEGIN))
        for word in sequence:
            time += 10
            ops.append(op(time, time + 8, f"aten::{word}", input_dims=f"[[{time}]]"))
            launches.append(call(time + 2, time + 4, time))
        time += 10
        launches.append(call(time, time + 1, None, name=END))
        time += 10
    launches.append(call(100_000, 100_001, 7, name=REPLAY))
    launches.append(call(200_000, 200_001, 8, name=REPLAY))
    return frame(Launches, launches), frame(Ops, ops)


def replayed(launches: Frame, ops: Frame, *runs: tuple[int, tuple[str, ...]]) -> Frame:
    rows = [
        kernel(correlation * 1_000_000 + i * 10, correlation * 1_000_000 + i * 10 + 5, correlation,
               name=KERNELS.get(word, word))
        for correlation, words in runs
        for i, word in enumerate(words)
    ]  # fmt: skip
    return link(frame(Kernels, rows), launches, ops)


def told(launches: Frame, ops: Frame, *runs: tuple[int, tuple[str, ...]]) -> Frame:
    activities = replayed(launches, ops, *runs)
    return with_captured(activities, captured(launches, ops))


def test_the_kth_node_of_each_replay_has_the_operator_of_the_kth_captured_call() -> None:
    launches, ops = captures(WORDS)
    found = told(launches, ops, (7, WORDS), (8, WORDS))
    assert found[Activities.op_name].to_list() == [f"aten::{word}" for word in WORDS] * 2
    assert found[Activities.op_dims].to_list() == ops[Ops.input_dims].to_list() * 2
    assert found[Activities.op].to_list() == [*range(5)] * 2
    assert set(found[Activities.op_link]) == {BY_CAPTURE}


def test_each_graph_finds_its_own_of_several_captures() -> None:
    turned = WORDS[::-1]
    launches, ops = captures(WORDS, turned)
    found = told(launches, ops, (7, turned), (8, WORDS))
    assert found[Activities.op].to_list() == [*range(5, 10), *range(5)]


def test_a_graph_that_does_something_else_keeps_its_kernels_without_operators() -> None:
    launches, ops = captures(WORDS)
    found = told(launches, ops, (7, ("cat", "cat", "mm", "silu", "add")))
    assert found[Activities.op_name].null_count() == 5
    assert BY_CAPTURE not in set(found[Activities.op_link])


def test_a_node_more_than_was_captured_stays_without_operator_and_moves_no_other() -> None:
    many = WORDS * 5
    launches, ops = captures(many)
    nodes = (*many[:12], "Memcpy DtoD (Device -> Device)", *many[12:])
    found = told(launches, ops, (7, nodes))
    names = found[Activities.op_name].to_list()
    assert names[12] is None
    assert names[:12] + names[13:] == [f"aten::{word}" for word in many]


def test_of_two_nested_calls_the_inner_one_is_the_node() -> None:
    launches, ops = captures(WORDS)
    outer = frame(Launches, [call(11, 15, 999)])  # holds the first captured launch
    found = told(pl.concat([launches, outer]), ops, (7, WORDS))
    assert found[Activities.op].to_list() == [*range(5)]


def test_without_a_capture_on_record_nothing_changes() -> None:
    launches, ops = captures()
    activities = replayed(launches, ops, (7, WORDS))
    assert with_captured(activities, captured(launches, ops)).equals(activities)


def test_operators_of_another_run_have_no_row_numbers() -> None:
    launches, ops = captures(WORDS)
    theirs = captured(launches, ops).named()
    found = with_captured(replayed(launches, ops, (7, WORDS)), theirs)
    assert found[Activities.op].null_count() == 5
    assert found[Activities.op_name].null_count() == 0
