"""Find at which batch or context the wall changes, from measured steps, floors and traces.

A point that was not traced has no busy time of its own. Its wall is told all the same where its
floor is at least half of its step, or where bounds tell: work does not shrink as the value grows,
so that busy time is at most that of a traced point further up, and at least that of one below.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from whichwall.analyze.step_shares import known_shares
from whichwall.analyze.thresholds import LEAST_OF_FLOOR, MAJORITY
from whichwall.analyze.walls import ARITHMETIC, BYTES, KERNELS, LAUNCHES, MIXED
from whichwall.schemas.summary import Floor, StepGroup
from whichwall.schemas.sweep import Sweep
from whichwall.schemas.turns import BOUNDED, BY_FLOOR, TRACED, Turn, Turns, WallAt

Row = Mapping[str, Any]
_Told = tuple[str | None, str | None]


def turns(
    rows: Iterable[Row], varied: str, phase: str, groups: list[StepGroup], floors: list[Floor]
) -> Turns | None:
    """Return the wall at each timed point of a sweep, and where it changes.

    Args:
        rows: those of `Sweep` that lie on the line, by the value of `varied`.
        varied: the column that was varied.
        phase: of the rows.
        groups: all groups of the run, for the shares of those traced.
        floors: all floors of the run.
    """
    timed = [row for row in rows if row[Sweep.step_ns] and row[varied] is not None]
    if not timed:
        return None
    own_floors = {one.point: one for one in floors if one.phase == phase}
    traced = {one.point: one for one in groups if one.phase == phase and one.shares}
    walls = []
    for place, row in enumerate(timed):
        point = row[Sweep.point]
        found = own_floors.get(point)
        if point in traced:
            told = _by_shares(traced[point])
        else:
            told = _by_bounds(row, found, timed[:place], timed[place + 1 :])
        of = _larger(found) if found else None
        walls.append(WallAt(row[varied], point, *told, of))
    return Turns(
        varied=varied,
        phase=phase,
        walls=walls,
        turns=_changes([(one.value, one.wall) for one in walls]),
        floor_turns=_changes([(one.value, one.floor_of) for one in walls]),
    )


def _by_shares(group: StepGroup) -> _Told:
    assert group.shares is not None
    parts = known_shares(group.shares)
    wall = max(parts, key=lambda name: parts[name])
    return (wall if parts[wall] >= MAJORITY else MIXED), TRACED


def _by_bounds(row: Row, found: Floor | None, below: list[Row], above: list[Row]) -> _Told:
    """Tell the wall of a point without a trace, or that it is not known."""
    step = row[Sweep.step_ns]
    floor = found.floor_ns if found and not found.cached_weights else None
    if floor is not None and step < LEAST_OF_FLOOR * floor:
        return None, None
    if found and floor is not None and floor >= MAJORITY * step:
        return _larger(found), BY_FLOOR
    most = min(_busy(above), default=None)
    if most is not None and step - most >= MAJORITY * step:
        return LAUNCHES, BOUNDED
    least = max(_busy(below), default=None)
    if floor is not None and least is not None and least - floor >= MAJORITY * step:
        return KERNELS, BOUNDED
    return None, None


def _busy(rows: list[Row]) -> list[int]:
    return [row[Sweep.busy_ns] for row in rows if row[Sweep.busy_ns] is not None]


def _larger(floor: Floor) -> str:
    return BYTES if (floor.bytes_ns or 0) >= (floor.arithmetic_ns or 0) else ARITHMETIC


def _changes(pairs: list[tuple[int, str | None]]) -> list[Turn]:
    known = [(value, name) for value, name in pairs if name is not None]
    return [
        Turn(after=after, at=at, old=old, new=new)
        for (after, old), (at, new) in pairwise(known)
        if old != new
    ]
