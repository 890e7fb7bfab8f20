"""What a picture of a sweep shows: bands, floors, names that stand apart, a knee pointed at."""

import pytest

from tests.frames import Row, table
from whichwall.analyze.charts.lines import Axes, lines
from whichwall.analyze.report.experiments.drawn import left_out, step_lines
from whichwall.schemas.chart import Lines
from whichwall.schemas.sweep import Sweep

AXES = Axes("batch", "step, ms")


def measured(x: float, y: float, series: str = "measured", **more: object) -> Row:
    return {Lines.x: x, Lines.y: y, Lines.series: series, Lines.floor: False, **more}


def layers(rows: list[Row], axes: Axes = AXES) -> list[dict[str, object]]:
    found = lines(table(Lines, *rows), axes, "title", []).to_dict()["layer"]
    assert isinstance(found, list)
    return found


def kinds(found: list[dict[str, object]]) -> list[object]:
    marks = [layer["mark"] for layer in found]
    return [mark["type"] if isinstance(mark, dict) else mark for mark in marks]


def scale(found: list[dict[str, object]], axis: str) -> object:
    encoding = next(one["encoding"] for one in found if kinds([one]) == ["line"])
    assert isinstance(encoding, dict)
    return encoding[axis]["scale"].get("type", "linear")


def test_a_step_is_drawn_in_ms_with_its_spread_and_its_floor() -> None:
    (row,) = table(Sweep, {
        Sweep.point: 0, Sweep.outcome: "done", Sweep.visits: 1, Sweep.passes: 3, Sweep.batch: 4,
        Sweep.step_ns: 2_000_000, Sweep.step_ns_p10: 1_500_000, Sweep.step_ns_p90: 3_000_000,
        Sweep.floor_ns: 500_000,
    }).iter_rows(named=True)  # fmt: skip

    assert step_lines([row], Sweep.batch).rows() == [
        (4.0, 2.0, 1.5, 3.0, "measured", False),
        (4.0, 0.5, None, None, "floor", True),
    ]


def test_there_is_a_band_only_where_a_spread_is_known() -> None:
    assert "area" not in kinds(layers([measured(1, 2.0)]))
    assert "area" in kinds(layers([measured(1, 2.0, low=1.5, high=2.5)]))


def test_a_knee_is_pointed_at() -> None:
    axes = Axes("batch", "step, ms", mark=4, mark_says="flat up to 4")

    found = layers([measured(1, 2.0), measured(8, 3.0)], axes)

    assert kinds(found)[:2] == ["rule", "text"]


def test_doubled_values_stand_evenly_apart_and_nought_cannot_be_doubled() -> None:
    assert scale(layers([measured(1, 2.0), measured(8, 3.0)]), "x") == "log"
    assert scale(layers([measured(0, 2.0), measured(8, 3.0)]), "x") == "linear"


@pytest.mark.parametrize(("highest", "kind"), [(30.0, "linear"), (3000.0, "log")])
def test_values_far_apart_are_drawn_on_a_logarithmic_axis(highest: float, kind: str) -> None:
    assert scale(layers([measured(1, 2.0), measured(8, highest)]), "y") == kind


def test_names_of_lines_that_end_together_are_moved_apart() -> None:
    rows = [measured(1, 1.0, "one"), measured(1, 1.001, "other")]

    chart = lines(table(Lines, *rows), AXES, "title", []).to_dict()

    places = sorted(
        row["label_y"] for data in chart["datasets"].values() for row in data if "label_y" in row
    )
    assert places[-1] - places[0] > 0.05


def test_a_value_without_a_time_is_named_under_the_title() -> None:
    sizes: list[tuple[int, int | None]] = [(1, 100), (2048, None)]
    rows: list[Row] = [
        {Sweep.point: n, Sweep.outcome: "done", Sweep.visits: 0, Sweep.passes: 0, Sweep.batch: size,
         Sweep.step_ns: took}
        for n, (size, took) in enumerate(sizes)
    ]  # fmt: skip
    known = table(Sweep, *rows).iter_rows(named=True)

    assert left_out(known, Sweep.batch) == ["Not timed, for reasons in the table: 2,048."]
