"""A trace that a server takes of itself: asked for, picked up and imported, or missing."""

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.served import serving
from tests.served_runs import asked, clean, codes, rows
from whichwall.analyze.analysis import analyze_to_folder
from whichwall.analyze.validate import validate
from whichwall.collect.collect import collect
from whichwall.collect.endpoint import plan, server_trace
from whichwall.collect.endpoint.load import Span
from whichwall.collect.endpoint.plan import VisitPlan
from whichwall.schemas.completions import Completions
from whichwall.schemas.errors import UsageError
from whichwall.schemas.manifest import Manifest, read_manifest

STEP = "execute_context_0(0)_generation_1(1)"


def event(name: str, start: float, dur: float, kind: str, **args: object) -> dict[str, object]:
    """Return a complete event of a trace, in microseconds."""
    row = {"ph": "X", "cat": kind, "name": name, "ts": start, "dur": dur, "args": args}
    return row | ({"pid": 0, "tid": 7} if kind == "kernel" else {"pid": 1, "tid": 1})


def trace() -> dict[str, object]:
    """Return a trace of three decode steps of an engine, each with two kernels of 100 us."""
    events = []
    for step in range(3):
        at = 1000.0 * step
        events.append(event(STEP, at, 900, "user_annotation"))
        for number in range(2):
            start, link = at + 200 + 300 * number, 2 * step + number
            events.append(
                event("cudaLaunchKernel", start - 50, 10, "cuda_runtime", correlation=link)
            )
            events.append(event("gemm", start, 100, "kernel", device=0, stream=7, correlation=link))
    return {"schemaVersion": 1, "baseTimeNanoseconds": 1_790_000_000 * 10**9, "traceEvents": events}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for files as long as a test needs to."""
    monkeypatch.setattr(plan, "QUICK", VisitPlan(1, Span(0.0, 2), 2))
    for name, seconds in (("APPEAR_S", 0.3), ("SETTLED_S", 0.05), ("LOOK_S", 0.02)):
        monkeypatch.setattr(server_trace, name, seconds)


def traced(tmp_path: Path, **manners: Any) -> tuple[Path, Manifest]:
    folder = tmp_path / "traces"
    folder.mkdir(exist_ok=True)
    with serving(**manners) as served:
        run = collect(asked(served, tmp_path / "run", trace_folder=folder))
    return run, read_manifest(run)


def test_a_trace_that_appears_is_imported_after_all_clean_requests(tmp_path: Path) -> None:
    run, manifest = traced(tmp_path, profiles_into=tmp_path / "traces", trace=trace())

    assert manifest.server is not None
    assert manifest.server.profiled == "traced by /start_profile"
    assert [facts.rank for facts in manifest.ranks] == [0]
    profiled = [r for r in rows(run, Completions) if r[Completions.stage] == "profiled"]
    last_clean = max(int(row[Completions.start_ns]) for row in clean(run))
    assert len(profiled) == server_trace.TRACED_REQUESTS
    assert all(int(row[Completions.start_ns]) > last_clean for row in profiled)
    assert validate(run).is_whole


def test_a_traced_run_has_a_verdict_from_the_time_per_token_that_its_client_saw(
    tmp_path: Path,
) -> None:
    run, _ = traced(tmp_path, profiles_into=tmp_path / "traces", trace=trace(), each_s=0.005)

    summary = analyze_to_folder(run)[0].summary
    (group,) = summary.steps.groups
    assert (group.phase, group.clean_from) == ("decode", "completions")
    assert group.clean_step_ns_median == summary.tpot_ns
    # The steps of the trace work for 200 us, and a token takes 5 ms.
    assert summary.verdict.wall == "launches"
    assert any("time per token that a client sees" in note for note in summary.verdict.annotations)


def test_the_hosts_name_in_a_files_name_is_not_kept(tmp_path: Path) -> None:
    run, _ = traced(tmp_path, profiles_into=tmp_path / "traces", trace=trace())

    assert b"somehost" not in b"".join(path.read_bytes() for path in run.iterdir())


def test_a_server_without_a_profiler_is_said_and_the_rest_is_whole(tmp_path: Path) -> None:
    run, manifest = traced(tmp_path)

    assert manifest.server is not None
    assert manifest.server.profiled == "the server offers no /start_profile"
    assert manifest.ranks == []
    assert clean(run)


def test_a_trace_that_does_not_appear_is_said(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    _, manifest = traced(tmp_path, profiles_into=elsewhere, trace=trace())

    assert manifest.server is not None
    assert "no new trace in traces" in (manifest.server.profiled or "")


def test_a_file_that_is_no_trace_is_a_warning(tmp_path: Path) -> None:
    run, manifest = traced(tmp_path, profiles_into=tmp_path / "traces", trace={"a": 1})

    assert "trace_failed" in codes(run)
    assert manifest.ranks == []
    assert validate(run).is_whole


def test_a_trace_that_may_not_be_read_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "somehost_1.json")

    monkeypatch.setattr(shutil, "copyfile", refuse)
    run, manifest = traced(tmp_path, profiles_into=tmp_path / "traces", trace=trace())

    (said,) = [one.message for one in manifest.diagnostics if one.code == "trace_failed"]
    assert said.startswith("the server's trace: Permission denied; expected a file")
    assert clean(run)


def test_traces_that_were_there_before_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "old.json").write_text("{}")
    _, manifest = traced(tmp_path, profiles_into=tmp_path / "traces", trace=trace())

    assert len(manifest.ranks) == 1
    assert (tmp_path / "traces" / "old.json").read_text() == "{}"


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with serving() as served, pytest.raises(UsageError, match="gone: is no folder"):
        collect(asked(served, tmp_path / "run", trace_folder=tmp_path / "gone"))
