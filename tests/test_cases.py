"""Handed fault cases: each file has one known fault, and `cases.json` its exact right answer."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import SHARED
from whichwall.analyze.analysis import analyze, analyze_to_folder
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.collect.importer import import_run
from whichwall.schemas.activities import Activities
from whichwall.schemas.errors import InputError
from whichwall.schemas.run import open_run
from whichwall.schemas.summary import Device

CASES = SHARED / "cases"
Case = dict[str, Any]


def trace_cases(expect: tuple[str, ...]) -> list[Case]:
    if not (CASES / "cases.json").is_file():
        return []
    listed: list[Case] = json.loads((CASES / "cases.json").read_text())
    return [c for c in listed if not c["file"].startswith("smi/") and c["expect"] in expect]


READABLE = trace_cases(("ok", "empty"))
REFUSED = trace_cases(("refuse",))
needs_cases = pytest.mark.skipif(not READABLE, reason="no handed cases: ../shared is absent")


@cache
def generated(kind: str, folder: Path) -> Path:
    """Write a case that is not stored, with its own generator."""
    (generator,) = CASES.glob("generate.py")
    path = folder / str(next(c["file"] for c in READABLE if c["kind"] == kind))
    subprocess.run([sys.executable, generator, kind, path], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cases")


def files_of(case: Case, folder: Path) -> list[Path]:
    if "generate" in case:
        return [generated(case["generate"], folder)]
    return [CASES / file for file in case.get("files") or [case["file"]]]


def device_facts(device: Device, first_start_ns: int) -> dict[str, object]:
    """Return what a case may state of one device, under the names that cases use."""
    return {
        "rank": device.rank,
        "device": device.device,
        "gpu_activities": device.gpu_activities,
        "busy_ns": device.busy_ns,
        "window_ns": device.window_ns,
        "duration_sum_ns": device.duration_sum_ns,
        "gaps_by_cause_ns": device.gaps.by_cause_ns,
        "first_start_ns": first_start_ns,
    }


def facts(inputs: ReportInputs) -> dict[str, object]:
    """Return all that a case may state of its files, under the names that cases use."""
    activities = inputs.activities
    starts = pl.col(Activities.start_ns).min()
    first = activities.group_by(Activities.rank, Activities.device).agg(starts)
    first_of = {(rank, device): start for rank, device, start in first.iter_rows()}
    devices = [device_facts(d, first_of[d.rank, d.device]) for d in inputs.summary.devices]
    by_rank = {rank: start for (rank, _), start in first_of.items()}
    names = activities.sort(Activities.start_ns)[Activities.name].to_list()
    whole = {
        "gpu_activities": activities.height,
        "first_start_ns": min(first_of.values(), default=None),
        "rank": inputs.manifest.ranks[0].rank,
        "devices": devices,
        "op_of_kernel": activities[Activities.op_name].to_list(),
        "kernel_names": list(dict.fromkeys(names)),
        "name_lengths": [len(name) for name in dict.fromkeys(names)],
        "rank1_minus_rank0_ns": by_rank[1] - by_rank[0] if {0, 1} <= set(by_rank) else None,
        "diagnostic_counts": {d.code: d.count for d in inputs.summary.diagnostics},
    }
    return (devices[0] if len(devices) == 1 else {}) | whole


def stated(case: Case, found: dict[str, object]) -> dict[str, object]:
    """Return what is compared: each fact that the case states, as far as it states it."""
    compared: dict[str, object] = {k: case[k] for k in found if case.get(k) is not None}
    if "devices" in compared:
        compared["devices"] = [
            {k: v for k, v in device.items() if k != "file"} for device in case["devices"]
        ]
    return compared


def restricted(found: dict[str, object], wanted: dict[str, object]) -> dict[str, object]:
    """Keep of what was found only what is stated, a level deep."""
    kept: dict[str, object] = {}
    for key, value in wanted.items():
        mine = found[key]
        if key == "devices" and isinstance(mine, list) and isinstance(value, list):
            mine = [{k: one[k] for k in two} for one, two in zip(mine, value, strict=True)]
        elif key == "diagnostic_counts" and isinstance(mine, dict) and isinstance(value, dict):
            mine = {code: mine.get(code) for code in value}
        kept[key] = mine
    return kept


@needs_cases
@pytest.mark.parametrize("case", READABLE, ids=[c["kind"] for c in READABLE])
def test_a_fault_case_gives_all_that_it_states(case: Case, folder: Path, tmp_path: Path) -> None:
    inputs = analyze(open_run(import_run(files_of(case, folder), tmp_path / "run")))
    found = facts(inputs)
    wanted = stated(case, found)
    assert restricted(found, wanted) == wanted
    assert bool(inputs.summary.devices) == (case["expect"] == "ok")
    codes = {d.code for d in inputs.summary.diagnostics}
    assert set(case["diagnostics"]) - codes == set()
    assert codes & set(case["not_diagnostics"]) == set()
    assert not case.get("diagnostics_any") or codes & set(case["diagnostics_any"])
    causes = {cause for d in inputs.summary.devices for cause in d.gaps.by_cause_ns}
    assert causes & set(case.get("not_gap_causes") or ()) == set()


@needs_cases
@pytest.mark.parametrize("case", REFUSED, ids=[c["kind"] for c in REFUSED])
def test_what_is_no_trace_is_refused_in_a_line_and_leaves_nothing(
    case: Case, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        import_run([CASES / case["file"]], tmp_path / "run")
    assert case["file"] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@needs_cases
@pytest.mark.parametrize(
    "case",
    [c for c in READABLE if c.get("forbidden_html") or c.get("forbidden_text")],
    ids=[c["kind"] for c in READABLE if c.get("forbidden_html") or c.get("forbidden_text")],
)
def test_names_reach_no_report_as_markup(case: Case, tmp_path: Path) -> None:
    path = import_run([CASES / case["file"]], tmp_path / "run")
    _, report = analyze_to_folder(path)
    pages = [p.read_text() for p in report.rglob("*.html")]
    texts = [p.read_text() for p in path.rglob("*") if p.suffix in (".json", ".md", ".html")]
    assert pages
    assert [t for t in case.get("forbidden_html") or () for page in pages if t in page] == []
    assert [t for t in case.get("forbidden_text") or () for text in texts if t in text] == []
