"""Differences to both sides of nothing."""

from tests.frames import Row, table
from whichwall.analyze.charts.differences import differences
from whichwall.schemas.chart import Bars


def one(name: str, value: float) -> Row:
    return {Bars.name: name, Bars.group: "x", Bars.value: value, Bars.label: f"{value:+}"}


def test_the_axis_has_room_for_labels_on_both_sides() -> None:
    drawn = differences(table(Bars, one("norm", -40.0), one("rope", 10.0)), "µs", "title", [])

    low, high = drawn.to_dict()["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low == -high
    assert high > 40


def test_no_difference_at_all_is_still_a_picture() -> None:
    assert differences(table(Bars, one("norm", 0.0)), "µs", "title", []).to_dict()["layer"]
