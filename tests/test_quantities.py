import math

import pytest

from whichwall.analyze.quantities import (
    amount_of_bytes,
    count,
    duration,
    percent,
    several,
    significant,
    times,
    whole_percent,
    with_unit,
)


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (0, "0 ns"),
        (416, "416 ns"),
        (999.6, "1.00 µs"),
        (21_087, "21.1 µs"),
        (999_950, "1.00 ms"),
        (16_100_000, "16.1 ms"),
        (-500, "-500 ns"),
        (125e9, "125 s"),
        (None, "not known"),
        (math.nan, "not known"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(ns: float | None, said: str) -> None:
    assert duration(ns) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(9.996, "10.0"), (0.01234, "0.0123"), (4189.4, "4,189"), (123_456_789, "123,456,789")],
)
def test_a_number_has_three_digits_and_whole_ones_all_of_theirs(value: float, said: str) -> None:
    assert significant(value) == said


@pytest.mark.parametrize(
    ("share", "said", "whole"),
    [
        (None, "not known", "not known"),
        (0, "0 %", "0 %"),
        (1, "100 %", "100 %"),
        (0.0001, "< 0.1 %", "< 0.1 %"),
        (0.004, "0.4 %", "0.4 %"),
        (0.9394, "93.9 %", "94 %"),
        (0.9998, "> 99.9 %", "> 99 %"),
    ],
)
def test_a_share_is_never_rounded_to_nothing_or_all(
    share: float | None, said: str, whole: str
) -> None:
    assert (percent(share), whole_percent(share)) == (said, whole)


def test_counts_units_and_ratios() -> None:
    assert (count(1031), count(43.5), count(None)) == ("1,031", "43.5", "not known")
    assert (several(1, "step"), several(1200, "step")) == ("1 step", "1,200 steps")
    assert several(None, "step") == "a number of steps that is not known"
    assert (with_unit(748, "TFLOP/s"), with_unit(None, "W")) == ("748 TFLOP/s", "not known")
    assert (times(66.53), times(None)) == ("66.5 ×", "not known")
    assert amount_of_bytes(988_065_536) == "988 MB"
