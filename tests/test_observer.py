"""What watching costs, process by process."""

from math import exp

import pytest

from tests.experiment_runs import Clock, point
from tests.frames import Row, table
from whichwall.analyze.observer import cost, observer
from whichwall.schemas.experiments import Cost, Observer, Process
from whichwall.schemas.passes import AFTER, DECODE, PROFILED, Passes
from whichwall.schemas.points import SAMPLER_OFF, SAMPLER_ON, Points

POINTS = [point(0, **{Points.label: SAMPLER_OFF}), point(1, **{Points.label: SAMPLER_ON})]


def observed(*passes: Row) -> Observer | None:
    return observer(table(Points, *POINTS), table(Passes, *passes))


def test_each_condition_is_compared_within_its_process() -> None:
    clock = Clock()
    passes = []
    for process, base in enumerate((100, 200)):  # the second process is slower as a whole
        passes += clock.request(0, 900, [base, base, base], visit=process)
        passes += clock.request(1, 900, [base, base, base], visit=process)
        passes += clock.passes(0, [2 * base], stage=PROFILED, visit=process)
        passes += clock.passes(0, [base * 11 // 10], stage=AFTER, visit=process)

    found = observed(*passes)

    assert found is not None
    assert found.phase == DECODE
    assert found.sides == [
        Process(SAMPLER_OFF, 2, 150, 100, 200),
        Process(SAMPLER_ON, 2, 150, 100, 200),
        Process("under the profiler", 2, 300, 200, 400),
        Process("after the profiler", 2, 165, 110, 220),
    ]
    costs = [cost for cost in (found.profiled, found.after, found.sampler) if cost]
    assert [cost.ratio for cost in costs] == [2.0, 1.1, 1.0]
    assert [cost.seen for cost in costs] == [True, True, False]


def test_a_difference_smaller_than_that_of_processes_is_not_seen() -> None:
    found = cost({0: 90.0, 1: 103.0, 2: 112.0, 3: 99.0}, dict.fromkeys(range(4), 100.0))

    assert found is not None
    assert found.seen is False


def test_the_interval_is_students_on_logarithms() -> None:
    # Logarithms -0.1, 0, 0.1: deviation 0.1, so ± 4.30 · 0.1 / √3 around 0.
    found = cost({n: exp((n - 1) / 10) for n in range(3)}, dict.fromkeys(range(3), 1.0))

    assert found is not None
    assert found.low == pytest.approx(exp(-0.24826), rel=1e-4)
    assert found.high == pytest.approx(exp(0.24826), rel=1e-4)


def test_two_processes_that_happen_to_agree_prove_little() -> None:
    found = cost({0: 100.5, 1: 102.0}, {0: 100.0, 1: 100.0})

    assert found is not None
    assert found.seen is False


def test_one_process_has_a_ratio_and_no_interval() -> None:
    assert cost({0: 110.0}, {0: 100.0}) == Cost(1.1, None, None, 1, seen=None)


def test_a_process_without_the_other_condition_does_not_count() -> None:
    assert cost({0: 110.0}, {1: 100.0}) is None


def test_a_run_without_the_points_of_a_sampler_has_no_observer() -> None:
    assert observer(table(Points, point(0)), table(Passes, *Clock().passes(0, [100]))) is None
