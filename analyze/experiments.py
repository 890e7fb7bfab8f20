"""Add to the summary of a run what its mode's question is answered with."""

import msgspec
import polars as pl

from whichwall.analyze.clock_change import clock_change
from whichwall.analyze.drift import drift
from whichwall.analyze.floors import Basis
from whichwall.analyze.knee import knee_of
from whichwall.analyze.measurements import Measurements
from whichwall.analyze.observer import observer
from whichwall.analyze.parts_sum import parts_sums
from whichwall.analyze.prefix_reuse import prefix_reuse
from whichwall.analyze.rates import rates
from whichwall.analyze.reached import reached
from whichwall.analyze.request_times import request_times
from whichwall.analyze.sweep import sweep
from whichwall.analyze.turns import turns
from whichwall.schemas.experiments import BATCH, CONTEXT, PROMPT
from whichwall.schemas.knee import Knee
from whichwall.schemas.passes import DECODE, PREFILL
from whichwall.schemas.points import LONG_GENERATION
from whichwall.schemas.summary import Summary
from whichwall.schemas.sweep import Sweep
from whichwall.schemas.turns import Turns

# What a mode varies, and the phase that answers it.
VARIED = {
    CONTEXT: (Sweep.context_tokens, DECODE),
    PROMPT: (Sweep.prompt_tokens, PREFILL),
    BATCH: (Sweep.batch, DECODE),
}


def with_experiments(summary: Summary, basis: Basis, measured: Measurements) -> Summary:
    """Return the summary with what was found of points, waits, limits and costs; null if not."""
    points, passes = measured.points, measured.passes
    found = sweep(basis, passes, summary.steps.groups)
    return msgspec.structs.replace(
        summary,
        rates=rates(summary.steps.groups, summary.floors_by_phase),
        sweep=list(found.iter_rows(named=True)),
        knee=_knee(summary.mode, found),
        turns=_turns(summary, found) if basis.manifest.gpus else None,
        drift=drift(points, passes),
        request=request_times(measured.requests, passes),
        parts=parts_sums(measured.parts, basis.timings),
        ceilings=reached(measured.ceilings, basis.manifest.gpus),
        clocks=clock_change(points, passes, measured.samples, basis.manifest),
        observer=observer(points, passes),
        prefix=prefix_reuse(points, measured.completions),
    )


def varied(mode: str, found: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `Sweep` that lie on the line of a mode."""
    column, phase = VARIED[mode]
    on_line = pl.col(Sweep.label).ne_missing(pl.lit(LONG_GENERATION))
    return found.filter((pl.col(Sweep.phase) == phase) & on_line).sort(column, Sweep.point)


def _knee(mode: str, found: pl.DataFrame) -> Knee | None:
    if mode not in VARIED:
        return None
    column, phase = VARIED[mode]
    return knee_of(varied(mode, found), column, phase)


def _turns(summary: Summary, found: pl.DataFrame) -> Turns | None:
    if summary.mode not in VARIED:
        return None
    column, phase = VARIED[summary.mode]
    rows = varied(summary.mode, found).iter_rows(named=True)
    return turns(rows, column, phase, summary.steps.groups, summary.floors_by_phase)
