import pytest

from whichwall.analyze.charts.palette import WALL_COLOURS
from whichwall.analyze.charts.shares import shares
from whichwall.analyze.charts.theme import svg
from whichwall.analyze.step_shares import known_shares, step_shares
from whichwall.schemas.chart import StepShares
from whichwall.schemas.summary import Shares


def test_parts_stand_one_after_the_other_and_fill_the_step() -> None:
    parts = step_shares(Shares(launches=0.75, kernels=0.125, bytes=0.125), 16_000_000)

    assert parts.select(
        StepShares.wall, StepShares.from_ms, StepShares.to_ms, StepShares.amount
    ).rows() == [
        ("launches", 0.0, 12.0, "12.0 ms  ·  75.0 %"),
        ("kernels", 12.0, 14.0, "2.00 ms  ·  12.5 %"),
        ("bytes", 14.0, 16.0, "2.00 ms  ·  12.5 %"),
    ]


def test_an_unknown_part_is_left_out() -> None:
    assert known_shares(Shares(0.5, 0.25, arithmetic=0.25)) == {
        "launches": 0.5,
        "kernels": 0.25,
        "arithmetic": 0.25,
    }


def test_a_part_below_nothing_has_no_length_but_its_number() -> None:
    parts = step_shares(Shares(launches=-0.5, kernels=1.0, bytes=0.5), 1_000_000)

    assert parts.row(0, named=True)[StepShares.to_ms] == 0
    assert parts.row(0, named=True)[StepShares.amount] == "-500 µs  ·  -50.0 %"


@pytest.mark.parametrize(
    "found",
    [
        Shares(0.94, 0.045, bytes=0.015),
        Shares(0.01, 0.01, arithmetic=0.98),
        Shares(0.34, 0.33, bytes=0.33),
        Shares(0.2, 0.2, bytes=0.6),
    ],
)
def test_every_part_is_labelled_and_coloured_however_narrow(found: Shares) -> None:
    picture = svg(shares(step_shares(found, 16_000_000), "the title", []))

    for wall in known_shares(found):
        assert WALL_COLOURS[wall] in picture
    assert ">GPU idle, waiting for launches<" in picture
    assert ">kernels above their floor<" in picture
    assert ">ms of the clean step<" in picture
