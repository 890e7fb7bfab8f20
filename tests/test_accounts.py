"""Accounts, predictions and verdicts of the runs that are committed."""

from functools import cache

import pytest

from tests.conftest import ROOT
from whichwall.analyze.analysis import analyze
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.walls import LAUNCHES
from whichwall.schemas.account import Account
from whichwall.schemas.engines import CUDA_GRAPH
from whichwall.schemas.moves import GRAPH
from whichwall.schemas.points import Points
from whichwall.schemas.run import open_run
from whichwall.schemas.summary import Summary

RUNS = sorted(path.parent.name for path in (ROOT / "traces").glob("*/run.json"))
# How near an account comes to the clean step of a graph, and a prediction from other passes to it.
NEAR, PREDICTED_NEAR = 0.05, 0.15
BATCHES = ("", "-batch-8")


@cache
def analyzed(name: str) -> ReportInputs:
    path = ROOT / "traces" / name
    if not path.exists():
        pytest.skip("the run is not in this checkout")
    return analyze(open_run(path))


def summary(name: str) -> Summary:
    return analyzed(name).summary


def accounts(name: str) -> list[Account]:
    return summary(name).account


@pytest.mark.parametrize("name", RUNS)
def test_each_traced_step_of_a_committed_run_adds_up_and_graph_steps_are_told_within_5_percent(
    name: str,
) -> None:
    points = analyzed(name).points
    engines = dict(points.select(Points.point, Points.engine).iter_rows())
    groups = summary(name).steps.groups
    traced = [g for g in groups if g.busy_ns_median and g.clean_step_ns_median]

    assert len(accounts(name)) == len(traced)
    for one in accounts(name):
        assert sum(part.ns for part in one.parts) == one.step_ns
        if engines[one.point] == CUDA_GRAPH:
            assert one.error is not None
            assert abs(one.error) <= NEAR


def test_the_eager_decode_step_of_the_h200_waits_for_launches_for_most_of_its_time() -> None:
    (one,) = accounts("h200-decode-qwen2.5-0.5b")

    launch = next(part for part in one.parts if part.detail == "launch")
    assert (one.of, one.expected_ns) == ("clean", None)
    assert launch.ns > 0.9 * one.step_ns
    assert one.scale is not None
    assert one.scale < 1
    assert one.parts[-1].ns == 0


QWENS = [f"h200-graph-qwen2.5-{size}{batch}" for size in ("0.5b", "1.5b") for batch in BATCHES]


@pytest.mark.parametrize("name", [*QWENS, "h200-graph-llama-3.1-8b"])
def test_models_at_batch_1_and_8_replay_as_fast_as_their_kernels_told(name: str) -> None:
    graph = next(move for move in summary(name).moves if move.name == GRAPH)

    assert graph.measured_by == "this step"
    assert graph.error is not None
    assert abs(graph.error) <= PREDICTED_NEAR


@pytest.mark.parametrize("name", ["h200-ladder-vllm-qwen2.5-0.5b", "h200-ladder-qwen2.5-1.5b"])
def test_the_test_that_confirms_a_wall_was_run_by_both_ladders(name: str) -> None:
    verdict = summary(name).verdict

    assert verdict.wall == LAUNCHES
    assert verdict.tested is not None
    assert verdict.tested.endswith("confirmed")
