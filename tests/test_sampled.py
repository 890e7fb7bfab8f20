from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frames import Row, a_pass, sample, table
from tests.properties import PROPERTY
from whichwall.analyze.sampled import (
    CLEAN_STAGE,
    TRACE,
    Window,
    gpu_of,
    integrate,
    sampled,
    slowdowns,
    window_of,
)
from whichwall.schemas.manifest import VERSION, EnergyFacts, Gpu, Manifest
from whichwall.schemas.passes import DECODE, PREFILL, PROFILED, Passes
from whichwall.schemas.samples import Samples
from whichwall.schemas.summary import SampleWindow

S = 10**9
T0 = 1_790_000_000 * S
WINDOW = Window(CLEAN_STAGE, T0, T0 + 10 * S)
# A clean stage of ten seconds: a prefill, then decode steps of two sequences.
PASSES = [
    a_pass(T0, S, PREFILL, batch=2, tokens=200),
    *(a_pass(T0 + i * S, S, batch=2, tokens=2) for i in range(1, 10)),
    a_pass(T0 + 20 * S, S, stage=PROFILED, batch=2, tokens=2),
]


def manifest(*uuids: str | None, energy_mj: int | None = None) -> Manifest:
    return Manifest(
        schema_version=VERSION, id="", name="", created_ns=0, tool_version="0", command="",
        mode="decode", gpus=[Gpu(name="GPU", uuid=uuid) for uuid in uuids],
        energy=None if energy_mj is None else EnergyFacts(T0, T0 + 10 * S, energy_mj),
    )  # fmt: skip


def steady(watts: float, first: int = -1, last: int = 11, **more: object) -> list[Row]:
    """Return a sample a second."""
    return [sample(T0 + i * S, watts, **more) for i in range(first, last + 1)]


def read(
    rows: Sequence[Row], found: Manifest | None = None, window: Window | None = WINDOW
) -> SampleWindow | None:
    return sampled(table(Samples, *rows), table(Passes, *PASSES), found or manifest(), window)


def test_the_window_is_the_clean_stage_else_the_trace_else_none() -> None:
    assert window_of(table(Passes, *PASSES), (1, 2)) == WINDOW
    assert window_of(table(Passes, PASSES[-1]), (1, 2)) == Window(TRACE, 1, 2)
    assert window_of(table(Passes), None) is None


def test_a_window_is_summed_up_whole() -> None:
    rows = steady(300.0, sm_clock_mhz=1980.0, memory_clock_mhz=3201.0, temperature_c=40.0,
                  throttle_reasons=0)  # fmt: skip
    # What lies outside the window counts for nothing but the ends of the integral.
    rows[0] |= {Samples.sm_clock_mhz: 300.0, Samples.throttle_reasons: 0x40}
    found = read(rows)
    assert found == SampleWindow(
        window="clean", gpu_uuid="GPU-a", samples=11, sm_clock_mhz_median=1980.0,
        memory_clock_mhz_median=3201.0, power_w_median=300.0, power_from="instant",
        temperature_c_median=40.0, energy_j=3000.0, energy_from="samples",
        energy_j_per_token=150.0, throttle={},
    )  # fmt: skip


def test_the_counter_is_believed_before_the_integral() -> None:
    found = read(steady(300.0), manifest(energy_mj=2_900_000))
    assert found is not None
    assert (found.energy_j, found.energy_from, found.energy_j_per_token) == (
        2900.0,
        "counter",
        145.0,
    )


def test_the_counter_of_the_clean_stage_does_not_speak_for_a_trace() -> None:
    found = read(steady(300.0), manifest(energy_mj=1), WINDOW._replace(name=TRACE))
    assert found is not None
    assert (found.energy_j, found.energy_from) == (3000.0, "samples")


@PROPERTY
@given(
    st.lists(st.tuples(st.integers(1, 2 * S), st.floats(10, 700)), min_size=2, max_size=12),
    st.integers(0, S),
    st.integers(0, S),
)
def test_the_integral_of_power_is_that_of_its_straight_lines(
    steps: list[tuple[int, float]], late: int, early: int
) -> None:
    times = [T0]
    for step, _ in steps[1:]:
        times.append(times[-1] + step)
    watts = [w for _, w in steps]
    window = Window(TRACE, times[0] + min(late, steps[1][0]), times[-1])
    rows = table(Samples, *(sample(t, w) for t, w in zip(times, watts, strict=True)))
    found = integrate(rows, Samples.power_instant_w, window)

    def power(at: float) -> float:
        i = max(i for i, t in enumerate(times) if t <= at)
        if i == len(times) - 1:
            return watts[-1]
        share = (at - times[i]) / (times[i + 1] - times[i])
        return watts[i] + share * (watts[i + 1] - watts[i])

    cuts = sorted({window.start_ns, *(t for t in times if t > window.start_ns)})
    expected = sum((power(a) + power(b)) / 2 * (b - a) / S for a, b in pairwise(cuts))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_an_end_without_a_sample_beyond_it_or_a_silence_leaves_energy_unknown() -> None:
    for rows in (steady(300.0, first=1), steady(300.0, last=9)):
        found = read(rows)
        assert found is not None
        assert (found.energy_j, found.energy_from, found.power_w_median) == (None, None, 300.0)
    silent = [row for i, row in enumerate(steady(300.0)) if i not in (5, 6, 7)]
    quiet = [row for i, row in enumerate(steady(300.0)) if i not in (5, 6)]
    energies = [(one := read(rows)) and one.energy_j for rows in (silent, quiet)]
    assert energies == [None, 3000.0]


def test_a_silence_outside_the_window_does_not_matter() -> None:
    rows = [sample(T0 - 100 * S, 300.0), *steady(300.0, first=0, last=10), sample(T0 + 99 * S, 1.0)]
    found = read(rows)
    assert found is not None
    assert found.energy_j == 3000.0


def test_a_window_under_two_seconds_has_no_power() -> None:
    short = Window(CLEAN_STAGE, T0, T0 + 2 * S - 1)
    found = read(steady(300.0, sm_clock_mhz=1980.0), window=short)
    assert found is not None
    assert (found.power_w_median, found.energy_j, found.sm_clock_mhz_median) == (None, None, 1980.0)
    enough = read(steady(300.0), window=Window(CLEAN_STAGE, T0, T0 + 2 * S))
    assert enough is not None
    assert (enough.power_w_median, enough.energy_j) == (300.0, 600.0)


def test_instant_power_is_preferred_then_draw_then_average() -> None:
    columns = {"power_instant_w": 1.0, "power_w": 2.0, "power_average_w": 3.0}
    found = []
    while columns:
        rows = [{**sample(T0 + i * S), **columns} for i in range(-1, 12)]
        one = read(rows)
        assert one is not None
        found.append((one.power_from, one.power_w_median))
        columns.pop(next(iter(columns)))
    assert found == [("instant", 1.0), ("draw", 2.0), ("average", 3.0)]


def test_what_was_not_readable_stays_unknown() -> None:
    found = read([sample(T0 + S)])
    assert found == SampleWindow(
        window="clean", gpu_uuid="GPU-a", samples=1, sm_clock_mhz_median=None,
        memory_clock_mhz_median=None, power_w_median=None, power_from=None,
        temperature_c_median=None, energy_j=None, energy_from=None, energy_j_per_token=None,
        throttle={},
    )  # fmt: skip


def test_no_window_or_no_sample_inside_it_is_nothing() -> None:
    assert read(steady(300.0), window=None) is None
    assert read([sample(T0 - 1, 1.0), sample(T0 + 10 * S + 1, 1.0)]) is None
    assert read([]) is None
    edges = read([sample(T0, 1.0), sample(T0 + 10 * S, 1.0)])
    assert edges is not None
    assert edges.samples == 2


def test_tokens_are_those_generated_or_those_fed_where_nothing_but_prefills_ran() -> None:
    def per_token(*rows: Row) -> float | None:
        found = sampled(
            table(Samples, *steady(300.0)), table(Passes, *rows), manifest(energy_mj=12_000), WINDOW
        )
        assert found is not None
        return found.energy_j_per_token

    prefills = [a_pass(T0 + i * S, S, PREFILL, batch=2, tokens=200) for i in range(2)]
    assert per_token(*prefills) == 12 / 400
    assert per_token(*prefills, a_pass(T0 + 3 * S, S, DECODE, batch=2)) == 12 / 6
    assert per_token(*prefills, a_pass(T0 + 3 * S, S, DECODE, batch=None)) is None
    assert per_token(a_pass(T0 + 11 * S, S)) is None


def test_the_joules_of_one_gpu_are_spread_over_the_tokens_of_its_rank() -> None:
    ranks = [a_pass(T0 + S, S, batch=3) | {Passes.rank: rank} for rank in (0, 1)]

    found = sampled(
        table(Samples, *steady(300.0)), table(Passes, *ranks), manifest(energy_mj=12_000), WINDOW
    )

    assert found is not None
    assert found.energy_j_per_token == 12 / 3


def test_only_the_runs_own_gpu_counts() -> None:
    both = table(Samples, sample(T0), sample(T0, gpu_uuid="GPU-b"), sample(T0, gpu_uuid=None))
    one = table(Samples, sample(T0), sample(T0, gpu_uuid=None))
    assert gpu_of(both, manifest("GPU-b")) == "GPU-b"
    assert gpu_of(both, manifest(None)) is None
    assert gpu_of(one, manifest(None)) == "GPU-a"
    assert gpu_of(one, manifest()) == "GPU-a"
    # The card that was sampled is not the one that worked.
    assert gpu_of(one, manifest("GPU-c")) is None


def test_each_throttle_reason_has_its_share_of_the_samples() -> None:
    masks = [0, 0x4, 0x4 | 0x20, 0x8000, None, 0x1, 0x4, 0, 0, 0, 0]
    rows = [sample(T0 + i * S, throttle_reasons=mask) for i, mask in enumerate(masks)]
    found = read(rows)
    assert found is not None
    assert found.throttle == {
        "idle": 0.1, "software_power_cap": 0.3, "software_thermal": 0.1, "unknown": 0.1,
    }  # fmt: skip
    assert slowdowns(found) == ["power cap: 30 % of the samples in the clean window"]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("software_power_cap", "power cap"), ("hardware_power_brake", "power cap"),
        ("software_thermal", "thermal"), ("hardware_thermal", "thermal"),
        ("application_clocks", "application clocks"), ("hardware_slowdown", "other slowdown"),
        ("sync_boost", "other slowdown"), ("unknown", "other slowdown"),
        ("idle", None), ("display_clocks", None),
    ],
)  # fmt: skip
def test_a_slowdown_is_said_in_words_if_it_held_for_a_good_part(
    reason: str, words: str | None
) -> None:
    window = read([sample(T0)])
    assert window is not None

    def said(share: float) -> list[str]:
        return slowdowns(msgspec.structs.replace(window, throttle={reason: share}))

    assert said(0.2) == []
    assert said(0.21) == ([f"{words}: 21 % of the samples in the clean window"] if words else [])
    assert slowdowns(None) == []
