"""Real H200 passes of many architectures: the roles found against those recorded with them."""

import pytest

from tests.conftest import ROOT
from whichwall.analyze.analysis import analyze
from whichwall.schemas.run import open_run
from whichwall.schemas.summary import GPU_ACTIVITIES

RUNS = sorted(path for path in (ROOT / "tests" / "data" / "roles").iterdir() if path.is_dir())

# What is promised of every trace, not on average.
TIME_RIGHT, KERNELS_RIGHT = 0.99, 0.98


@pytest.mark.parametrize("run", RUNS, ids=lambda path: path.name)
def test_nearly_all_gpu_time_and_kernels_get_a_role_that_the_truth_accepts(run: object) -> None:
    check = analyze(open_run(str(run))).summary.role_check

    assert check is not None
    assert (check.of, check.kernels > 0) == (GPU_ACTIVITIES, True)
    assert check.time_right is not None
    assert check.time_right >= TIME_RIGHT
    assert check.kernels_right is not None
    assert check.kernels_right >= KERNELS_RIGHT


def test_at_least_eight_architectures_are_tried() -> None:
    assert len({path.name.rsplit("_", 2)[0] for path in RUNS}) >= 8
