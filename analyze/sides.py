"""What one run brings to a comparison: its points by phase, and the passes that each rests on."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from whichwall.analyze.bootstrap import Measured, step_ns
from whichwall.analyze.processes import MODES
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.comparison import PointSide
from whichwall.schemas.manifest import Manifest
from whichwall.schemas.passes import CLEAN, Passes
from whichwall.schemas.summary import StepGroup
from whichwall.schemas.sweep import Sweep

Place = tuple[int, str | None]  # point, phase


def sides(inputs: ReportInputs) -> list[PointSide]:
    """Return a side per point and phase, in order; those that only tell roles are left out."""
    asides = _asides(inputs.manifest)
    rows = [row for row in inputs.sweep.iter_rows(named=True) if row[Sweep.point] not in asides]
    found = [_side(inputs, row) for row in rows]
    seen = {(one.point, one.phase) for one in found}
    # An imported trace has steps and no points; a point whose steps have no phase has both.
    traced = [
        _traced(group) for place, group in groups(inputs).items()
        if place not in seen and place[0] not in asides
    ]  # fmt: skip
    measured = {one.point for one in traced}
    return [one for one in found if one.phase or one.point not in measured] + traced


def groups(inputs: ReportInputs) -> dict[Place, StepGroup]:
    """Return the first rank's group of steps of each point and phase."""
    found: dict[Place, StepGroup] = {}
    for group in inputs.summary.steps.groups:
        first = found.setdefault((group.point, group.phase), group)
        if group.rank < first.rank:
            found[group.point, group.phase] = group
    return found


def measured(inputs: ReportInputs, point: int, phase: str | None) -> Measured:
    """Return the clean passes of a point's phase on its first rank: processes of visits."""
    clean = inputs.passes.filter(
        (pl.col(Passes.point) == point)
        & (pl.col(Passes.stage) == CLEAN)
        & pl.col(Passes.phase).eq_missing(pl.lit(phase, pl.String))
        & (pl.col(Passes.wall_ns) > 0)
    ).filter(pl.col(Passes.rank) == pl.col(Passes.rank).min())
    by_visit = [
        np.sort(rows[Passes.wall_ns].to_numpy().astype(np.float64))
        for rows in clean.sort(Passes.visit).partition_by(Passes.visit, maintain_order=True)
    ]
    if inputs.manifest.mode in MODES:
        return [[visit] for visit in by_visit]
    return [by_visit] if by_visit else []


def _asides(manifest: Manifest) -> set[int]:
    return {facts.point for facts in (manifest.role_check, manifest.reference) if facts}


def _side(inputs: ReportInputs, row: dict[str, object]) -> PointSide:
    point, phase = _whole(row, Sweep.point) or 0, _text(row, Sweep.phase)
    processes = measured(inputs, point, phase)
    steps = [step_ns([one]) for one in processes]
    return PointSide(
        point=point,
        phase=phase,
        label=_text(row, Sweep.label),
        engine=_text(row, Sweep.engine),
        attention=_text(row, Sweep.attention),
        dtype=_text(row, Sweep.dtype),
        batch=_whole(row, Sweep.batch),
        context_tokens=_whole(row, Sweep.context_tokens),
        prompt_tokens=_whole(row, Sweep.prompt_tokens),
        new_tokens=_whole(row, Sweep.new_tokens),
        outcome=_text(row, Sweep.outcome),
        reason=_text(row, Sweep.reason),
        processes=len(processes),
        visits=sum(map(len, processes)),
        passes=sum(len(visit) for one in processes for visit in one),
        step_ns=step_ns(processes) if processes else None,
        step_ns_p10=_whole(row, Sweep.step_ns_p10),
        step_ns_p90=_whole(row, Sweep.step_ns_p90),
        process_ns_lowest=min(steps, default=None),
        process_ns_highest=max(steps, default=None),
    )


def _traced(group: StepGroup) -> PointSide:
    """Return a side of which only the trace tells: nothing was timed or asked for."""
    return PointSide(
        point=group.point, phase=group.phase, label=None, engine=None, attention=None, dtype=None,
        batch=group.batch, context_tokens=None, prompt_tokens=None, new_tokens=None, outcome=None,
        reason=None, processes=0, visits=0, passes=0, step_ns=None, step_ns_p10=None,
        step_ns_p90=None, process_ns_lowest=None, process_ns_highest=None,
    )  # fmt: skip


def timed_points(found: Sequence[PointSide]) -> int:
    """Count the points of which a step was timed clean."""
    return len({one.point for one in found if one.step_ns is not None})


def _text(row: dict[str, object], column: str) -> str | None:
    value = row[column]
    return None if value is None else str(value)


def _whole(row: dict[str, object], column: str) -> int | None:
    value = row[column]
    return value if isinstance(value, int) else None
