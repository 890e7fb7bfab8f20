"""From a run to its summary and report: reads the run, calls the analyses, writes the folder."""

from dataclasses import replace
from pathlib import Path

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from whichwall.analyze.clean_step import clean_step_ns
from whichwall.analyze.dimensions import calls_of, contradictions, dimensions
from whichwall.analyze.measurements import read_measurements
from whichwall.analyze.report.contents import said
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.write import write_report
from whichwall.analyze.role_check import check_roles
from whichwall.analyze.summary import summarize
from whichwall.analyze.trace import read_reference, read_trace, reference_of, trace_beside
from whichwall.schemas.destination import REPORT, plain, put_in_place, strangers_of_report
from whichwall.schemas.errors import UsageError
from whichwall.schemas.model import Model
from whichwall.schemas.partial import partial_folder
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import Run, open_run

SUMMARY_FILE, ROLES_FILE = "summary.json", "roles.parquet"
NS_PER_MS = 1e6
LONGEST_STEP_MS = 86_400_000  # a day
ROWS_AT_ONCE = 1 << 17  # texts are written out in full on the way to a file


def analyze(
    run: Run, *, clean_step_ms: float | None = None, reference: Run | None = None
) -> ReportInputs:
    """Analyze a run: its summary, and the frames that a report draws.

    Args:
        run: an open run.
        clean_step_ms: a clean step time measured elsewhere, for a trace without one.
        reference: a run of the same model, eager or with the capture, to tell the roles of graph
            replays by.

    Raises:
        InputError: a table of the run is damaged, or the reference tells nothing.
        UsageError: the step time is none.
    """
    if clean_step_ms is not None and not 0 < clean_step_ms < LONGEST_STEP_MS:
        raise UsageError(
            f"a clean step of {clean_step_ms} ms; expected milliseconds above 0, below a day"
        )
    beside = trace_beside(run)
    known = reference_of(run, beside) if beside else None
    if reference is not None:
        known = read_reference(reference)
    trace, measured = read_trace(run, reference=known), read_measurements(run)
    given = run.manifest.model or (known.model if known else None)
    calls = calls_of(trace.activities, trace.ops)
    option_ns = None if clean_step_ms is None else round(clean_step_ms * NS_PER_MS)
    summary = summarize(run.manifest, trace, beside, measured, option_ns)
    inputs = ReportInputs(
        summary=msgspec.structs.replace(
            summary,
            role_check=check_roles(run, trace),
            dimensions=dimensions(calls, trace.roles, given),
            reference=None if reference is None else reference.manifest.name,
            diagnostics=[*summary.diagnostics, *contradictions(calls, trace.roles, given)],
        ),
        manifest=run.manifest,
        activities=trace.activities,
        gaps=trace.gaps,
        steps=trace.steps,
        roles=trace.roles,
        ops=trace.ops,
        launches=trace.launches,
        samples=measured.samples,
        passes=measured.passes,
        points=measured.points,
        requests=measured.requests,
        completions=measured.completions,
        tokens=measured.tokens,
    )
    answered = msgspec.structs.replace(inputs.summary, answer=said(inputs))
    return replace(inputs, summary=answered)


def analyze_to_folder(
    path: Path,
    out: Path | None = None,
    *,
    clean_step_ms: float | None = None,
    clean_run: Path | None = None,
    reference: Path | None = None,
) -> tuple[ReportInputs, Path]:
    """Analyze the run at a path and write its report; return both results and the folder.

    `clean_run` is a run whose clean decode step stands for `clean_step_ms`.

    Raises:
        InputError: not a run, or a damaged one; or `clean_run` has not one such step.
        UsageError: both clean steps are given, or the report cannot be written there.
    """
    run = open_run(path)
    known = None if reference is None else _of_same_model(run, open_run(reference), "--reference")
    if clean_run is not None:
        if clean_step_ms is not None:
            raise UsageError("--clean-step-ms and --clean-run say the same; give one of them")
        timed = _of_same_model(run, open_run(clean_run), "--clean-run")
        clean_step_ms = clean_step_ns(timed) / NS_PER_MS
    inputs = analyze(run, clean_step_ms=clean_step_ms, reference=known)
    folder = plain(out or path / REPORT)
    write_analysis(inputs, folder)
    return inputs, folder


def _of_same_model(run: Run, other: Run, option: str) -> Run:
    """Return another run, unless both say their models and these differ."""
    ours, theirs = run.manifest.model, other.manifest.model
    if ours and theirs and _shape(ours) != _shape(theirs):
        raise UsageError(
            f"{other.path}: a run of {theirs.name}, where {run.path} is one of {ours.name}; "
            f"expected the same model as {option}"
        )
    return other


def _shape(model: Model) -> tuple[int, ...]:
    return model.layers, model.hidden, model.heads, model.kv_heads, model.vocab


def write_analysis(inputs: ReportInputs, out: Path) -> None:
    """Write summary.json, roles.parquet and the report into a folder, replaced whole.

    Raises:
        UsageError: the folder is something else than an earlier report, or cannot be written.
    """
    if out.is_symlink() or (out.exists() and not _is_report(out)):
        raise UsageError(
            f"{out}: exists and is no report (no {SUMMARY_FILE} in it); give another --out"
        )
    if strangers := strangers_of_report(out):
        raise UsageError(
            f"{out}: holds {strangers[0]}, which is no part of a report, and a report is replaced "
            "whole; move that away, or give another --out"
        )
    try:
        with partial_folder(out) as partial:
            (partial / SUMMARY_FILE).write_bytes(inputs.summary.encode())
            _write_roles(inputs.roles, partial / ROLES_FILE)
            write_report(inputs, partial)
            put_in_place(partial, out)
    except OSError as error:
        raise UsageError(
            f"{out}: cannot write the report ({error.strerror or error}); give a writable --out"
        ) from error


def _is_report(out: Path) -> bool:
    return out.is_dir() and ((out / SUMMARY_FILE).is_file() or not any(out.iterdir()))


def _write_roles(roles: pl.DataFrame, path: Path) -> None:
    schema = Roles.schema()
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for part in roles.select(list(Roles.COLUMNS)).iter_slices(ROWS_AT_ONCE):
            table: pa.Table = part.to_arrow()
            writer.write_table(table.cast(schema))
