"""Given fault cases: small files with one known fault each, and in `cases.json` the answers."""

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import polars as pl
from click.testing import CliRunner

from tests.differences import (
    CASES,
    SMI,
    Case,
    Check,
    Facts,
    code_differences,
    differing,
    listed_cases,
    not_whole,
)
from whichwall.analyze.analysis import analyze, write_analysis
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.cli import main as whichwall
from whichwall.collect.importer import import_run
from whichwall.schemas.activities import Activities
from whichwall.schemas.run import open_run
from whichwall.schemas.summary import Device

# What a case says of itself, and what is compared by another name.
OF_THE_CASE = {
    "file", "files", "kind", "source", "note", "expect", "generate", "diagnostics",
    "not_diagnostics", "diagnostics_any", "not_gap_causes", "forbidden_html", "forbidden_text",
}  # fmt: skip


def case_checks() -> list[Check]:
    """Return a check of each fault case of traces."""
    return [
        Check("cases", case["kind"], partial(case_differences, case))
        for case in listed_cases()
        if not case["file"].startswith(SMI)
    ]


def case_differences(case: Case, folder: Path) -> list[str]:
    """Compare a fault case with all that it states."""
    if case["expect"] == "refuse":
        return refusal_differences(CASES / case["file"], folder)
    run = import_run(_files(case, folder), folder / "run")
    inputs = analyze(open_run(run))
    found = case_facts(inputs)
    wanted = {k: v for k, v in case.items() if k not in OF_THE_CASE and v is not None}
    if "devices" in wanted:
        wanted["devices"] = [{k: v for k, v in d.items() if k != "file"} for d in case["devices"]]
    has_gpu = bool(inputs.summary.devices)
    causes = {cause for d in inputs.summary.devices for cause in d.gaps.by_cause_ns}
    unfit = sorted(causes & {*(case.get("not_gap_causes") or ())})
    return [
        *differing(restricted(found, wanted), wanted),
        *([] if has_gpu == (case["expect"] == "ok") else [f"GPU activity: {has_gpu}"]),
        *code_differences(case, {d.code for d in inputs.summary.diagnostics}),
        *(f"gaps of cause {cause}, expected none" for cause in unfit),
        *_forbidden(case, inputs, run),
        *not_whole(run),
    ]


def _files(case: Case, folder: Path) -> list[Path]:
    """Return the files of a case; one that is not stored is written by its own generator."""
    if "generate" not in case:
        return [CASES / file for file in case.get("files") or [case["file"]]]
    path = folder / str(case["file"])
    command = [sys.executable, str(CASES / "generate.py"), str(case["generate"]), str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return [path]


def refusal_differences(path: Path, folder: Path) -> list[str]:
    """Compare the refusal of what is no trace: exit 2, one line that names it, nothing left."""
    words = ["import", str(path), "--out", str(folder / "run")]
    done = CliRunner().invoke(whichwall, words)
    found: Facts = {
        "exit code": done.exit_code,
        "lines on stdout": len(done.stdout.splitlines()),
        "lines on stderr": len(done.stderr.splitlines()),
        "names the file": path.name in done.stderr,
        "says what was expected": "expected" in done.stderr,
        "left behind": sorted(entry.name for entry in folder.iterdir()),
    }
    return differing(
        found,
        {
            "exit code": 2, "lines on stdout": 0, "lines on stderr": 1, "names the file": True,
            "says what was expected": True, "left behind": [],
        },
    )  # fmt: skip


def _forbidden(case: Case, inputs: ReportInputs, run: Path) -> Iterator[str]:
    """Yield what must not be in a report and is."""
    if not (case.get("forbidden_html") or case.get("forbidden_text")):
        return
    write_analysis(inputs, run / "report")
    pages = sorted(run.rglob("*.html"))
    if not pages:
        yield "no page of a report"
    for kind, paths in (("forbidden_html", pages), ("forbidden_text", sorted(run.rglob("*")))):
        for path in (path for path in paths if path.is_file()):
            written = path.read_bytes()
            for text in case.get(kind) or ():
                if text.encode() in written:
                    yield f"{path.name} holds {text!r}"


def device_facts(device: Device, first_start_ns: int) -> Facts:
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


def case_facts(inputs: ReportInputs) -> Facts:
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


def restricted(found: Facts, wanted: Facts) -> Facts:
    """Keep of lists of devices and of counts only what is stated of each."""
    kept = dict(found)
    devices, stated = found["devices"], wanted.get("devices")
    if isinstance(devices, list) and isinstance(stated, list) and len(devices) == len(stated):
        kept["devices"] = [
            {k: one.get(k) for k in two} for one, two in zip(devices, stated, strict=True)
        ]
    counts, asked = found["diagnostic_counts"], wanted.get("diagnostic_counts")
    if isinstance(counts, dict) and isinstance(asked, dict):
        kept["diagnostic_counts"] = {code: counts.get(code) for code in asked}
    return kept
