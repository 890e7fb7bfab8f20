"""`analyze --reference`: what it writes, and which references it refuses in one line."""

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from tests.frames import Row, event, gpu_event, launch_event, trace_text
from whichwall.cli import main
from whichwall.collect.importer import import_run
from whichwall.schemas.roles import BY_REFERENCE, Roles

LAYER = ("flash_fwd_kernel", "nvjet_o", "rms_norm_kernel", "nvjet_up", "act_and_mul", "nvjet_down")


def imported(out: Path, events: list[Row]) -> Path:
    path = out.with_suffix(".json")
    path.write_bytes(trace_text(events))
    return import_run([path], out)


def eager(names: tuple[str, ...]) -> list[Row]:
    return [
        one
        for i, name in enumerate(names)
        for one in (
            event("cpu_op", "aten::mm", 100 * i, 50),
            launch_event(100 * i + 5, 10, i + 1),
            gpu_event(name, 100 * i + 40, 20, i + 1),
        )
    ]


def graph(names: tuple[str, ...]) -> list[Row]:
    nodes = [gpu_event(name, 100 + 10 * i, 8, 1) for i, name in enumerate(names)]
    return [event("cuda_runtime", "cudaGraphLaunch", 10, 50, args={"correlation": 1}), *nodes]


@pytest.fixture
def replayed(tmp_path: Path) -> Path:
    return imported(tmp_path / "replayed", graph(LAYER))


def analyzed(run: Path, reference: Path) -> Result:
    words = ["analyze", str(run), "--reference", str(reference)]
    return CliRunner().invoke(main, words)


def refused(result: Result) -> str:
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


def test_the_report_holds_the_roles_and_names_the_reference(replayed: Path, tmp_path: Path) -> None:
    reference = imported(tmp_path / "eager run", eager(LAYER))

    assert analyzed(replayed, reference).exit_code == 0

    summary = json.loads((replayed / "report" / "summary.json").read_text())
    assert summary["reference"] == "eager run"
    assert summary["devices"][0]["methods"] == {BY_REFERENCE: len(LAYER)}
    roles = pl.read_parquet(replayed / "report" / "roles.parquet")
    assert roles[Roles.method].to_list() == [BY_REFERENCE] * len(LAYER)
    assert "| reference |" in (replayed / "report" / "report.md").read_text()


def test_a_folder_that_is_no_run_is_refused(replayed: Path, tmp_path: Path) -> None:
    line = refused(analyzed(replayed, tmp_path))
    assert line.startswith(f"whichwall: {tmp_path}: no run.json in it")


def test_a_run_without_gpu_activity_is_refused(replayed: Path, tmp_path: Path) -> None:
    reference = imported(tmp_path / "cpu", [event("cpu_op", "aten::mm", 0, 50)])
    line = refused(analyzed(replayed, reference))
    assert line.startswith(f"whichwall: {reference}: no GPU activity and no capture of a graph")


def test_a_run_with_nothing_in_common_is_refused(replayed: Path, tmp_path: Path) -> None:
    reference = imported(tmp_path / "other", eager(("Cijk_Alik_Bljk", "hip_softmax")))
    line = refused(analyzed(replayed, reference))
    assert line.startswith(f"whichwall: {reference}: no kernel has the name of one in the run")
