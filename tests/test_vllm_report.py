"""Reports of serving engines' traces: a profiled period is never passed off as a clean one."""

import gzip
import json
from pathlib import Path

import pytest

from tests.vllm import FOLDER, every_trace, needs_traces
from whichwall.analyze.analysis import analyze
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.markdown import render_markdown
from whichwall.collect.importer import import_run
from whichwall.schemas.run import open_run

PROFILED = "an engine's period under the profiler is 2 to 3 times its clean one"
# What a run with a stopwatch and no profiler took, as written beside the traces.
CLEAN_MS = 1.41


def analyzed(path: Path, out: Path, clean_step_ms: float | None = None) -> ReportInputs:
    run = import_run([path], out / "run", model=FOLDER / "qwen2.5-0.5b.config.json")
    return analyze(open_run(run), clean_step_ms=clean_step_ms)


@needs_traces
@every_trace
def test_a_report_says_that_the_period_is_the_profilers_before_it_says_what_is_idle(
    name: str, tmp_path: Path
) -> None:
    inputs = analyze(open_run(import_run([FOLDER / f"{name}.json.gz"], tmp_path / "run")))
    page = render_markdown(inputs, ())
    assert inputs.summary.verdict.wall is None
    for report in (inputs.summary.answer or "", page):
        assert -1 < report.find(PROFILED) < report.find("idle")


@needs_traces
def test_against_the_clean_step_the_gpu_idles_a_quarter_of_it(tmp_path: Path) -> None:
    path = FOLDER / "q05_graph__b1_prefill_decode8.json.gz"
    summary = analyzed(path, tmp_path, CLEAN_MS).summary
    decode = summary.steps.groups[0]
    assert decode.busy_fraction_clean == pytest.approx(0.76, abs=0.02)
    assert decode.busy_fraction_traced == pytest.approx(0.41, abs=0.02)
    assert summary.verdict.wall == "kernels"
    assert PROFILED not in (summary.answer or "")


@needs_traces
def test_an_engine_that_marks_no_passes_is_told_by_its_kernels(tmp_path: Path) -> None:
    whole = json.loads(
        gzip.decompress((FOLDER / "q05_graph__b8_sampling_decode4.json.gz").read_bytes())
    )
    whole["traceEvents"] = [
        event for event in whole["traceEvents"] if not event["name"].startswith("execute_")
    ]
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(whole))
    summary = analyzed(bare, tmp_path).summary
    assert (summary.steps.found_by, summary.steps.groups[0].count) == ("repetition", 4)
    assert PROFILED in (summary.verdict.reason or "")
