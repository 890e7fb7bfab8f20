"""Which wall each point of a sweep stands at, and where along it the wall changes."""

import msgspec

TRACED, BY_FLOOR, BOUNDED = "traced", "floor", "bounded"


class WallAt(msgspec.Struct, frozen=True):
    """The wall at one value of what was varied."""

    value: int
    point: int
    wall: str | None  # launches, kernels, bytes, arithmetic, mixed; null: not known
    # traced: by the shares of a traced step. floor: the floor is at least half of the measured
    # step. bounded: busy time lies between that of traced points on both sides.
    how: str | None
    floor_of: str | None  # which total of the floor is the larger: bytes, arithmetic


class Turn(msgspec.Struct, frozen=True):
    """A change of wall between two values; those in between are not known."""

    after: int
    at: int
    old: str
    new: str


class Turns(msgspec.Struct, frozen=True):
    """A sweep, wall by wall."""

    varied: str  # a column of the sweep
    phase: str
    walls: list[WallAt]
    turns: list[Turn]
    floor_turns: list[Turn]  # of the floor alone: from bytes to arithmetic
