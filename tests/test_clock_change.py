"""Whether a card slowed itself: by the driver's reasons and by its clock, both shown."""

import pytest

from tests.experiment_runs import BEGIN_NS, MS, Clock, S, point, sampled
from tests.frames import MANIFEST, Row, table
from whichwall.analyze.clock_change import clock_change
from whichwall.schemas.experiments import ClockChange
from whichwall.schemas.passes import MATMUL, Passes
from whichwall.schemas.points import HOT, RESTED, Points
from whichwall.schemas.samples import Samples

POWER_CAP, IDLE, APPLICATION_CLOCKS = 0x4, 0x1, 0x2
POINTS = [point(0, **{Points.label: RESTED}), point(1, **{Points.label: HOT})]


def changed(samples: list[Row], passes: list[Row] | None = None) -> ClockChange | None:
    return clock_change(
        table(Points, *POINTS),
        table(Passes, *(_passes() if passes is None else passes)),
        table(Samples, *samples),
        MANIFEST,
    )


def _passes() -> list[Row]:
    """Return a rested second, 20 s of soak and a hot second, of passes of 100 ms and 150 ms."""
    clock = Clock()
    return [
        *clock.passes(0, [100 * MS] * 10, MATMUL),
        *clock.soak(1, 20, 100 * MS, MATMUL),
        *clock.passes(1, [150 * MS] * 10, MATMUL),
    ]


def soaked(clock_mhz: float, reasons: int | None) -> list[Row]:
    """Return samples of a rested second, and of the rest at another clock."""
    return [
        *sampled(BEGIN_NS, 1.1),
        *sampled(BEGIN_NS + S + 110 * MS, 21.5, sm_clock_mhz=clock_mhz, throttle_reasons=reasons),
    ]


@pytest.mark.parametrize(
    ("clock_mhz", "reasons", "slowed"),
    [
        (1440.0, POWER_CAP, True),
        (1980.0, 0, False),
        (1980.0, IDLE, False),
        (1980.0, POWER_CAP, False),  # a reason without an effect
        (1440.0, 0, None),  # an effect without a reason
        (1440.0, None, None),
        (1440.0, APPLICATION_CLOCKS, True),
    ],
)
def test_the_driver_and_the_clock_decide_together(
    clock_mhz: float, reasons: int | None, slowed: bool | None
) -> None:
    found = changed(soaked(clock_mhz, reasons))

    assert found is not None
    assert found.slowed is slowed


def test_both_sides_have_their_step_and_their_clock() -> None:
    found = changed(soaked(1440.0, POWER_CAP))

    assert found is not None
    assert (found.rested.step_ns, found.hot.step_ns, found.step_ratio) == (100 * MS, 150 * MS, 1.5)
    assert (found.rested.sm_clock_mhz, found.hot.sm_clock_mhz) == (1980.0, 1440.0)
    assert found.highest_clock_mhz == 1980.0
    assert found.reasons == {"software_power_cap": 1.0}


def test_a_reason_seen_long_before_the_end_of_the_soak_is_none() -> None:
    early = sampled(BEGIN_NS + 2 * S, 5, throttle_reasons=POWER_CAP, sm_clock_mhz=1440.0)
    late = sampled(BEGIN_NS + 10 * S, 12.5)

    found = changed([*sampled(BEGIN_NS, 1.1), *early, *late])

    assert found is not None
    assert (found.slowed, found.reasons) == (False, {})


def test_passes_between_two_readings_are_told_of_by_the_nearest() -> None:
    clock = Clock()
    short = [
        *clock.passes(0, [MS] * 3, MATMUL),
        *clock.soak(1, 5, 100 * MS, MATMUL),
        *clock.passes(1, [MS] * 3, MATMUL),
    ]
    found = changed(sampled(BEGIN_NS - 50 * MS, 5.5, sm_clock_mhz=1700.0), short)

    assert found is not None
    assert (found.rested.samples, found.rested.sm_clock_mhz) == (1, 1700.0)


def test_without_samples_the_steps_are_known_and_the_verdict_is_not() -> None:
    found = changed([])

    assert found is not None
    assert (found.step_ratio, found.slowed, found.hot.sm_clock_mhz) == (1.5, None, None)


def test_one_side_alone_is_no_comparison() -> None:
    assert changed([], Clock().passes(0, [100], MATMUL)) is None
