"""Assemble summary.json from what the analyses found."""

import msgspec
import polars as pl

from whichwall.analyze.account import account
from whichwall.analyze.busy import reached_before
from whichwall.analyze.confirm import result_of
from whichwall.analyze.devices import devices
from whichwall.analyze.diagnose import Findings, diagnose
from whichwall.analyze.experiments import with_experiments
from whichwall.analyze.floors import Basis, node_idle_ns
from whichwall.analyze.judge import judge
from whichwall.analyze.measurements import Measurements
from whichwall.analyze.processes import of_first_process
from whichwall.analyze.roles.operator_roles import attribute_ops
from whichwall.analyze.sampled import SHORTEST_POWER_WINDOW_NS, Window, sampled, window_of
from whichwall.analyze.scores import scored_moves, static_of
from whichwall.analyze.served import clean_window, first_median, generated_tokens, served_steps
from whichwall.analyze.serving import serving
from whichwall.analyze.step_groups import Judged, is_below_floor, step_groups
from whichwall.analyze.steps import DEVICE
from whichwall.analyze.tax import tax
from whichwall.analyze.timings import timings, tpot_ns, ttft_ns
from whichwall.analyze.trace import Trace
from whichwall.schemas import gaps as gap_causes
from whichwall.schemas.account import Account
from whichwall.schemas.activities import Activities
from whichwall.schemas.gaps import Gaps
from whichwall.schemas.manifest import Manifest
from whichwall.schemas.marks import Marks
from whichwall.schemas.passes import CLEAN
from whichwall.schemas.role_totals import OperatorRoleTotals
from whichwall.schemas.summary import (
    VERSION,
    Floor,
    RoleTotal,
    SampleWindow,
    StepsSummary,
    Summary,
)
from whichwall.schemas.timings import Timings

NANOSECOND = 1


def summarize(
    manifest: Manifest,
    trace: Trace,
    beside: Trace | None,
    measured: Measurements,
    option_ns: int | None,
) -> Summary:
    """Return the summary of a run.

    `beside` is the same pass traced kernel by kernel, where the trace is of replays; `option_ns`
    is a clean step measured elsewhere.
    """
    passes, ceilings = measured.passes, measured.ceilings
    timed = timings(passes)
    basis = Basis(manifest, trace.model, measured.points, ceilings, timed, trace.steps)
    served = serving(measured.points, measured.completions, measured.tokens)
    client_steps = served_steps(served)
    judged = step_groups(trace, basis, option_ns, client_steps)
    static = static_of(basis, judged, step_groups(beside, basis, None) if beside else [])
    found = devices(trace.activities, trace.roles, trace.gaps)
    # Further processes are no part of what was sampled and profiled.
    first = of_first_process(manifest.mode, passes)
    window = window_of(first, _span(trace.activities))
    if not passes.height:
        window = clean_window(measured.completions) or window
    generated = generated_tokens(measured.completions, window)
    sampling = sampled(measured.samples, passes, manifest, window, generated)
    findings = Findings(
        mode=manifest.mode,
        ranks=manifest.ranks,
        activities=trace.activities.height,
        void_rows=trace.void_rows,
        overlapping=_overlapping(manifest, trace.activities),
        external_ids_trusted=trace.external_ids_trusted,
        split_annotations=trace.split_annotations,
        complete=trace.complete,
        profiler_gaps_ns=trace.gaps.filter(pl.col(Gaps.cause) == gap_causes.PROFILER)[
            Gaps.dur_ns
        ].to_list(),
        below_floor=sum(is_below_floor(one) for one in judged),
        has_clean=bool(
            (option_ns and judged) or client_steps or (timed[Timings.stage] == CLEAN).any()
        ),
        is_served=bool(served),
        short_power_window=_too_short(sampling, window),
    )
    summary = Summary(
        schema_version=VERSION,
        run=manifest.name,
        mode=manifest.mode,
        model=trace.model,
        verdict=judge(
            trace,
            found,
            judged,
            findings,
            sampling,
            node_idle_ns(ceilings),
            option_ns,
            static,
        ),
        devices=found,
        steps=_steps(trace, judged),
        floors=judged[0].grounds.floor if judged else None,
        floors_by_phase=_floors(judged),
        ttft_ns=ttft_ns(passes) if passes.height else first_median(served, lambda one: one.ttft),
        tpot_ns=tpot_ns(passes) if passes.height else first_median(served, lambda one: one.tpot),
        cpu_roles=_cpu_roles(manifest, trace),
        samples=sampling,
        tax=tax(timings(first)),
        account=_accounts(judged),
        diagnostics=[*manifest.diagnostics, *diagnose(findings)],
    )
    answered = with_experiments(msgspec.structs.replace(summary, serving=served), basis, measured)
    moves = scored_moves(basis, judged, static, answered.sweep)
    verdict = msgspec.structs.replace(
        answered.verdict, tested=result_of(answered.verdict.wall, moves)
    )
    return msgspec.structs.replace(answered, moves=moves, verdict=verdict)


def _span(activities: pl.DataFrame) -> tuple[int, int] | None:
    if not activities.height:
        return None
    start, end = activities.select(
        pl.col(Activities.start_ns).min(), pl.col(Activities.end_ns).max()
    ).row(0)
    return start, end


def _overlapping(manifest: Manifest, activities: pl.DataFrame) -> int:
    """Count activities that start before an earlier one of their device has ended."""
    # Neighbours in a file of whole microseconds overlap by one from truncation alone.
    rounding = max((facts.resolution_ns for facts in manifest.ranks), default=NANOSECOND)
    tolerated = 0 if rounding == NANOSECOND else rounding
    overlaps = reached_before(DEVICE) - pl.col(Activities.start_ns) > tolerated
    return int(activities.select(overlaps.sum()).item() or 0)


def _too_short(sampling: SampleWindow | None, window: Window | None) -> bool:
    return sampling is not None and window is not None and window.dur_ns < SHORTEST_POWER_WINDOW_NS


def _steps(trace: Trace, judged: list[Judged]) -> StepsSummary:
    """Return the groups, and the count of steps by phase on the first device."""
    groups = [one.group for one in judged]
    phases: dict[str, int] = {}
    for group in groups:
        same_device = (group.rank, group.device) == (groups[0].rank, groups[0].device)
        if same_device and group.phase and group.count:
            phases[group.phase] = phases.get(group.phase, 0) + group.count
    found = any(group.count for group in groups)
    return StepsSummary(
        found_by=str(trace.marks[Marks.found_by][0]) if found and trace.marks.height else None,
        phase=dict(sorted(phases.items())),
        groups=groups,
    )


def _floors(judged: list[Judged]) -> list[Floor]:
    """Return each floor once, however many ranks and devices share it."""
    found: dict[tuple[int, str], Floor] = {}
    for one in judged:
        if one.grounds.floor is not None:
            found.setdefault((one.grounds.floor.point, one.grounds.floor.phase), one.grounds.floor)
    return list(found.values())


def _accounts(judged: list[Judged]) -> list[Account]:
    found = [account(one.group, one.facts) for one in judged if one.facts is not None]
    return [one for one in found if one is not None]


def _cpu_roles(manifest: Manifest, trace: Trace) -> list[RoleTotal]:
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
        for row in attribute_ops(trace.ops, manifest.model).iter_rows(named=True)
    ]
