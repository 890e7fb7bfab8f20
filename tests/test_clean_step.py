"""The clean decode step of one run stands in for what an engine's trace does not have."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import ROOT
from whichwall.analyze.clean_step import clean_step_ns
from whichwall.cli import main
from whichwall.schemas.errors import InputError
from whichwall.schemas.run import open_run

DECODE, LADDER, PROMPT = (
    ROOT / "traces" / f"h200-{name}"
    for name in ("decode-qwen2.5-0.5b", "ladder-qwen2.5-1.5b", "prompt-qwen2.5-0.5b")
)
pytestmark = pytest.mark.skipif(not DECODE.exists(), reason="no committed runs in this checkout")


def test_a_run_of_one_point_gives_the_median_of_its_clean_decode_steps() -> None:
    assert 33 < clean_step_ns(open_run(DECODE)) / 1e6 < 34


@pytest.mark.parametrize(
    ("path", "found"), [(LADDER, "4 points with such steps"), (PROMPT, "no clean decode step")]
)
def test_a_run_of_several_points_or_of_none_is_refused(path: Path, found: str) -> None:
    with pytest.raises(InputError, match=found):
        clean_step_ns(open_run(path))


def test_the_step_of_another_run_is_what_a_trace_is_judged_by(tmp_path: Path) -> None:
    trace = tmp_path / "step.json"
    trace.write_text(json.dumps({"traceEvents": [
        {"ph": "X", "cat": "user_annotation", "name": "execute_context_0(0)_generation_1(1)",
         "pid": 1, "tid": 1, "ts": 1000, "dur": 20_000},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1005,
         "dur": 10_000},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
         "ts": 1010, "dur": 5, "args": {"correlation": 7}},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1020, "dur": 50,
         "args": {"correlation": 7, "device": 0, "stream": 7}},
    ]}))  # fmt: skip
    run = tmp_path / "run"
    assert CliRunner().invoke(main, ["import", str(trace), "--out", str(run)]).exit_code == 0

    asked = ["analyze", str(run), "--clean-run", str(DECODE), "--json"]
    found = json.loads(CliRunner().invoke(main, asked).stdout)
    assert found["steps"]["groups"][0]["clean_step_ns_median"] == clean_step_ns(open_run(DECODE))
    both = CliRunner().invoke(main, [*asked, "--clean-step-ms", "1"])
    assert both.exit_code == 2
    assert "give one of them" in both.output


@pytest.mark.parametrize("option", ["--clean-run", "--reference"])
def test_a_run_of_another_model_is_refused_by_name(option: str, tmp_path: Path) -> None:
    other = ROOT / "traces" / "h200-graph-llama-3.1-8b"
    asked = ["analyze", str(DECODE), option, str(other), "--out", str(tmp_path / "report")]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 2
    assert f"a run of llama-3.1-8b, where {DECODE} is one of qwen2.5-0.5b" in result.output
