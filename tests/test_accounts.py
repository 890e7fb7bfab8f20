"""Accounts and predictions of the runs that are committed."""

from pathlib import Path

import pytest

from tests.conftest import ROOT
from whichwall.analyze.analysis import analyze
from whichwall.schemas.engines import CUDA_GRAPH
from whichwall.schemas.points import Points
from whichwall.schemas.run import open_run

RUNS = sorted(path.parent for path in (ROOT / "traces").glob("*/run.json"))
NEAR = 0.05


@pytest.mark.parametrize("path", RUNS, ids=[path.name for path in RUNS])
def test_each_traced_step_of_a_committed_run_adds_up_and_graph_steps_are_told_within_5_percent(
    path: Path,
) -> None:
    inputs = analyze(open_run(path))
    engines = dict(inputs.points.select(Points.point, Points.engine).iter_rows())
    traced = [g for g in inputs.summary.steps.groups if g.busy_ns_median and g.clean_step_ns_median]

    assert len(inputs.summary.account) == len(traced)
    for one in inputs.summary.account:
        assert sum(part.ns for part in one.parts) == one.step_ns
        if engines[one.point] == CUDA_GRAPH:
            assert one.error is not None
            assert abs(one.error) <= NEAR


def test_the_eager_decode_step_of_the_h200_waits_for_launches_for_most_of_its_time() -> None:
    path = ROOT / "traces" / "h200-decode-qwen2.5-0.5b"
    if not path.exists():
        pytest.skip("the run is not in this checkout")
    (one,) = analyze(open_run(path)).summary.account

    launch = next(part for part in one.parts if part.detail == "launch")
    assert (one.of, one.expected_ns, launch.ns) == ("clean", None, 16_094_708)
    assert one.scale is not None
    assert 0.5 < one.scale < 0.52
    assert one.parts[-1].ns == 0
