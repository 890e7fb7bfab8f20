"""Runs of a real vLLM on the CPU, from the command to the answer; skipped where there is none."""

import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.test_sweep_runs import ends, rows
from whichwall.analyze.analysis import analyze_to_folder
from whichwall.analyze.validate import validate
from whichwall.schemas.manifest import read_manifest
from whichwall.schemas.passes import AFTER, CLEAN, DECODE, PREFILL, PROFILED, Passes
from whichwall.schemas.points import Points
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.summary import StepGroup, Summary

VENV = Path(os.environ.get("VLLM_VENV") or ROOT / ".venv-vllm")
PYTHON = VENV / "bin" / "python"
pytestmark = pytest.mark.skipif(
    not PYTHON.exists(), reason="no vLLM: make vllm, or name its environment in VLLM_VENV"
)
# Far beyond what anything here takes; only a hang reaches it.
PATIENCE_S = 600.0
GENERATED = "execute_context_0(0)_generation_{0}({0})"


RUNS = {
    # Prompts are longer than a block of the cache, in which an earlier one would be found.
    "decode": (
        *("--engine", "vllm", "--batch-size", "2"),
        *("--prompt-tokens", "130", "--new-tokens", "16"),
    ),
    "batch": ("--mode", "batch", "--engine", "vllm", "--values", "1,3", "--new-tokens", "8"),
    "ladder": ("--mode", "ladder", "--values", "eager,vllm", "--new-tokens", "8"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Collect every run, side by side: times of theirs mean nothing here."""
    folder = tmp_path_factory.mktemp("vllm")
    started = {name: start(folder / name, *asked) for name, asked in RUNS.items()}
    try:
        for name, process in started.items():
            out, said = process.communicate(timeout=PATIENCE_S)
            assert (out.split(), process.returncode) == ([str(folder / name)], 0), said
    finally:
        for process in started.values():
            process.kill()
            process.communicate()
    return {name: folder / name for name in RUNS}


def start(out: Path, *asked: str) -> subprocess.Popen[str]:
    """Start a command in vLLM's environment; it says nothing but where its run is."""
    words = ("-m", "whichwall.cli", "collect", "--device", "cpu", "--quick", "--out", str(out))
    return subprocess.Popen(
        [str(PYTHON), *words, *asked],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / ".types"),
            "VLLM_CPU_CI_ENV": "1",  # do not compile for half a minute
            "OMP_NUM_THREADS": "1",  # threads of three engines would wait for one another
        },
    )


@pytest.fixture
def decode(runs: dict[str, Path]) -> Path:
    return runs["decode"]


@pytest.fixture
def batches(runs: dict[str, Path]) -> Path:
    return runs["batch"]


@pytest.fixture
def ladder(runs: dict[str, Path]) -> Path:
    return runs["ladder"]


def summary_of(run: Path) -> Summary:
    return analyze_to_folder(run)[0].summary


def traced(groups: Sequence[StepGroup]) -> list[tuple[int, str | None, int | None, int]]:
    """Return point, phase and batch of the steps of each group, and how many there are."""
    return [(one.point, one.phase, one.batch, one.count) for one in groups if one.count]


def annotations(run: Path) -> Counter[tuple[Any, Any]]:
    return Counter(
        (row[Ranges.point], row[Ranges.name])
        for row in rows(run, Ranges)
        if row[Ranges.name].startswith("execute_")
    )


def test_a_decode_run_is_whole_and_says_what_the_engine_was_given(decode: Path) -> None:
    assert validate(decode).is_whole
    engine = read_manifest(decode).engine
    assert engine is not None
    assert engine.given["max_model_len"] == "146"
    assert (engine.longest_tokens, engine.attention) == (146, "CPU_ATTN")


def test_each_token_is_a_pass_with_its_context(decode: Path) -> None:
    found = [row for row in rows(decode, Passes) if row[Passes.stage] == CLEAN][:16]

    assert [row[Passes.phase] for row in found] == [PREFILL, *15 * [DECODE]]
    assert [row[Passes.context_tokens] for row in found] == [0, *range(130, 145)]
    assert {row[Passes.batch] for row in found} == {2}
    assert {PROFILED, AFTER} <= {row[Passes.stage] for row in rows(decode, Passes)}


def test_steps_are_the_engine_s_own_with_their_clean_step(decode: Path) -> None:
    summary = summary_of(decode)

    assert annotations(decode) == {(0, GENERATED.format(2)): 4}
    assert summary.steps is not None
    assert summary.steps.found_by == "annotation"
    assert traced(summary.steps.groups) == [(0, DECODE, 2, 4)]
    clean = [row[Passes.wall_ns] for row in rows(decode, Passes) if row[Passes.stage] == CLEAN]
    step_ns = summary.steps.groups[0].clean_step_ns_median
    assert step_ns is not None
    assert min(clean) <= step_ns <= max(clean)
    assert summary.verdict.reason == "no GPU: this run used the CPU"


def test_a_sweep_of_batches_traces_each_batch_as_what_it_is(batches: Path) -> None:
    assert validate(batches).is_whole
    assert ends(batches) == 2 * [("done", None)]
    assert annotations(batches) == {(0, GENERATED.format(1)): 4, (1, GENERATED.format(3)): 4}
    steps = summary_of(batches).steps
    assert steps is not None
    assert traced(steps.groups) == [(0, DECODE, 1, 4), (1, DECODE, 3, 4)]


def test_a_ladder_has_vllm_as_a_rung_beside_an_engine_of_ours(ladder: Path) -> None:
    assert validate(ladder).is_whole
    assert [row[Points.engine] for row in rows(ladder, Points)] == ["eager", "vllm"]
    assert ends(ladder) == 2 * [("done", None)]
    assert annotations(ladder) == {(1, GENERATED.format(1)): 4}
    steps = summary_of(ladder).steps
    assert steps is not None
    assert traced(steps.groups) == [(0, DECODE, 1, 4), (1, DECODE, 1, 4)]
