"""Which wall each point of a sweep stands at, by traces, floors and bounds."""

import msgspec

from tests.frames import Row, table
from tests.step_groups import a_group
from tests.test_walls import MS, a_floor
from whichwall.analyze.turns import turns
from whichwall.schemas.summary import Floor, Shares, StepGroup
from whichwall.schemas.sweep import Sweep
from whichwall.schemas.turns import Turn, Turns, WallAt


def row(point: int, batch: int, step_ms: int | None, busy_ms: int | None = None) -> Row:
    (found,) = table(
        Sweep,
        {
            Sweep.point: point, Sweep.batch: batch, Sweep.phase: "decode", Sweep.outcome: "done",
            Sweep.visits: 1, Sweep.passes: 1,
            Sweep.step_ns: None if step_ms is None else step_ms * MS,
            Sweep.busy_ns: None if busy_ms is None else busy_ms * MS,
        },
    ).iter_rows(named=True)  # fmt: skip
    return dict(found)


def floor(point: int, bytes_ms: float, arithmetic_ms: float = 0, *, cached: bool = False) -> Floor:
    least = round(max(bytes_ms, arithmetic_ms) * MS)
    one = a_floor(least, round(bytes_ms * MS), round(arithmetic_ms * MS), cached=cached)
    return msgspec.structs.replace(one, point=point)


def group(point: int, **shares: float) -> StepGroup:
    return a_group(point=point, shares=Shares(**shares))


def found(rows: list[Row], groups: list[StepGroup], floors: list[Floor]) -> Turns:
    result = turns(rows, Sweep.batch, "decode", groups, floors)
    assert result is not None
    return result


def test_the_wall_turns_where_a_later_trace_says_another_and_bounds_tell_the_rest() -> None:
    rows = [row(0, 1, 10, 1), row(1, 2, 10), row(2, 8, 10, 4), row(3, 64, 20), row(4, 256, 40, 39)]
    groups = [
        group(0, launches=0.9, kernels=0.05, bytes=0.05),
        group(2, launches=0.6, kernels=0.3, bytes=0.1),
        group(4, launches=0.1, kernels=0.7, bytes=0.2),
    ]

    assert found(rows, groups, []) == Turns(
        varied="batch",
        phase="decode",
        walls=[
            WallAt(1, 0, "launches", "traced", None),
            WallAt(2, 1, "launches", "bounded", None),
            WallAt(8, 2, "launches", "traced", None),
            WallAt(64, 3, None, None, None),
            WallAt(256, 4, "kernels", "traced", None),
        ],
        turns=[Turn(after=8, at=256, old="launches", new="kernels")],
        floor_turns=[],
    )


def test_a_floor_of_half_the_step_names_the_wall_without_a_trace() -> None:
    rows = [row(0, 1, 10), row(1, 64, 10)]
    one = found(rows, [], [floor(0, 5), floor(1, 2, 6)])

    assert [(at.wall, at.how) for at in one.walls] == [("bytes", "floor"), ("arithmetic", "floor")]
    assert one.floor_turns == one.turns == [Turn(1, 64, "bytes", "arithmetic")]


def test_a_floor_of_weights_that_a_cache_holds_names_no_wall() -> None:
    assert found([row(0, 1, 10)], [], [floor(0, 9, cached=True)]).walls[0].wall is None


def test_a_step_shorter_than_its_floor_allows_names_no_wall() -> None:
    one = found([row(0, 1, 1)], [], [floor(0, 2.0)])
    assert [wall.wall for wall in one.walls] == [None]


def test_busy_time_below_bounds_what_kernels_take_over_the_floor() -> None:
    rows = [row(0, 1, 10, 8), row(1, 2, 10)]
    one = found(rows, [], [floor(1, 2)])

    assert one.walls[1] == WallAt(2, 1, "kernels", "bounded", "bytes")


def test_no_part_of_half_is_mixed() -> None:
    one = found([row(0, 1, 10, 6)], [group(0, launches=0.4, kernels=0.4, bytes=0.2)], [])

    assert one.walls[0].wall == "mixed"


def test_a_sweep_without_a_time_has_no_walls() -> None:
    assert turns([row(0, 1, None)], Sweep.batch, "decode", [], []) is None
