"""What is said of a ratio and its interval."""

import pytest

from whichwall.analyze.comparison_words import direction, interval, more, signed
from whichwall.schemas.comparison import StepChange


def step(low: float, high: float) -> StepChange:
    return StepChange(1.0, low, high, seen=not low <= 1 <= high, processes_known=True)


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (1.0, "as fast"),
        (1.31, "1.31 × slower"),
        (1 / 1.31, "1.31 × faster"),
        (1.032, "3.2 % slower"),
        (0.968, "3.2 % faster"),
        (1.0001, "< 0.1 % slower"),
    ],
)
def test_a_ratio_of_steps_has_a_direction(ratio: float, said: str) -> None:
    assert direction(ratio) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.5, 0.8, "1.25 × to 2.00 × faster"),
        (1.02, 1.5, "2.0 % to 1.50 × slower"),
        (0.99, 1.03, "1.0 % faster to 3.0 % slower"),
        (1e-9, 1e9, "more than 100 × faster to more than 100 × slower"),
        (1.0, 1.0, "as fast"),
    ],
)
def test_an_interval_is_said_from_its_smaller_end_on_one_side(
    low: float, high: float, said: str
) -> None:
    assert interval(step(low, high)) == said


def test_differences_of_times_have_words_and_signs() -> None:
    assert [more(ns) for ns in (1200.0, -30.0, 0.2)] == ["1.20 µs more", "30.0 ns less", "as long"]
    assert [signed(ns) for ns in (1200.0, -30.0, 0.2)] == ["+1.20 µs", "−30.0 ns", "0"]
