"""What a picture of bars shows: spread, floor, and words where nothing was measured."""

from tests.frames import Row, table
from whichwall.analyze.charts.bars import Scale, bars
from whichwall.analyze.report.experiments.drawn import bar
from whichwall.schemas.chart import Bars
from whichwall.schemas.points import REFUSED
from whichwall.schemas.sweep import Sweep

WHOLE = {Sweep.point: 0, Sweep.visits: 1, Sweep.passes: 3}


def row(**more: object) -> Row:
    (found,) = table(Sweep, {**WHOLE, **more}).iter_rows(named=True)
    return dict(found)


def drawn(*rows: Row, scale: Scale | None = None) -> dict[str, object]:
    chart = bars(table(Bars, *rows), scale or Scale("ms"), "title", [])
    return dict(chart.to_dict())


def one(name: str, value: float | None, group: str = "all", **more: object) -> Row:
    return {Bars.name: name, Bars.group: group, Bars.value: value, Bars.label: "x", **more}


def test_a_refused_point_has_words_and_no_bar() -> None:
    refused = row(outcome=REFUSED, reason="no kernel")

    assert bar(refused, "flash", "prefill") == {
        Bars.name: "flash", Bars.group: "prefill", Bars.label: "refused: no kernel",
    }  # fmt: skip


def test_a_bar_has_its_spread_and_its_floor_in_ms() -> None:
    timed = row(
        outcome="done", step_ns=2_000_000, step_ns_p10=1_000_000, step_ns_p90=3_000_000,
        floor_ns=500_000,
    )  # fmt: skip

    assert bar(timed, "eager", "decode") == {
        Bars.name: "eager", Bars.group: "decode", Bars.value: 2.0, Bars.low: 1.0, Bars.high: 3.0,
        Bars.floor: 0.5, Bars.label: "2.00 ms",
    }  # fmt: skip


def marks(chart: dict[str, object]) -> list[str]:
    layers = chart["layer"]
    assert isinstance(layers, list)
    return [layer["mark"]["type"] for layer in layers]


def test_spread_floor_and_line_are_drawn_where_there_are_any() -> None:
    assert marks(drawn(one("a", 1.0))) == ["bar", "text"]
    full = one("a", 1.0, low=0.9, high=1.1, floor=0.5)
    assert marks(drawn(full, scale=Scale("×", line=1.0))) == ["bar", "rule", "tick", "rule", "text"]


def test_the_axis_leaves_room_for_the_words_behind_the_longest_bar() -> None:
    chart = drawn(one("a", 10.0) | {Bars.label: "as long as a sentence of forty letters is"})

    layers = chart["layer"]
    assert isinstance(layers, list)
    assert layers[0]["encoding"]["x"]["scale"]["domain"][1] > 13


def test_only_several_groups_need_a_legend() -> None:
    def legend(chart: dict[str, object]) -> object:
        layers = chart["layer"]
        assert isinstance(layers, list)
        return layers[0]["encoding"]["color"]["legend"]

    assert legend(drawn(one("a", 1.0))) is None
    assert legend(drawn(one("a", 1.0), one("a", 2.0, "other"))) is not None


def test_a_long_reason_is_cut_to_what_fits() -> None:
    label = str(bar(row(outcome=REFUSED, reason="x" * 500), "flash", "prefill")[Bars.label])

    assert (len(label), label[-1]) == (100, "…")
