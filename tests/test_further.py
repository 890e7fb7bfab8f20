"""Further processes of a run: their passes, what fails, and what an interrupt leaves."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT
from whichwall.analyze.analysis import analyze
from whichwall.analyze.report.markdown import render_markdown
from whichwall.collect import further, processes
from whichwall.collect.collect import collect
from whichwall.collect.further import find_unstable_processes
from whichwall.collect.options import CollectOptions
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import CollectError
from whichwall.schemas.folder import file_name
from whichwall.schemas.manifest import read_manifest
from whichwall.schemas.passes import CLEAN, DECODE, Passes
from whichwall.schemas.points import Points
from whichwall.schemas.run import open_run
from whichwall.schemas.table import Table

PATIENCE_S = 120.0
Rows = list[dict[str, Any]]


def options(out: Path, repeat: int) -> CollectOptions:
    return CollectOptions(
        model="tiny", device="cpu", prompt_tokens=8, new_tokens=4, quick=True, repeat=repeat,
        out=out,
    )  # fmt: skip


def here(function: str, spec: dict[str, Any], folder: Path, seconds: float) -> Any:
    """Run what a fresh process would, in this one; both ways through JSON."""
    assert function == f"{further.measure.__module__}:{further.measure.__name__}"
    return json.loads(json.dumps(further.measure(json.loads(json.dumps(spec)), folder)))


def rows(run: Path, table: type[Table]) -> Rows:
    found: Rows = pq.read_table(run / file_name(table)).to_pylist()
    return found


def clean(process: int, *walls_ms: int) -> list[dict[str, object]]:
    return [
        {
            Passes.stage: CLEAN,
            Passes.phase: DECODE,
            Passes.visit: process,
            Passes.wall_ns: ms * 1_000_000,
        }
        for ms in walls_ms
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Collect one run of three processes for all tests that look at one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "run_fresh", here)
        return collect(options(tmp_path_factory.mktemp("runs") / "run", 3))


def test_further_processes_warm_up_and_time_clean_passes_alone(run: Path) -> None:
    stages = {
        number: {row[Passes.stage] for row in rows(run, Passes) if row[Passes.visit] == number}
        for number in range(3)
    }

    assert stages == {
        0: {"warmup", "clean", "profiled", "after"},
        1: {"warmup", "clean"},
        2: {"warmup", "clean"},
    }
    assert {row[Passes.visit] for row in rows(run, Passes)} == {0, 1, 2}
    assert [path.name for path in run.parent.iterdir()] == [run.name]


def test_the_command_would_collect_as_many_again(run: Path) -> None:
    assert "--repeat 3" in read_manifest(run).command


def test_the_report_shows_how_processes_differ(run: Path) -> None:
    inputs = analyze(open_run(run))

    assert "| medians of 3 processes |" in render_markdown(inputs, [])
    timed = [row for row in inputs.summary.sweep if row["phase"] == DECODE]
    assert [row["visits"] for row in timed] == [3]


def test_a_process_that_crashes_is_told_and_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash_first(function: str, spec: dict[str, Any], folder: Path, seconds: float) -> Any:
        if spec["process"] == 1:
            raise CollectError("its process ended by signal 11 before it was done")
        return here(function, spec, folder, seconds)

    monkeypatch.setattr(processes, "run_fresh", crash_first)

    found = collect(options(tmp_path / "run", 3))

    assert {row[Passes.visit] for row in rows(found, Passes)} == {0, 2}
    assert [row[Points.reason] for row in rows(found, Points)] == [
        "1 of 3 processes failed: its process ended by signal 11 before it was done"
    ]


def test_processes_that_differ_are_called_unstable_even_if_few_passes_do() -> None:
    found = find_unstable_processes([*clean(0, *[16] * 100), *clean(1, 62)], DECODE)

    assert found == [
        Diagnostic(
            "unstable_steps",
            "warning",
            2,
            "the median clean decode pass took 16 to 62 ms in 2 processes; collect again on a "
            "quiet host",
        )
    ]


def test_processes_that_agree_are_judged_by_their_passes_together() -> None:
    assert find_unstable_processes([*clean(0, 10, 11), *clean(1, 10, 12)], DECODE) == []
    (found,) = find_unstable_processes([*clean(0, 10, 20, 30), *clean(1, 10, 20, 30)], DECODE)
    assert found.message.startswith("clean decode passes took")


def test_an_interrupt_ends_a_further_process_and_leaves_nothing(tmp_path: Path) -> None:
    code = """
        from pathlib import Path
        from whichwall.collect.collect import collect
        from whichwall.collect.options import CollectOptions
        collect(CollectOptions(model="tiny", device="cpu", prompt_tokens=8, new_tokens=4,
                               quick=True, repeat=10**6, out=Path("run")))
        """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / ".types")},
    )
    deadline = time.monotonic() + PATIENCE_S
    while not (begun := list(tmp_path.glob(".run.*/process1"))) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert begun
    while not (children := _using(begun[0])) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert children

    parent.send_signal(signal.SIGTERM)
    _, said = parent.communicate(timeout=PATIENCE_S)

    assert b"KeyboardInterrupt" in said
    assert list(tmp_path.iterdir()) == []
    assert _using(begun[0]) == []


def _using(folder: Path) -> list[str]:
    """Return the living processes whose command names a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(folder.name) + b"\0" in path.read_bytes().replace(b"/", b"\0") and (
                os.fsencode(folder.parent.name) in path.read_bytes()
            ):
                found.append(path.parent.name)
        except OSError:
            continue
    return found
