"""Whole sweeps of the smallest model on the CPU: order, outcomes, and going on after a kill."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from tests.conftest import ROOT
from whichwall.analyze.analysis import analyze_to_folder
from whichwall.collect import sweep, traced, visits
from whichwall.collect.collect import collect
from whichwall.collect.decoder import Decoder
from whichwall.collect.device import Device
from whichwall.collect.engines.make import make_decoder
from whichwall.collect.journal import FILE, folder_of, resume
from whichwall.collect.options import CollectOptions
from whichwall.collect.sampler import Sampler
from whichwall.collect.sampler import Samples as Sampled
from whichwall.schemas.errors import UsageError
from whichwall.schemas.folder import file_name
from whichwall.schemas.manifest import read_manifest
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import Points
from whichwall.schemas.samples import Samples
from whichwall.schemas.table import Table

# Far beyond what anything here takes; only a hang reaches it.
PATIENCE_S = 240.0
OUTPUTS = "1,2,3"
Row = dict[str, Any]


def asked(out: Path, mode: str = "output", **more: Any) -> CollectOptions:
    return CollectOptions(
        **{"mode": mode, "model": "tiny", "device": "cpu", "quick": True, "out": out,
           "prompt_tokens": 8, **more}
    )  # fmt: skip


def rows(run: Path, table: type[Table]) -> list[Row]:
    found: list[Row] = pq.read_table(run / file_name(table)).to_pylist()
    return found


def ends(run: Path) -> list[tuple[object, object]]:
    return [(row[Points.outcome], row[Points.reason]) for row in rows(run, Points)]


def in_order(run: Path) -> list[tuple[object, ...]]:
    """Return point, visit, stage and phase of each pass, in order, each once."""
    keys = (Passes.point, Passes.visit, Passes.stage, Passes.phase)
    found = [tuple(row[key] for key in keys) for row in rows(run, Passes)]
    return list(dict.fromkeys(found))


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Collect one sweep for all tests that look at one."""
    return collect(asked(tmp_path_factory.mktemp("sweeps") / "run", values=OUTPUTS, repeat=3))


@pytest.fixture
def no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare the seconds that measuring this device's limits takes."""
    monkeypatch.setattr(sweep, "_measure_limits", lambda *_: None)


def test_points_are_visited_back_and_forth_each_warmed_up_anew(unbroken: Path) -> None:
    order = [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1), (0, 2), (1, 2), (2, 2)]

    assert in_order(unbroken) == [
        (point, visit, stage, phase)
        for point, visit in order
        for stage in ("warmup", "clean")
        for phase in (("prefill", "decode") if point else ("prefill",))
    ]


def test_a_finished_sweep_leaves_its_run_alone(unbroken: Path) -> None:
    assert [path.name for path in unbroken.parent.iterdir()] == [unbroken.name]
    assert read_manifest(unbroken).command == (
        "whichwall collect --mode output --model tiny --weights dummy --engine eager --attention "
        "auto --dtype float32 --values 1,2,3 --prompt-tokens 8 --batch-size 1 --device cpu "
        "--sample-interval-ms 100 --repeat 3 --quick"
    )


def test_a_sweep_can_be_analyzed(unbroken: Path, tmp_path: Path) -> None:
    inputs, _ = analyze_to_folder(unbroken, tmp_path / "report")

    assert inputs.summary.sweep
    assert {row["point"] for row in inputs.summary.sweep} == {0, 1, 2}


@pytest.mark.usefixtures("no_limits")
def test_a_killed_sweep_goes_on_as_if_unbroken(unbroken: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    child = start(out, "--values", OUTPUTS, "--repeat", "3")
    wait_for_visits(out, 2)
    child.kill()
    child.communicate()
    kept = resume(out).visits
    assert [path.name for path in tmp_path.iterdir()] == [folder_of(out).name]

    run = collect(CollectOptions(resume=out))

    assert [path.name for path in tmp_path.iterdir()] == [run.name]
    measured = [row for one in kept for row in one.passes]
    assert rows(run, Passes)[: len(measured)] == measured
    assert in_order(run) == in_order(unbroken)
    assert without_times(run) == without_times(unbroken)
    assert read_manifest(run).command == read_manifest(unbroken).command
    said = {d.code: d.count for d in read_manifest(run).diagnostics}
    assert said["sweep_resumed"] == len(kept)


def without_times(run: Path) -> list[Row]:
    return [{**row, Points.setup_ns: None} for row in rows(run, Points)]


def test_ctrl_c_says_in_one_line_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    child = start(out, "--repeat", "1000")
    wait_for_visits(out, 1)

    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=PATIENCE_S)

    assert child.returncode == 130
    visits = len(resume(out).visits)
    kept = "1 visit is" if visits == 1 else f"{visits} visits are"
    assert said.decode() == f"whichwall: interrupted; {kept} kept; go on with --resume {out}\n"


def start(out: Path, *more: str) -> subprocess.Popen[bytes]:
    words = ["collect", "--mode", "output", "--model", "tiny", "--device", "cpu", "--quick",
             "--prompt-tokens", "8", "--out", str(out), *more]  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "whichwall.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / ".types")},
    )


def wait_for_visits(out: Path, count: int) -> None:
    journal = folder_of(out) / FILE
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if journal.is_file() and journal.read_bytes().count(b"\n") > count:
            return
        time.sleep(0.01)
    pytest.fail("no visit was noted in time")


@pytest.mark.usefixtures("no_limits")
def test_attention_that_has_no_kernel_is_a_point_that_was_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traced, "FUNCTION", "no_such_module:no_function")

    run = collect(asked(tmp_path / "run", "attention", new_tokens=4))

    lacking = "attention {} has no kernel for this model, type and device"
    assert ends(run) == [
        ("done", None),
        ("refused", lacking.format("efficient")),
        ("done", None),
        ("refused", lacking.format("cudnn")),
        ("done", None),
    ]
    # A trace that fails in its own process is no more than a note.
    failed = [d.message for d in read_manifest(run).diagnostics if d.code == "trace_failed"]
    assert [text.split(":")[0] for text in failed] == [
        "no trace of math", "no trace of flash", "no trace of eager",
    ]  # fmt: skip


class Full(Decoder):
    """A decoder that finds no memory."""

    def prefill(self, tokens: torch.Tensor) -> tuple[torch.Tensor, Any]:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has …")


@pytest.mark.usefixtures("no_limits")
def test_a_batch_that_does_not_fit_ends_its_point_and_traces_come_from_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = iter((1, 2, 4, 4, 1))  # in two rounds; the second has no further batch of 2

    def make(engine: str, model: Any, device: Device) -> Decoder:
        return Full(model) if next(batches) == 2 else make_decoder(engine, model, device)

    monkeypatch.setattr(visits, "make_decoder", make)

    run = collect(asked(tmp_path / "run", "batch", new_tokens=4))

    assert ends(run) == [
        ("done", None),
        ("out_of_memory", "out of memory, allocating 2.00 GiB"),
        ("done", None),
    ]
    assert {row[Passes.point] for row in rows(run, Passes)} == {0, 2}
    profiled = [row for row in rows(run, Passes) if row[Passes.stage] == "profiled"]
    assert {row[Passes.point] for row in profiled} == {0, 2}
    assert [rank.point for rank in read_manifest(run).ranks] == [0, 2]
    analyze_to_folder(run, tmp_path / "report")


class Sampling(Sampler):
    """A sampler that has one more sample each time it is asked."""

    taken = 0

    def rows(self) -> list[Row]:
        type(self).taken += 1
        return [{Samples.time_ns: number} for number in range(self.taken)]

    def finish(self) -> Sampled:
        return Sampled(self.rows(), None, [])


def test_samples_and_visits_survive_an_interrupt_after_the_last_visit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "Sampler", Sampling)
    monkeypatch.setattr(sweep, "_measure_limits", interrupt)
    with pytest.raises(KeyboardInterrupt, match="3 visits are kept"):
        collect(asked(tmp_path / "run", values="1", repeat=3))
    with pytest.raises(UsageError, match="unfinished sweep"):
        collect(asked(tmp_path / "run", values="1"))

    monkeypatch.setattr(sweep, "_measure_limits", lambda *_: None)
    Sampling.taken = 10
    run = collect(CollectOptions(resume=tmp_path / "run"))

    stamps = [row[Samples.time_ns] for row in rows(run, Samples)]
    assert stamps == [*range(3), *range(11)]
    assert list(dict.fromkeys(row[Passes.visit] for row in rows(run, Passes))) == [0, 1, 2]


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt
