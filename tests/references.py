"""Given traces with a `reference.json`: numbers that were computed apart from this code."""

import json
from functools import partial
from pathlib import Path

from tests.conftest import SHARED
from tests.differences import Check, Facts, differing, not_whole
from whichwall.analyze.analysis import analyze
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.collect.importer import import_run
from whichwall.collect.kineto.rows import CATEGORIES
from whichwall.schemas.activities import Activities
from whichwall.schemas.gaps import Gaps
from whichwall.schemas.run import open_run

TRACES = SHARED / "traces"


def trace_checks() -> list[Check]:
    """Return a check of each given trace that has a reference."""
    return [
        Check(path.parent.name, file, partial(trace_differences, path.parent / file, numbers))
        for path in sorted(TRACES.rglob("reference.json"))
        for file, numbers in json.loads(path.read_text()).items()
    ]


def trace_differences(path: Path, numbers: Facts, folder: Path) -> list[str]:
    """Compare a trace with its reference, over the whole recording and all its devices."""
    run = import_run([path], folder / "run")
    inputs = analyze(open_run(run))
    devices = inputs.summary.devices
    gaps = inputs.gaps[Gaps.dur_ns].sort().to_list()
    durations = inputs.activities[Activities.dur_ns].sort().to_list()
    found: Facts = {
        "gpu_events": sum(d.gpu_activities for d in devices),
        "by_category": dict(inputs.activities[Activities.kind].value_counts().iter_rows()),
        "busy_ns": sum(d.busy_ns for d in devices),
        "duration_sum_ns": sum(d.duration_sum_ns for d in devices),
        "span_ns": sum(d.window_ns for d in devices),
        "gaps": sum(d.gaps.count for d in devices),
        # The references take the upper of two middle values.
        "gap_median_ns": gaps[len(gaps) // 2] if gaps else None,
        "duration_median_ns": durations[len(durations) // 2] if durations else None,
    }
    nothing: Facts = {"busy_ns": 0, "duration_sum_ns": 0, "span_ns": 0, "gaps": 0}
    kinds = {CATEGORIES[name]: n for name, n in _mapping(numbers["by_category"]).items()}
    wanted = nothing | numbers | {"by_category": kinds}
    return [
        *differing(found, wanted),
        *(
            f"device {d.device}: busy {d.busy_ns} + gaps {d.gaps.total_ns} != window {d.window_ns}"
            for d in devices
            if d.busy_ns + d.gaps.total_ns != d.window_ns
        ),
        *_unsaid_emptiness(inputs, empty=numbers["gpu_events"] == 0),
        *not_whole(run),
    ]


def _mapping(value: object) -> dict[str, int]:
    assert isinstance(value, dict)
    return value


def _unsaid_emptiness(inputs: ReportInputs, *, empty: bool) -> list[str]:
    """A trace without GPU activity says so and names no wall; another one does not say so."""
    said = "no_gpu_activity" in [d.code for d in inputs.summary.diagnostics]
    wall = inputs.summary.verdict.wall
    return [
        *([f"no_gpu_activity: {said}, expected {empty}"] if said != empty else ()),
        *([f"wall: {wall}, expected none"] if empty and wall is not None else ()),
    ]
