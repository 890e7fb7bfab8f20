"""What measuring costs: blocks of a process, and several processes made into one run."""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from whichwall.collect import processes, tax_process
from whichwall.collect.collect import collect
from whichwall.collect.options import CollectOptions
from whichwall.collect.processes import Block, joined
from whichwall.collect.sampler import Sampler
from whichwall.collect.sampler import Samples as Sampled
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import CollectError
from whichwall.schemas.folder import file_name
from whichwall.schemas.manifest import SamplerFacts, read_manifest
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import Points
from whichwall.schemas.samples import Samples


def options(out: Path) -> CollectOptions:
    return CollectOptions(
        mode="tax", model="tiny", device="cpu", prompt_tokens=8, new_tokens=4, quick=True, out=out
    )


class Sampling:
    """A sampler that runs, and sees nothing."""

    why_none: str | None = None

    def __init__(self, uuid: str | None, interval_ms: int) -> None: ...

    def __enter__(self) -> "Sampling":
        return self

    def __exit__(self, *_: object) -> None: ...

    def start(self) -> None: ...

    def finish(self) -> Sampled:
        return Sampled([], None, [])


def here(function: str, spec: dict[str, Any], folder: Path, seconds: float) -> Any:
    """Run what a fresh process would, in this one; both ways through JSON."""
    assert function == f"{tax_process.measure.__module__}:{tax_process.measure.__name__}"
    found = tax_process.measure(json.loads(json.dumps(spec)), folder)
    return json.loads(json.dumps(found))


@pytest.fixture(autouse=True, scope="module")
def in_this_process() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tax_process, "QUICK_BLOCK_S", 0.0)
        patch.setattr(tax_process, "Sampler", Sampling)
        patch.setattr(processes, "run_fresh", here)
        yield


@pytest.fixture(scope="module")
def run(in_this_process: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Collect one run for all tests that look at one."""
    return collect(options(tmp_path_factory.mktemp("runs") / "tax"))


def rows(run: Path, table: type[Passes | Points]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(run / file_name(table)).to_pylist()
    return found


def test_each_process_alternates_the_sampler_before_it_profiles(run: Path) -> None:
    by_process = {
        process: [
            (row[Passes.point], row[Passes.stage])
            for row in rows(run, Passes)
            if row[Passes.visit] == process and row[Passes.phase] == "decode"
        ]
        for process in (0, 1)
    }
    # A request of four tokens is profiled whole: no step of it is left to warm the profiler up.
    expected = [
        (0, "warmup"), (0, "clean"), (1, "warmup"), (1, "clean"), (1, "warmup"), (1, "clean"),
        (0, "warmup"), (0, "clean"), (0, "profiled"), (0, "after"),
    ]  # fmt: skip
    for found in by_process.values():
        assert [change for change, _ in groupby(found)] == expected
    assert {row[Passes.visit] for row in rows(run, Passes)} == {0, 1}


def test_the_sides_are_points_and_the_first_process_keeps_its_trace(run: Path) -> None:
    assert [(row[Points.point], row[Points.label]) for row in rows(run, Points)] == [
        (0, "sampler off"),
        (1, "sampler on"),
    ]
    manifest = read_manifest(run)
    assert [facts.point for facts in manifest.ranks] == [0]
    assert manifest.command.startswith("whichwall collect --mode tax --model tiny")
    assert sorted(path.suffix for path in run.iterdir() if path.suffix != ".parquet") == [".json"]


def test_without_a_sampler_its_side_is_refused_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tax_process, "Sampler", Sampler)

    run = collect(options(tmp_path / "run"))

    assert {row[Passes.point] for row in rows(run, Passes)} == {0}
    assert [
        (row[Points.label], row[Points.outcome], row[Points.reason]) for row in rows(run, Points)
    ] == [("sampler off", "done", None), ("sampler on", "refused", "not sampled: no GPU")]


def test_a_process_that_crashes_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash_first(function: str, spec: dict[str, Any], folder: Path, seconds: float) -> Any:
        if spec["process"] == 0:
            raise CollectError("its process ended by signal 11 before it was done")
        return here(function, spec, folder, seconds)

    monkeypatch.setattr(processes, "run_fresh", crash_first)

    run = collect(options(tmp_path / "run"))

    assert {row[Passes.visit] for row in rows(run, Passes)} == {1}
    assert {row[Points.reason] for row in rows(run, Points)} == {
        "1 of 2 processes failed: its process ended by signal 11 before it was done"
    }


def test_no_process_that_ends_well_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(function: str, spec: dict[str, Any], folder: Path, seconds: float) -> Any:
        raise CollectError("tiny on cpu: out of memory")

    monkeypatch.setattr(processes, "run_fresh", crash)

    with pytest.raises(CollectError, match=r"^tiny on cpu: out of memory$"):
        collect(options(tmp_path / "run"))

    assert list(tmp_path.iterdir()) == []


def test_blocks_of_a_sampler_read_like_one() -> None:
    told = Diagnostic("samples_missing", "info", None, "no GPU")
    facts = SamplerFacts(source="nvidia-smi", nulls={"power": {"[N/A]": 2}}, rejected_lines=1)
    one = Block(None, [{Samples.time_ns: 1}], facts, [told])
    other = Block(None, [{Samples.time_ns: 2}], facts, [told])

    found = joined([one, other, Block("no GPU", [], None, [told])])

    assert found.rows == [{Samples.time_ns: 1}, {Samples.time_ns: 2}]
    assert found.facts == SamplerFacts(
        source="nvidia-smi", nulls={"power": {"[N/A]": 4}}, rejected_lines=2
    )
    assert found.diagnostics == [told]
