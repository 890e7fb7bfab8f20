"""What the visits of a sweep say of its points: how each ended, its steps, and what to confess."""

from collections.abc import Sequence
from statistics import median

import torch

from whichwall.collect.journal import Visit
from whichwall.collect.point import Point
from whichwall.collect.spread import spread
from whichwall.collect.sweep_points import Planned, called
from whichwall.collect.writing import UNSTABLE_RATIO, Row
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.passes import CLEAN, DECODE, PREFILL, Passes
from whichwall.schemas.points import DONE, REFUSED


def point_row(planned: Planned, visits: Sequence[Visit], dtype: torch.dtype) -> Row:
    """Return a point's row of the points table: one that failed in any visit is not done."""
    mine = _of(planned.point, visits)
    ended = next((one for one in mine if one.outcome != DONE), None)
    outcome = REFUSED if planned.refused else ended.outcome if ended else DONE
    return planned.point.row(
        dtype,
        outcome=outcome,
        reason=planned.refused or (ended.reason if ended else None),
        setup_ns=next((one.setup_ns for one in mine if one.setup_ns is not None), None),
        memory_bytes=max((b for one in mine if (b := one.memory_bytes) is not None), default=None),
    )


def points_done(planned: Sequence[Planned], visits: Sequence[Visit]) -> list[Point]:
    """Return the points that were measured, and in every visit."""
    ended = {one.point for one in visits if one.outcome != DONE}
    return [one.point for one in planned if not one.refused and one.point.number not in ended]


def steps_by_visit(point: Point, visits: Sequence[Visit]) -> list[float]:
    """Return the median of a point's clean passes in each of its visits, in ns."""
    return [median(walls) for one in _of(point, visits) if (walls := _walls(one, point))]


def find_unstable_points(
    mode: str, planned: Sequence[Planned], visits: Sequence[Visit]
) -> list[Diagnostic]:
    """Return one warning that names every point whose clean passes differ too much.

    A long answer is left out: that its steps change is what it is for.
    """
    once = {one.point.number for one in planned if one.once}
    names = []
    for point in points_done(planned, visits):
        walls = [wall for one in _of(point, visits) for wall in _walls(one, point)]
        if point.number not in once and spread(walls).ratio > UNSTABLE_RATIO:
            names.append(called(mode, point))
    if not names:
        return []
    text = (
        f"clean passes differ by more than {UNSTABLE_RATIO:g} times (p10 to p90) at "
        f"{len(names)} of {len(planned)} points: {', '.join(names)}; collect again on a quiet host"
    )
    return [Diagnostic("unstable_steps", "warning", len(names), text)]


def _of(point: Point, visits: Sequence[Visit]) -> list[Visit]:
    return [one for one in visits if one.point == point.number]


def _walls(visit: Visit, point: Point) -> list[int]:
    """Return the clean passes of a visit that its point is about: steps, else prefills."""
    phase = DECODE if point.new_tokens > 1 else PREFILL
    return [
        row[Passes.wall_ns]
        for row in visit.passes
        if (row[Passes.stage], row[Passes.phase]) == (CLEAN, phase)
    ]
