"""Pair the points of two runs: those that mean the same, whatever tells the runs apart as a whole.

What varies within a run tells its points apart, so it must agree. What is one value throughout
each run may differ, and is then a difference between the runs: an eager run and one of graphs are
still one pair, and a run of a ladder meets the run of one engine at that engine.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from whichwall.schemas.comparison import PointSide
from whichwall.schemas.passes import DECODE, PREFILL

LABEL, ENGINE, ATTENTION, DTYPE, BATCH, CONTEXT, PROMPT, NEW = (
    "label", "engine", "attention", "dtype", "batch", "context_tokens", "prompt_tokens",
    "new_tokens",
)  # fmt: skip
FACTS = (LABEL, ENGINE, ATTENTION, DTYPE, BATCH, CONTEXT, PROMPT, NEW)
# A decode step knows the cache that it starts from, a prefill the prompt.
_ASKED = {
    DECODE: (LABEL, ENGINE, ATTENTION, DTYPE, BATCH, CONTEXT, NEW),
    PREFILL: (LABEL, ENGINE, ATTENTION, DTYPE, BATCH, PROMPT),
}


def align(
    a: Sequence[PointSide], b: Sequence[PointSide]
) -> tuple[list[tuple[PointSide, PointSide]], list[PointSide], list[PointSide]]:
    """Return pairs in the order of A, then what only A has, then what only B has.

    A point has one partner at most. One without a label, as the point of a plain run, goes with
    any label; where several would do, the one that has none is first, then the one of lowest
    number.
    """
    pairs: list[tuple[PointSide, PointSide]] = []
    left = list(b)
    for mine in a:
        told_by = telling(mine.phase, a, b)
        same = [other for other in left if _goes_with(mine, other, told_by)]
        if same:
            chosen = min(same, key=lambda other: other.label != mine.label)
            left.remove(chosen)
            pairs.append((mine, chosen))
    paired = [mine for mine, _ in pairs]
    return pairs, [mine for mine in a if mine not in paired], left


def telling(phase: str | None, a: Sequence[PointSide], b: Sequence[PointSide]) -> list[str]:
    """Return the facts that tell points of a phase apart, in one of the runs at least."""
    return [
        fact
        for fact in _ASKED.get(phase or "", FACTS)
        if any(len(set(_values(side, phase, fact))) > 1 for side in (a, b))
    ]


def _values(side: Sequence[PointSide], phase: str | None, fact: str) -> Iterator[Any]:
    for one in side:
        value = getattr(one, fact)
        if one.phase == phase and value is not None:
            yield value


def _goes_with(one: PointSide, other: PointSide, told_by: Sequence[str]) -> bool:
    if one.phase != other.phase or not (_measured(one) and _measured(other)):
        return False
    return all(
        (mine := getattr(one, fact)) == (theirs := getattr(other, fact))
        or (fact == LABEL and None in (mine, theirs))
        for fact in told_by
    )


def _measured(one: PointSide) -> bool:
    """Tell whether anything of a point was measured: one that was refused has no phase either."""
    return one.phase is not None or one.outcome is None
