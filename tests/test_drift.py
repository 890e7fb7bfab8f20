"""One long answer: its first 32 steps against its last."""

import pytest

from tests.experiment_runs import Clock, point
from tests.frames import Row, table
from whichwall.analyze.drift import drift
from whichwall.schemas.experiments import Drift
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import LONG_GENERATION, Points


def drifted(label: str | None, *passes: Row) -> Drift | None:
    return drift(table(Points, point(0, **{Points.label: label})), table(Passes, *passes))


def test_the_last_steps_are_compared_with_the_first() -> None:
    found = drifted(LONG_GENERATION, *Clock().request(0, 900, [100] * 32 + [150] * 32 + [200] * 32))

    assert found == Drift(96, 32, 100, 200, 2.0, [100, 150, 200])


def test_the_last_steps_are_the_last_ones_though_no_bin_is_full() -> None:
    found = drifted(LONG_GENERATION, *Clock().request(0, 900, [100] * 64 + [200] * 16))

    assert found == Drift(80, 32, 100, 150, 1.5, [100, 100])


def test_several_answers_are_each_counted_from_their_own_first_step() -> None:
    clock = Clock()
    answers = [
        *clock.request(0, 900, [100] * 32 + [200] * 32),
        *clock.request(0, 900, [100] * 32 + [200] * 32),
        *clock.request(0, 900, [100] * 32 + [200] * 32, visit=1),
    ]

    assert drifted(LONG_GENERATION, *answers) == Drift(64, 32, 100, 200, 2.0, [100, 200])


@pytest.mark.parametrize(("label", "steps"), [(LONG_GENERATION, 63), (None, 64)])
def test_a_short_answer_and_another_point_have_no_drift(label: str | None, steps: int) -> None:
    assert drifted(label, *Clock().request(0, 900, [100] * steps)) is None
