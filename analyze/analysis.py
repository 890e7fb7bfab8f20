"""From a run to its summary and report: reads the run, calls the analyses, writes the folder."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from whichwall.analyze.sampled import SHORTEST_POWER_WINDOW_NS, sampled, window_of
from whichwall.analyze.devices import attributed_share, devices, role_totals
from whichwall.analyze.diagnose import Findings, diagnose, no_activity
from whichwall.analyze.floors import Grounds, floor_of, node_idle_ns
from whichwall.analyze.groups import (
    PHASES,
    Clean,
    clean_of,
    groups_of,
    traced_group,
    untraced_group,
)
from whichwall.analyze.marks import ENGINES
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.write import write_report
from whichwall.analyze.roles import attribute_ops
from whichwall.analyze.tax import tax
from whichwall.analyze.timings import timings, tpot_ns, ttft_ns
from whichwall.analyze.trace import Trace, read_trace
from whichwall.analyze.walls import Evidence, verdict
from whichwall.schemas import gaps as gap_causes
from whichwall.schemas.activities import Activities
from whichwall.schemas.errors import UsageError
from whichwall.schemas.gaps import Gaps
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.marks import Marks
from whichwall.schemas.passes import CLEAN, PROFILED
from whichwall.schemas.role_totals import OperatorRoleTotals
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import Run
from whichwall.schemas.steps import Steps
from whichwall.schemas.summary import (
    VERSION,
    Device,
    Floor,
    RoleTotal,
    SampleWindow,
    StepGroup,
    StepsSummary,
    Summary,
    Verdict,
)
from whichwall.schemas.timings import Timings

SUMMARY_FILE, ROLES_FILE = "summary.json", "roles.parquet"
NS_PER_MS = 1e6


@dataclass(frozen=True)
class Judged:
    """A step group with what its floor rests on."""

    group: StepGroup
    grounds: Grounds


def analyze(run: Run, *, clean_step_ms: float | None = None) -> ReportInputs:
    """Analyze a run: summary, roles and the frames that a report draws.

    Args:
        run: an open run.
        clean_step_ms: a clean step time measured elsewhere, for a trace without one.

    Raises:
        InputError: a table of the run is damaged.
    """
    option_ns = None if clean_step_ms is None else round(clean_step_ms * NS_PER_MS)
    trace = read_trace(run)
    passes, samples = run.passes.collect(), run.samples.collect()
    timed = timings(passes)
    judged = _groups(run, trace, timed, option_ns)
    found = devices(trace.activities, trace.roles, trace.gaps)
    window = window_of(passes, _span(trace.activities))
    window_samples = sampled(samples, passes, run.manifest, window)
    short = window_samples is not None and window is not None and window.dur_ns < SHORTEST_POWER_WINDOW_NS
    findings = _findings(run, trace, timed, option_ns, short_power_window=short)
    summary = Summary(
        schema_version=VERSION,
        run=run.manifest.name,
        mode=run.manifest.mode,
        model=run.manifest.model,
        verdict=_verdict(run, trace, found, judged, findings, window_samples, option_ns),
        devices=found,
        steps=_steps_summary(trace, judged),
        floors=_main_floor(judged),
        floors_by_phase=_floors(judged),
        ttft_ns=ttft_ns(passes),
        tpot_ns=tpot_ns(passes),
        cpu_roles=_cpu_roles(run, trace),
        samples=window_samples,
        tax=tax(timed),
        diagnostics=[*run.manifest.diagnostics, *diagnose(findings)],
    )
    return ReportInputs(
        summary=summary,
        manifest=run.manifest,
        activities=trace.activities,
        gaps=trace.gaps,
        steps=trace.steps,
        roles=trace.roles,
        ops=trace.ops.lazy(),
        launches=trace.launches.lazy(),
        samples=samples,
        passes=passes,
        points=run.points.collect(),
    )


def write_analysis(inputs: ReportInputs, out: Path) -> None:
    """Write summary.json, roles.parquet and the report into a folder, replaced whole.

    Raises:
        UsageError: the folder is something else than an earlier report, or cannot be written.
    """
    if out.is_symlink() or (out.exists() and not _replaceable(out)):
        raise UsageError(
            f"{out}: exists and is no report (no {SUMMARY_FILE} in it); give another --out"
        )
    partial = out.parent / f".{out.name}.{os.getpid()}.partial"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
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


def _replaceable(out: Path) -> bool:
    return out.is_dir() and ((out / SUMMARY_FILE).is_file() or not any(out.iterdir()))


def _write_roles(roles: pl.DataFrame, path: Path) -> None:
    table: pa.Table = roles.select(list(Roles.COLUMNS)).to_arrow()
    pq.write_table(table.cast(Roles.schema()), path, compression="zstd")


def _span(activities: pl.DataFrame) -> tuple[int, int] | None:
    if not activities.height:
        return None
    start, end = activities.select(
        pl.col(Activities.start_ns).min(), pl.col(Activities.end_ns).max()
    ).row(0)
    return start, end


def _groups(
    run: Run, trace: Trace, timed: pl.DataFrame, option_ns: int | None
) -> list[Judged]:
    if not trace.activities.height:
        return _untraced_groups(run, trace, timed, option_ns)
    found = []
    for key, rows in groups_of(trace.steps):
        point, rank, phase = key[Steps.point], key[Steps.rank], key[Steps.phase]
        clean = clean_of(timed, point, rank, phase, option_ns)
        grounds = floor_of(run, timed, trace.steps, point, rank, phase)
        # Row by row alike, so that one filter serves both.
        mine = _belongs_to(trace.activities, rows)
        by_role = role_totals(trace.activities.filter(mine), trace.roles.filter(mine))
        group = traced_group(
            key, rows, trace.gaps, clean, grounds.floor, by_role, attributed_share(by_role)
        )
        found.append(Judged(group, grounds))
    return sorted(found, key=lambda j: _rank_of_phase(j.group))


def _untraced_groups(
    run: Run, trace: Trace, timed: pl.DataFrame, option_ns: int | None
) -> list[Judged]:
    found = []
    series = [Timings.point, Timings.rank, Timings.phase]
    for key in timed.select(series).unique(maintain_order=True).iter_rows():
        clean = clean_of(timed, *key, option_ns)
        grounds = floor_of(run, timed, trace.steps, *key)
        profiled = trace.marks.filter(
            (pl.col(Marks.point) == key[0])
            & (pl.col(Marks.rank) == key[1])
            & (pl.col(Marks.phase) == key[2])
        )
        group_key = {**dict(zip(series, key, strict=True)), Steps.device: None}
        found.append(
            Judged(untraced_group(group_key, profiled.height, clean, grounds.floor), grounds)
        )
    return sorted(found, key=lambda j: _rank_of_phase(j.group))


def _belongs_to(activities: pl.DataFrame, steps: pl.DataFrame) -> pl.Series:
    keys = [Steps.point, Steps.rank, Steps.device, Steps.step]
    joined = activities.select(keys).join(
        steps.select(keys).with_columns(pl.lit(value=True).alias("mine")),
        on=keys,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return joined["mine"].fill_null(value=False) & joined[Steps.step].is_not_null()


def _rank_of_phase(group: StepGroup) -> tuple[int, int, int, int]:
    device = -1 if group.device is None else group.device
    return (group.point, PHASES.index(group.phase), group.rank, device)


def _steps_summary(trace: Trace, judged: list[Judged]) -> StepsSummary:
    marked = trace.marks
    has_steps = any(j.group.count for j in judged)
    phases: dict[str, int] = {}
    first = (judged[0].group.rank, judged[0].group.device) if judged else None
    for j in judged:
        if (j.group.rank, j.group.device) == first and j.group.phase and j.group.count:
            phases[j.group.phase] = phases.get(j.group.phase, 0) + j.group.count
    return StepsSummary(
        found_by=str(marked[Marks.found_by][0]) if marked.height and has_steps else None,
        phase=dict(sorted(phases.items())),
        groups=[j.group for j in judged],
    )


def _floors(judged: list[Judged]) -> list[Floor]:
    found: dict[tuple[int, str], Floor] = {}
    for j in judged:
        if j.grounds.floor is not None:
            found.setdefault((j.grounds.floor.point, j.grounds.floor.phase), j.grounds.floor)
    return list(found.values())


def _main_floor(judged: list[Judged]) -> Floor | None:
    return judged[0].grounds.floor if judged else None


def _findings(
    run: Run, trace: Trace, timed: pl.DataFrame, option_ns: int | None, *, short_power_window: bool
) -> Findings:
    profiler = trace.gaps.filter(pl.col(Gaps.cause) == gap_causes.PROFILER)
    reached = pl.col(Activities.end_ns).cum_max().shift(1).over(
        [Activities.point, Activities.rank, Activities.device]
    )
    overlapping = trace.activities.select((pl.col(Activities.start_ns) < reached).sum()).item()
    return Findings(
        ranks=run.manifest.ranks,
        activities=trace.activities.height,
        void_rows=trace.void_rows,
        overlapping=int(overlapping or 0),
        external_ids_trusted=trace.external_ids_trusted,
        complete=trace.complete,
        profiler_gaps=profiler.height,
        profiler_gap_ns=int(profiler[Gaps.dur_ns].sum()),
        has_clean=option_ns is not None or bool((timed[Timings.stage] == CLEAN).any()),
        short_power_window=short_power_window,
    )


def _verdict(
    run: Run,
    trace: Trace,
    found: list[Device],
    judged: list[Judged],
    findings: Findings,
    sampled: SampleWindow | None,
    option_ns: int | None,
) -> Verdict:
    engine = bool(trace.marks[Marks.family].is_in(list(ENGINES)).any())
    idle = node_idle_ns(run)
    if not found:
        reason = "this run used none" if not run.manifest.gpus and judged else no_activity(findings)
        return verdict(Evidence(None, None, None, None, None, None, idle, engine, reason, None), None)
    if not judged:
        device = found[0]
        whole = Evidence(
            None, option_ns, device.window_ns, device.busy_ns, device.kernels, None, idle, engine,
            None, "the trace marks no steps, so what one works on is not known",
        )  # fmt: skip
        said = verdict(whole, sampled)
        note = "no steps are marked in the trace: the whole recording is taken as one"
        return _annotated(said, note)
    group, grounds = judged[0].group, judged[0].grounds
    said = verdict(
        Evidence(
            phase=group.phase,
            step_ns=group.clean_step_ns_median,
            window_ns=group.window_ns_median,
            busy_ns=group.busy_ns_median,
            kernels=group.kernels_median,
            floor=grounds.floor,
            node_idle_ns=idle,
            engine=engine,
            no_gpu=None,
            no_floor=grounds.missing,
        ),
        sampled,
    )
    if grounds.floor is not None and not grounds.context_known:
        said = _annotated(said, "the context is not known: the floor leaves the cache out")
    return said


def _annotated(said: Verdict, note: str) -> Verdict:
    import msgspec

    return msgspec.structs.replace(said, annotations=[*said.annotations, note])


def _cpu_roles(run: Run, trace: Trace) -> list[RoleTotal]:
    """Return operator self time by role where there is no GPU activity."""
    if trace.activities.height or not trace.ops.height:
        return []
    return [
        RoleTotal(
            role=row[OperatorRoleTotals.role],
            busy_ns=row[OperatorRoleTotals.self_ns],
            share=row[OperatorRoleTotals.share],
            kernels=row[OperatorRoleTotals.ops],
        )
        for row in attribute_ops(trace.ops, run.manifest.model).iter_rows(named=True)
    ]


__all__ = ["Clean", "Kernels", "PROFILED", "analyze", "write_analysis"]
