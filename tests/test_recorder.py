"""A loop that is recorded: its stages, its trace, and what ends early or in an error."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from tests.test_sampler import FOREVER, UUID, write
from whichwall.analyze.analysis import analyze_to_folder
from whichwall.collect import record, recorder
from whichwall.collect.device import Device
from whichwall.collect.recording import Recording
from whichwall.collect.script import NOTE, OUT
from whichwall.collect.workload import TRACE_WARMUPS
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import InputError, UsageError
from whichwall.schemas.folder import file_name
from whichwall.schemas.manifest import read_manifest
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import Points
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.table import Table

SHORT: dict[str, Any] = {"warmup": 1, "clean": 3, "profiled": 2, "after": 2}
WHOLE = 1 + 3 + TRACE_WARMUPS + 2 + 2
CONFIG = {
    "vocab_size": 64,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}


class Config:
    """As much of a transformers config as a module carries."""

    model_type = "llama"

    def to_dict(self) -> dict[str, int]:
        return CONFIG


class Decoder(torch.nn.Linear):
    config = Config()


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record as a plain process, whatever runs the tests."""
    for name in (OUT, NOTE, "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def rows(run: Path, table: type[Table]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = pq.read_table(run / file_name(table)).to_pylist()
    return found


def loop(out: Path | None, steps: int, model: Any = None, **asked: Any) -> Recording:
    """Record a loop of so many steps, each under a range of its own."""
    module = torch.nn.Linear(4, 4) if model is None else model
    with record(out, model=module, **(SHORT | asked)) as run:
        for _ in range(steps):
            with torch.profiler.record_function("mine"):
                torch.ones(4).add(1)
            run.step()
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record one loop for all tests that look at one."""
    out = tmp_path_factory.mktemp("runs") / "mine"
    loop(out, WHOLE, batch=2, tokens=2)
    return out


def test_steps_go_through_the_stages_in_order(run: Path) -> None:
    found = [(row[Passes.stage], row[Passes.index]) for row in rows(run, Passes)]

    assert found == [
        ("clean", 0), ("clean", 1), ("clean", 2),
        ("profiled", 0), ("profiled", 1),
        ("after", 0), ("after", 1),
    ]  # fmt: skip


def test_traced_steps_are_marked_and_the_users_own_ranges_stay(run: Path) -> None:
    named = [row[Ranges.name] for row in rows(run, Ranges)]

    assert named == ["whichwall::decode#0", "mine", "whichwall::decode#1", "mine"]


def test_the_point_says_what_is_known_of_the_loop(run: Path) -> None:
    assert rows(run, Points) == [
        dict.fromkeys(Points.COLUMNS)
        | {
            Points.point: 0,
            Points.label: "recorded",
            Points.engine: "eager",
            Points.dtype: "float32",
            Points.batch: 2,
            Points.outcome: "done",
        }
    ]


def test_a_run_holds_nothing_of_its_making(run: Path) -> None:
    assert [path.name for path in run.parent.iterdir()] == [run.name]
    assert {path.suffix for path in run.iterdir() if path.name != "run.json"} == {".parquet"}


def test_a_recorded_run_is_analyzed_like_any_other(run: Path, tmp_path: Path) -> None:
    inputs, report = analyze_to_folder(run, tmp_path / "report")

    clean = sorted(
        int(str(row[Passes.wall_ns])) for row in rows(run, Passes) if row[Passes.stage] == "clean"
    )
    assert [(g.phase, g.clean_step_ns_median) for g in inputs.summary.steps.groups] == [
        ("decode", clean[1])
    ]
    assert "whichwall.collect.record(" in (report / "report.md").read_text()


def test_the_command_names_the_script_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["/home/somebody/train.py", "--secret"])

    loop(tmp_path / "run", 0)

    assert read_manifest(tmp_path / "run").command == (
        "whichwall.collect.record(phase='decode', batch=None, tokens=None, warmup=1, clean=3, "
        "profiled=2, after=2, sample_interval_ms=100) in train.py"
    )


@pytest.mark.parametrize(
    ("asked", "phase", "tokens"),
    [
        ({}, "decode", None),
        ({"batch": 2}, "decode", 2),
        ({"batch": 2, "tokens": 2}, "decode", 2),
        ({"batch": 2, "tokens": 64}, "prefill", 64),
        ({"phase": "prefill", "batch": 2}, "prefill", None),
    ],
)
def test_more_than_a_token_per_sequence_is_a_prefill(
    asked: dict[str, Any], phase: str, tokens: int | None, tmp_path: Path
) -> None:
    loop(tmp_path / "run", 2, **asked)

    (row,) = rows(tmp_path / "run", Passes)
    assert (row[Passes.phase], row[Passes.tokens]) == (phase, tokens)


def test_dimensions_come_from_the_modules_config(tmp_path: Path) -> None:
    loop(tmp_path / "run", 0, Decoder(4, 4, dtype=torch.float16))

    model = read_manifest(tmp_path / "run").model
    assert model is not None
    assert (model.name, model.hidden, model.dtype) == ("llama", 16, "float16")
    assert (model.parameters, model.weight_bytes) == (20, 40)


def test_a_wrapped_module_has_the_config_of_what_it_wraps(tmp_path: Path) -> None:
    wrapper = torch.nn.Module()
    wrapper.module = Decoder(4, 4)

    loop(tmp_path / "run", 0, wrapper)

    model = read_manifest(tmp_path / "run").model
    assert model is not None
    assert model.hidden == 16


def test_a_module_unlike_its_config_is_told(tmp_path: Path) -> None:
    loop(tmp_path / "run", WHOLE, Decoder(4, 4))

    said = [d.message for d in read_manifest(tmp_path / "run").diagnostics
            if d.code == "dimensions_differ"]  # fmt: skip
    assert said == [
        "the module has 20 parameters, its config describes 4,656; floors and roles go by the "
        "config"
    ]


def test_dimensions_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    config = tmp_path / "toy" / "config.json"
    config.write_text(json.dumps({"model_type": "llama", **CONFIG}))

    loop(tmp_path / "run", 0, config)

    model = read_manifest(tmp_path / "run").model
    assert model is not None
    assert (model.name, model.hidden) == ("toy", 16)


def test_a_loop_that_goes_on_is_left_alone(tmp_path: Path) -> None:
    run = loop(tmp_path / "run", 10 * WHOLE)

    assert run.steps == 10 * WHOLE
    assert len(rows(tmp_path / "run", Passes)) == 3 + 2 + 2
    assert [d.code for d in read_manifest(tmp_path / "run").diagnostics if "loop" in d.code] == []


def test_a_loop_that_ends_while_it_warms_up_says_what_it_lacks(tmp_path: Path) -> None:
    loop(tmp_path / "run", 1)

    manifest = read_manifest(tmp_path / "run")
    assert sorted(manifest.files) == ["points.parquet"]
    assert (manifest.ranks, manifest.profiler) == ([], None)
    assert [d for d in manifest.diagnostics if d.code != "samples_missing"] == [
        Diagnostic(
            "loop_ended_early",
            "warning",
            1,
            "the loop ended after 1 steps of 11: it reached 0 of 3 clean, 0 of 2 profiled, "
            "0 of 2 after",
        ),
        Diagnostic(
            "no_clean_timing",
            "warning",
            None,
            "no step was timed without a profiler: the loop ended while it warmed up",
        ),
    ]


def test_a_loop_that_ends_under_the_profiler_keeps_its_whole_steps(tmp_path: Path) -> None:
    loop(tmp_path / "run", 1 + 3 + TRACE_WARMUPS + 1)

    stages = [row[Passes.stage] for row in rows(tmp_path / "run", Passes)]
    assert stages == ["clean", "clean", "clean", "profiled"]
    assert "mine" in [row[Ranges.name] for row in rows(tmp_path / "run", Ranges)]


@pytest.mark.parametrize("steps", [0, 2, 1 + 3 + 1, 1 + 3 + TRACE_WARMUPS + 1, WHOLE])
def test_an_error_in_the_block_is_the_users_and_leaves_no_run(steps: int, tmp_path: Path) -> None:
    def failing(run: Recording) -> None:
        for _ in range(steps):
            run.step()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), record(tmp_path / "run", **SHORT) as run:
        failing(run)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_an_interrupt_leaves_neither_run_nor_sampler(
    sign: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    write(program, FOREVER)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    device = Device(torch.device("cpu"), "cpu", UUID)
    monkeypatch.setattr(recorder, "choose_device", lambda _asked: device)

    children = []

    def interrupted(run: Recording) -> None:
        children.append(run._sampler._child)
        run.step()
        os.kill(os.getpid(), sign)

    with pytest.raises(KeyboardInterrupt), record(tmp_path / "run", **SHORT) as run:
        interrupted(run)

    assert [child and child.process.poll() is not None for child in children] == [True]
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"phase": "poetry"}, "phase 'poetry'"),
        ({"clean": -1}, "clean -1"),
        ({"batch": 0}, "batch 0"),
        ({"sample_interval_ms": 0}, "sample_interval_ms 0"),
        ({"clean": "3"}, "clean '3': must be a number"),
        ({"clean": 2.5}, "clean 2.5: must be a number"),
        ({"profiled": None}, "profiled None: must be a number"),
        ({"model": 7}, "model: a int"),
    ],
)
def test_an_argument_that_cannot_be_is_named(
    asked: dict[str, Any], named: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=named), record(tmp_path / "run", **asked):
        pass

    assert list(tmp_path.iterdir()) == []


def test_a_loop_inside_a_loop_is_refused_before_it_begins(tmp_path: Path) -> None:
    with record(tmp_path / "run", **SHORT) as run:
        with pytest.raises(UsageError, match="one loop at a time"), record(tmp_path / "inner"):
            pass
        for _ in range(WHOLE):
            run.step()

    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_path_that_leads_to_no_config_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gone"), record(tmp_path / "r", model=tmp_path / "gone"):
        pass


def test_the_destination_is_the_commands_unless_the_script_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OUT, str(tmp_path / "command"))

    assert loop(None, 0).path == tmp_path / "command"
    assert loop(tmp_path / "script", 0).path == tmp_path / "script"


def test_an_existing_run_is_replaced_only_when_asked(tmp_path: Path) -> None:
    loop(tmp_path / "run", 0)
    first = read_manifest(tmp_path / "run").id

    with pytest.raises(UsageError, match="already exists"):
        loop(tmp_path / "run", 0)
    assert read_manifest(tmp_path / "run").id == first

    loop(tmp_path / "run", 0, overwrite=True)
    assert read_manifest(tmp_path / "run").id != first
