"""From a run to its summary and report: reads the run, calls the analyses, writes the folder."""

import shutil
from pathlib import Path
from uuid import uuid4

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.write import write_report
from whichwall.analyze.summary import summarize
from whichwall.analyze.tables import read_table
from whichwall.analyze.trace import read_trace
from whichwall.schemas.errors import UsageError
from whichwall.schemas.folder import REPORT
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import Points
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import Run, open_run
from whichwall.schemas.samples import Samples

SUMMARY_FILE, ROLES_FILE = "summary.json", "roles.parquet"
NS_PER_MS = 1e6
LONGEST_STEP_MS = 86_400_000  # a day


def analyze(run: Run, *, clean_step_ms: float | None = None) -> ReportInputs:
    """Analyze a run: its summary, and the frames that a report draws.

    Args:
        run: an open run.
        clean_step_ms: a clean step time measured elsewhere, for a trace without one.

    Raises:
        InputError: a table of the run is damaged.
        UsageError: the step time is none.
    """
    if clean_step_ms is not None and not 0 < clean_step_ms < LONGEST_STEP_MS:
        raise UsageError(
            f"a clean step of {clean_step_ms} ms; expected milliseconds above 0, below a day"
        )
    trace = read_trace(run)
    passes, samples = read_table(run, Passes), read_table(run, Samples)
    option_ns = None if clean_step_ms is None else round(clean_step_ms * NS_PER_MS)
    return ReportInputs(
        summary=summarize(run, trace, passes, samples, option_ns),
        manifest=run.manifest,
        activities=trace.activities,
        gaps=trace.gaps,
        steps=trace.steps,
        roles=trace.roles,
        ops=trace.ops.lazy(),
        launches=trace.launches.lazy(),
        samples=samples,
        passes=passes,
        points=read_table(run, Points),
    )


def analyze_to_folder(
    path: Path, out: Path | None = None, *, clean_step_ms: float | None = None
) -> tuple[ReportInputs, Path]:
    """Analyze the run at a path and write its report; return both results and the folder.

    Raises:
        InputError: not a run, or a damaged one.
        UsageError: the report cannot be written there.
    """
    inputs = analyze(open_run(path), clean_step_ms=clean_step_ms)
    folder = out or path / REPORT
    write_analysis(inputs, folder)
    return inputs, folder


def write_analysis(inputs: ReportInputs, out: Path) -> None:
    """Write summary.json, roles.parquet and the report into a folder, replaced whole.

    Raises:
        UsageError: the folder is something else than an earlier report, or cannot be written.
    """
    if out.is_symlink() or (out.exists() and not _is_report(out)):
        raise UsageError(
            f"{out}: exists and is no report (no {SUMMARY_FILE} in it); give another --out"
        )
    partial = out.parent / f".{out.name}.{uuid4().hex[:8]}.partial"
    try:
        partial.mkdir(parents=True)
        (partial / SUMMARY_FILE).write_bytes(inputs.summary.encode())
        _write_roles(inputs.roles, partial / ROLES_FILE)
        write_report(inputs, partial)
        if out.exists():
            shutil.rmtree(out)
        partial.rename(out)
    except OSError as error:
        raise UsageError(
            f"{out}: cannot write the report ({error.strerror or error}); give a writable --out"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _is_report(out: Path) -> bool:
    return out.is_dir() and ((out / SUMMARY_FILE).is_file() or not any(out.iterdir()))


def _write_roles(roles: pl.DataFrame, path: Path) -> None:
    table: pa.Table = roles.select(list(Roles.COLUMNS)).to_arrow()
    pq.write_table(table.cast(Roles.schema()), path, compression="zstd")
