"""Whole runs of the smallest model on the CPU, and what an interrupted one leaves behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from tests.conftest import ROOT
from whichwall.collect.collect import collect
from whichwall.collect.options import CollectOptions
from whichwall.collect.writing import find_unstable
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import CollectError, UsageError
from whichwall.schemas.folder import file_facts, file_name
from whichwall.schemas.manifest import FILE, Manifest, read_manifest
from whichwall.schemas.ops import Ops
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import Points
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.table import Table

# Far beyond what anything here takes; only a hang reaches it.
PATIENCE_S = 120.0
# The profiler derives the epoch from the processor's own counter, so two clocks meet here.
CLOCKS_NS = 1_000_000


def options(out: Path, mode: str = "decode") -> CollectOptions:
    return CollectOptions(
        mode=mode, model="tiny", device="cpu", prompt_tokens=16, new_tokens=8, quick=True, out=out
    )


def rows(run: Path, table: type[Table]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = pq.read_table(run / file_name(table)).to_pylist()
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Collect one decode run for all tests that look at one."""
    return collect(options(tmp_path_factory.mktemp("runs") / "decode"))


@pytest.fixture(scope="module")
def manifest(run: Path) -> Manifest:
    return read_manifest(run)


def test_a_run_holds_its_tables_and_nothing_of_its_making(run: Path) -> None:
    assert sorted(path.name for path in run.iterdir()) == sorted(
        [
            FILE, "ceilings.parquet", "kernels.parquet", "launches.parquet", "ops.parquet",
            "overheads.parquet", "parts.parquet", "passes.parquet", "points.parquet",
            "ranges.parquet",
        ]
    )  # fmt: skip
    assert [path.name for path in run.parent.iterdir()] == [run.name]


def test_the_manifest_knows_every_file(run: Path, manifest: Manifest) -> None:
    found = {
        path.name: file_facts(path, pq.read_metadata(path).num_rows)
        for path in run.glob("*.parquet")
    }

    assert manifest.files == found


def test_the_manifest_says_how_the_run_was_made(manifest: Manifest) -> None:
    assert manifest.model is not None
    assert (manifest.mode, manifest.model.name, manifest.weights) == ("decode", "tiny", "dummy")
    assert manifest.model.parameters == 1_312_896
    assert manifest.command.startswith("whichwall collect --mode decode --model tiny")
    assert [(r.rank, r.source, r.time_origin) for r in manifest.ranks] == [(0, "collect", "epoch")]
    assert manifest.environment.torch == str(torch.__version__)
    assert (manifest.gpus, manifest.sampler, manifest.energy) == ([], None, None)
    assert "samples_missing" in {d.code for d in manifest.diagnostics}
    assert manifest.profiler is not None
    assert manifest.profiler.kernels == 0


def test_the_point_says_what_was_asked_for(run: Path) -> None:
    (point,) = rows(run, Points)
    assert isinstance(point.pop(Points.setup_ns), int)
    assert point == {
        Points.point: 0,
        Points.label: None,
        Points.engine: "eager",
        Points.attention: "sdpa",
        Points.dtype: "float32",
        Points.batch: 1,
        Points.context_tokens: 16,
        Points.prompt_tokens: 16,
        Points.new_tokens: 8,
        Points.outcome: "done",
        Points.reason: None,
        Points.memory_bytes: None,  # of a CPU
    }


def test_stages_come_in_the_one_honest_order(run: Path) -> None:
    found = [str(row[Passes.stage]) for row in rows(run, Passes)]

    order = [stage for stage, before in zip(found, [None, *found], strict=False) if stage != before]
    assert order == ["warmup", "clean", "warmup", "profiled", "after"]


def test_every_profiled_pass_is_annotated_where_it_ran(run: Path) -> None:
    profiled = [row for row in rows(run, Passes) if row[Passes.stage] == "profiled"]
    annotated = [row for row in rows(run, Ranges) if row[Ranges.kind] == "annotation"]

    assert [row[Ranges.name] for row in annotated] == [
        f"whichwall::decode#{index}" for index in range(len(profiled))
    ]
    for timed, named in zip(profiled, annotated, strict=True):
        begin = int(str(timed[Passes.start_ns]))
        end = begin + int(str(timed[Passes.wall_ns]))
        assert begin - CLOCKS_NS <= int(str(named[Ranges.start_ns])) <= end


def test_operators_come_with_shapes(run: Path) -> None:
    assert any(row[Ops.input_dims] == "[[1, 128], [128, 128]]" for row in rows(run, Ops))


def test_a_prefill_run_times_and_traces_prefills_alone(tmp_path: Path) -> None:
    run = collect(options(tmp_path / "prefill", "prefill"))

    assert {row[Passes.phase] for row in rows(run, Passes)} == {"prefill"}
    assert {row[Passes.tokens] for row in rows(run, Passes)} == {16}
    assert {str(row[Ranges.name]).split("#")[0] for row in rows(run, Ranges)} == {
        "whichwall::prefill"
    }


def test_passes_that_differ_by_more_than_half_are_called_unstable() -> None:
    assert find_unstable([10_000_000, 11_000_000, 14_000_000], "decode") == []
    assert find_unstable([10_000_000, 20_000_000, 30_000_000], "decode") == [
        Diagnostic(
            "unstable_steps",
            "warning",
            3,
            "clean decode passes took 12 to 28 ms (p10 to p90), median 20 ms; "
            "collect again on a quiet host",
        )
    ]


def test_an_existing_folder_is_refused_and_left_alone(run: Path) -> None:
    before = read_manifest(run).id

    with pytest.raises(UsageError, match="already exists"):
        collect(options(run))

    assert read_manifest(run).id == before


def test_a_prompt_beyond_learned_positions_is_refused_before_it_crashes(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        '{"model_type": "gpt2", "vocab_size": 64, "n_positions": 32, "n_embd": 16, '
        '"n_layer": 1, "n_head": 2}'
    )
    asked = CollectOptions(
        model=str(config), device="cpu", prompt_tokens=32, new_tokens=8, out=tmp_path / "run"
    )

    with pytest.raises(UsageError, match="has 32 positions"):
        collect(asked)

    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_a_backend_without_a_kernel_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    asked = CollectOptions(
        model="tiny", device="cpu", attention="efficient", quick=True, out=tmp_path / "run"
    )

    with pytest.raises(CollectError, match="--attention efficient has no kernel"):
        collect(asked)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)
def test_an_interrupted_run_leaves_nothing_behind(tmp_path: Path, sign: signal.Signals) -> None:
    code = """
        from pathlib import Path
        from whichwall.collect.collect import collect
        from whichwall.collect.options import CollectOptions
        collect(CollectOptions(model="tiny", device="cpu", repeat=10**6, out=Path("run")))
        """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / ".types")},
    )
    deadline = time.monotonic() + PATIENCE_S
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [path.name.startswith(".run.") for path in tmp_path.iterdir()] == [True]

    child.send_signal(sign)
    _, said = child.communicate(timeout=PATIENCE_S)

    assert b"KeyboardInterrupt" in said
    assert list(tmp_path.iterdir()) == []
