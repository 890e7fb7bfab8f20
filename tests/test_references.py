"""Real traces against exact numbers that were computed apart from this code."""

from pathlib import Path

import pytest

from tests.differences import ABSENT, Check
from tests.references import TRACES, trace_checks
from whichwall.analyze.analysis import analyze
from whichwall.collect.importer import import_run
from whichwall.schemas.activities import Activities
from whichwall.schemas.kernels import KERNEL
from whichwall.schemas.run import open_run

CHECKS = trace_checks()
needs_traces = pytest.mark.skipif(not CHECKS, reason=f"no traces with a reference: {ABSENT}")


@needs_traces
@pytest.mark.parametrize(
    "check", CHECKS, ids=[f"{check.group}/{Path(check.name).name}" for check in CHECKS]
)
def test_a_real_trace_gives_exactly_its_reference_numbers(check: Check, tmp_path: Path) -> None:
    assert check.differences(tmp_path) == []


@needs_traces
def test_the_step_replayed_as_a_graph_has_the_activities_of_the_eager_step(tmp_path: Path) -> None:
    names = []
    for file in ("decode_static_eager.json.gz", "decode_cudagraph.json.gz"):
        inputs = analyze(open_run(import_run([TRACES / "h200" / file], tmp_path / file)))
        kernels = inputs.activities.filter(inputs.activities[Activities.kind] == KERNEL)
        names.append(kernels[Activities.name])
    eager, replayed = names
    assert len(eager) > 1000
    assert eager.to_list() == replayed.to_list()
