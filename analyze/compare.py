"""Compare two runs, A and B: point by point, role by role, and how sure each difference is."""

from collections.abc import Sequence

import msgspec

from whichwall.analyze.alignment import align, telling
from whichwall.analyze.bootstrap import ratio
from whichwall.analyze.compared import limits, quantities, roles, run_quantities
from whichwall.analyze.comparison_words import answer
from whichwall.analyze.quantities import count
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.sides import measured, sides
from whichwall.analyze.surroundings import point_changes, surroundings
from whichwall.schemas.comparison import (
    VERSION,
    Comparison,
    Pair,
    PointSide,
    RunSide,
    StepChange,
)
from whichwall.schemas.experiments import PROMPT
from whichwall.schemas.passes import DECODE, MATMUL, PREFILL

# Runs of these modes are about their prefills, all others about steps if they have any.
ABOUT_PREFILL = (PREFILL, PROMPT)
_SIZES = (("batch", "batch"), ("context", "context_tokens"), ("prompt", "prompt_tokens"),
          ("new tokens", "new_tokens"))  # fmt: skip


def compare(a: ReportInputs, b: ReportInputs) -> Comparison:
    """Return all that the two runs say beside each other; what has no partner is listed."""
    mine, other = sides(a), sides(b)
    aligned, only_a, only_b = align(mine, other)
    phase = _phase(a, b, [left.phase for left, _ in aligned])
    aligned.sort(key=lambda pair: pair[0].phase != phase)
    pairs = [_pair(a, b, left, right, telling(left.phase, mine, other)) for left, right in aligned]
    changes, same = surroundings(a.manifest, b.manifest, mine, other)
    found = Comparison(
        schema_version=VERSION,
        a=_run(a),
        b=_run(b),
        answer="",
        phase=phase,
        changes=changes,
        same=same,
        pairs=pairs,
        only_a=only_a,
        only_b=only_b,
        quantities=run_quantities(a, b),
        limits=limits(a, b),
    )
    return msgspec.structs.replace(found, answer=answer(found))


def _run(inputs: ReportInputs) -> RunSide:
    summary = inputs.summary
    return RunSide(
        id=inputs.manifest.id,
        run=summary.run,
        mode=summary.mode,
        wall=summary.verdict.wall,
        answer=summary.answer,
    )


def _phase(a: ReportInputs, b: ReportInputs, phases: Sequence[str | None]) -> str | None:
    """Return the phase that the comparison is about."""
    order = (DECODE, PREFILL, MATMUL)
    if {a.summary.mode, b.summary.mode} & {*ABOUT_PREFILL}:
        order = (PREFILL, DECODE, MATMUL)
    return next((phase for phase in order if phase in phases), None)


def _pair(
    a: ReportInputs, b: ReportInputs, mine: PointSide, other: PointSide, told_by: Sequence[str]
) -> Pair:
    return Pair(
        name=_name(mine, other, told_by),
        phase=mine.phase,
        a=mine,
        b=other,
        step=_step(a, b, mine, other),
        changes=point_changes(mine, other),
        quantities=quantities(a, b, mine, other),
        roles=roles(a, b, mine, other),
    )


def _step(a: ReportInputs, b: ReportInputs, mine: PointSide, other: PointSide) -> StepChange | None:
    left, right = measured(a, mine.point, mine.phase), measured(b, other.point, other.phase)
    if not left or not right:
        return None
    found = ratio(left, right)
    known = len(left) > 1 and len(right) > 1
    return StepChange(found.ratio, found.low, found.high, found.seen, processes_known=known)


def _name(mine: PointSide, other: PointSide, told_by: Sequence[str]) -> str:
    """Call a pair by its label, else by what tells it apart, else by its phase."""
    if label := mine.label or other.label:
        return label
    words = [value for fact in told_by if isinstance(value := getattr(mine, fact), str)]
    words += [
        f"{name} {count(getattr(mine, fact))}"
        for name, fact in _SIZES
        if fact in told_by and getattr(mine, fact) is not None
    ]
    return ", ".join(words) or f"{mine.phase or 'the'} step"
