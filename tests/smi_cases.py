"""Given cases of nvidia-smi's output: what its reader says of each, and an imported run holds."""

from functools import partial
from pathlib import Path

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
from whichwall.cli import main as whichwall
from whichwall.collect.smi import read_samples
from whichwall.collect.smi_fields import COLUMNS, UUID, canonical
from whichwall.collect.smi_health import find_clock_steps
from whichwall.schemas.run import open_run
from whichwall.schemas.samples import Samples

# What a case says of itself, and what is compared by another name.
OF_THE_CASE = {
    "file", "kind", "source", "note", "expect", "fields", "period_ms", "exit_code", "diagnostics",
    "not_diagnostics",
}  # fmt: skip


def smi_checks() -> list[Check]:
    """Return a check of each case of nvidia-smi, its fields given and told by the content."""
    return [
        Check("smi", f"{case['kind']}, {how}", partial(smi_differences, case, named=named))
        for case in listed_cases()
        if case["file"].startswith(SMI)
        for named, how in ((True, "fields given"), (False, "fields inferred"))
    ]


def smi_differences(case: Case, folder: Path, *, named: bool) -> list[str]:
    """Compare a case of nvidia-smi: what the reader says, then what an imported run holds."""
    path = CASES / case["file"]
    capture = read_samples(path, case["fields"] if named else None)
    parser = capture.parser
    gpus = parser.column(UUID)
    found: Facts = {
        "rows": len(parser.values),
        "parsed": [list(row) for row in parser.values],
        "null_reasons": {name: dict(counts) for name, counts in parser.nulls.items()},
        "rejected_lines": parser.rejected,
        "events": [
            {"line": e.line, "kind": e.kind} | ({"field": e.field} if e.field else {})
            for e in parser.events
        ],
        "gaps": [
            {"uuid": g.uuid, "from_ns": g.from_ns, "to_ns": g.to_ns, "ns": g.to_ns - g.from_ns}
            for g in capture.gaps
        ],
        "clock_steps": [{"line": s.line, "ns": s.ns} for s in find_clock_steps(parser)],
        "refused_field": next((e.field for e in parser.events if e.field), None),
        "rows_by_uuid": {str(gpu): gpus.count(gpu) for gpu in dict.fromkeys(gpus)},
    }
    wanted = {k: v for k, v in case.items() if k not in OF_THE_CASE}
    return [
        *differing(found, {"clock_steps": []} | wanted),
        *code_differences(case, {d.code for d in capture.diagnostics}),
        *imported_differences(case, folder, named=named),
    ]


def imported_differences(case: Case, folder: Path, *, named: bool) -> list[str]:
    """Compare what a run holds whose samples were imported by the command line."""
    (folder / "trace.json").write_text('{"traceEvents": []}')
    words = ["import", folder / "trace.json", "--out", folder / "run"]
    words += ["--samples", CASES / case["file"]]
    words += ["--sample-fields", ", ".join(case["fields"])] if named else []
    done = CliRunner().invoke(whichwall, [str(word) for word in words])
    if done.exit_code:
        return [f"import: exit code {done.exit_code}: {done.stderr.strip()}"]
    run = open_run(folder / "run")
    rows, facts = run.samples.collect(), run.manifest.sampler
    assert facts is not None
    kept = [(i, COLUMNS[f]) for i, f in enumerate(map(canonical, case["fields"])) if f in COLUMNS]
    found: Facts = {
        "imported rows": rows.select([column for _, column in kept]).rows(),
        "imported nulls": facts.nulls,
        "imported rejected lines": facts.rejected_lines,
        "imported events": len(facts.events),
        "imported refused field": facts.fields_refused,
        "stamps of arrival": rows[Samples.received_ns].null_count(),
    }
    refused = case.get("refused_field")
    wanted: Facts = {
        "imported rows": [tuple(row[i] for i, _ in kept) for row in case["parsed"]],
        "imported nulls": case["null_reasons"],
        "imported rejected lines": len(case["rejected_lines"]),
        "imported events": len(case["events"]),
        "imported refused field": [refused] if refused else [],
        "stamps of arrival": rows.height,
    }
    codes = {d.code for d in run.manifest.diagnostics}
    return [*differing(found, wanted), *code_differences(case, codes), *not_whole(run.path)]
