"""How far two steps are apart, and how sure that is."""

from collections.abc import Sequence
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import SHORT_PROPERTY
from whichwall.analyze import bootstrap
from whichwall.analyze.bootstrap import Measured, ratio, step_ns
from whichwall.analyze.student import t_95

WALLS = st.lists(st.integers(1, 10**12), min_size=1, max_size=6)
SIDES = st.lists(st.lists(WALLS, min_size=1, max_size=3), min_size=1, max_size=3)
Walls = Sequence[Sequence[Sequence[int]]]


def side(walls: Walls) -> Measured:
    return [[np.sort(np.array(visit, np.float64)) for visit in one] for one in walls]


@SHORT_PROPERTY
@given(SIDES)
def test_a_side_is_never_seen_to_differ_from_itself(walls: Walls) -> None:
    found = ratio(side(walls), side(walls))

    assert found.ratio == 1
    assert found.seen is not True


@SHORT_PROPERTY
@given(SIDES, SIDES)
def test_the_interval_holds_the_ratio_and_is_the_same_each_time(a: Walls, b: Walls) -> None:
    found = ratio(side(a), side(b))

    assert found == ratio(side(a), side(b))
    assert found.ratio == pytest.approx(step_ns(side(b)) / step_ns(side(a)))
    if found.low is not None and found.high is not None:
        assert found.low <= found.ratio <= found.high


@SHORT_PROPERTY
@given(SIDES, SIDES)
def test_exchanging_the_sides_turns_the_interval_over(a: Walls, b: Walls) -> None:
    found, back = ratio(side(a), side(b)), ratio(side(b), side(a))

    assert back.ratio == pytest.approx(1 / found.ratio)
    if found.low is not None and found.high is not None:
        assert back.low == pytest.approx(1 / found.high)
        assert back.high == pytest.approx(1 / found.low)


@SHORT_PROPERTY
@given(SIDES, SIDES, st.integers(2, 1000))
def test_a_side_that_is_slower_throughout_moves_the_whole_interval(
    a: Walls, b: Walls, factor: int
) -> None:
    slower = [[[wall * factor for wall in visit] for visit in one] for one in b]
    found, moved = ratio(side(a), side(b)), ratio(side(a), side(slower))

    assert moved.ratio == pytest.approx(factor * found.ratio)
    if found.low is not None and found.high is not None:
        assert moved.low == pytest.approx(factor * found.low)
        assert moved.high == pytest.approx(factor * found.high)


def test_a_process_counts_alike_however_many_passes_it_had_time_for() -> None:
    assert step_ns(side([[[10] * 100], [[40]]])) == pytest.approx(20)


def test_without_scatter_inside_processes_the_interval_is_welchs() -> None:
    # Logarithms of each side -0.1, 0, 0.1: deviation 0.1 of three, four degrees of freedom.
    a = side([[[round(1e9 * exp(n / 10))]] for n in (-1, 0, 1)])
    b = side([[[round(2e9 * exp(n / 10))]] for n in (-1, 0, 1)])
    reach = t_95(4) * sqrt(2 * 0.1**2 / 3)

    found = ratio(a, b)

    assert found.low is not None
    assert log(found.low / 2) == pytest.approx(-reach, rel=0.05)
    assert found.seen is True


def test_processes_that_differ_hide_what_their_many_passes_would_show() -> None:
    alike = ratio(side([[[100, 101] * 50]]), side([[[110, 111] * 50]]))
    differ = ratio(
        side([[[100, 101] * 50], [[150, 151] * 50], [[70, 71] * 50]]),
        side([[[110, 111] * 50], [[165, 166] * 50], [[77, 78] * 50]]),
    )

    assert (alike.seen, differ.seen) == (True, False)


def test_visits_of_one_process_scatter_beyond_their_passes() -> None:
    visits = side([[[100] * 50, [130] * 50, [90] * 50]])

    assert ratio(visits, side([[[120] * 50]])).seen is False


def test_one_pass_alone_has_a_ratio_and_no_interval() -> None:
    found = ratio(side([[[10]]]), side([[[20, 21, 22]]]))

    assert found.ratio == pytest.approx(2.1)
    assert (found.low, found.high, found.seen) == (None, None, None)


@pytest.mark.parametrize("number", [1, 2, 7, 8])
def test_medians_are_drawn_as_if_every_pass_had_been(number: int) -> None:
    visit = np.sort(np.random.default_rng(1).exponential(1.0, number))
    rng = np.random.default_rng(2)

    drawn = bootstrap._medians(visit, 100_000, rng)

    whole = np.median(rng.choice(visit, (100_000, number)), axis=1)
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    assert np.mean(drawn) == pytest.approx(np.mean(whole), rel=0.01)
    assert np.quantile(drawn, shares) == pytest.approx(np.quantile(whole, shares), rel=0.03)


def test_three_processes_a_side_hold_the_truth_often_enough() -> None:
    rng = np.random.default_rng(3)

    def drawn() -> Measured:
        processes = rng.normal(0, 0.1, 3)
        return [[np.sort(1e6 * np.exp(p + rng.normal(0, 0.03, 20)))] for p in processes]

    held = [ratio(drawn(), drawn()).seen is False for _ in range(200)]

    assert np.mean(held) >= 0.93
