"""Real traces against exact numbers that were computed apart from this code."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SHARED
from whichwall.analyze.analysis import analyze
from whichwall.collect.importer import import_run
from whichwall.collect.kineto.rows import CATEGORIES
from whichwall.schemas.activities import Activities
from whichwall.schemas.gaps import Gaps
from whichwall.schemas.kernels import KERNEL
from whichwall.schemas.run import open_run

TRACES = SHARED / "traces"
FOLDERS = ("h200", "roles", "vllm", "public")


def references() -> list[tuple[str, str, dict[str, Any]]]:
    """Return folder, file and numbers of each handed trace."""
    return [
        (folder, file, numbers)
        for folder in FOLDERS
        if (path := TRACES / folder / "reference.json").is_file()
        for file, numbers in json.loads(path.read_text()).items()
    ]


REFERENCES = references()
needs_traces = pytest.mark.skipif(not REFERENCES, reason="no handed traces: ../shared is absent")


@needs_traces
@pytest.mark.parametrize(
    ("folder", "file", "numbers"), REFERENCES, ids=[f"{d}/{Path(f).name}" for d, f, _ in REFERENCES]
)
def test_a_real_trace_gives_exactly_its_reference_numbers(
    tmp_path: Path, folder: str, file: str, numbers: dict[str, Any]
) -> None:
    inputs = analyze(open_run(import_run([TRACES / folder / file], tmp_path / "run")))
    devices = inputs.summary.devices
    kinds = dict(inputs.activities[Activities.kind].value_counts().iter_rows())
    lengths = inputs.gaps[Gaps.dur_ns].sort().to_list()
    nothing = {"busy_ns": 0, "duration_sum_ns": 0, "span_ns": 0, "gaps": 0}
    by_kind = {CATEGORIES[name]: count for name, count in numbers["by_category"].items()}
    expected = nothing | numbers | {"by_category": by_kind}
    found = {
        "gpu_events": sum(d.gpu_activities for d in devices),
        "by_category": kinds,
        "busy_ns": sum(d.busy_ns for d in devices),
        "duration_sum_ns": sum(d.duration_sum_ns for d in devices),
        "span_ns": sum(d.window_ns for d in devices),
        "gaps": sum(d.gaps.count for d in devices),
        # The references take the upper of two middle values.
        "gap_median_ns": lengths[len(lengths) // 2] if lengths else None,
    }
    assert found == {key: expected.get(key) for key in found}
    for device in devices:
        assert device.busy_ns + device.gaps.total_ns == device.window_ns
    without_gpu = "no_gpu_activity" in [d.code for d in inputs.summary.diagnostics]
    assert without_gpu == (numbers["gpu_events"] == 0)
    assert not without_gpu or inputs.summary.verdict.wall is None


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
