import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import PROPERTY
from whichwall.analyze.thresholds import ASSUMED_NODE_IDLE_NS, BUSY_TOLERANCE, MAJORITY
from whichwall.analyze.walls import (
    ARITHMETIC,
    BYTES,
    CONFIRM_WITH,
    KERNELS,
    LAUNCHES,
    MIXED,
    Evidence,
    shares,
    verdict,
)
from whichwall.schemas.summary import Floor, SampleWindow, Shares, Verdict

MS = 1_000_000


def a_floor(
    floor_ns: int | None, bytes_ns: int | None = None, arithmetic_ns: int | None = None,
    *, cached: bool = False,
) -> Floor:  # fmt: skip
    """Return a floor; bytes are the larger total unless said otherwise."""
    return Floor(
        phase="decode", point=0, batch=1, tokens=1, context_tokens=0, floor_ns=floor_ns,
        bytes_ns=floor_ns if bytes_ns is None else bytes_ns, arithmetic_ns=arithmetic_ns,
        bytes=0, flops=0, bandwidth_gbps=4000.0, bandwidth_from="measured", tflops=None,
        tflops_from=None, cached_weights=cached,
    )  # fmt: skip


def judged(
    step_ns: int | None,
    busy_ns: int,
    floor: Floor | None = None,
    *,
    window_ns: int = 10 * MS,
    kernels: float = 100.0,
    node_idle_ns: float | None = None,
    engine: bool = False,
    samples: SampleWindow | None = None,
) -> Verdict:
    evidence = Evidence(
        step_ns=step_ns, window_ns=window_ns, busy_ns=busy_ns, kernels=kernels, floor=floor,
        node_idle_ns=node_idle_ns, engine=engine, no_floor="the model is not known",
    )  # fmt: skip
    return verdict(evidence, samples)


times = st.integers(1, 10**12)


@PROPERTY
@given(times, times, times, times, times)
def test_shares_lie_between_0_and_1_and_add_up_to_1(
    step: int, busy: int, floor: int, in_bytes: int, arithmetic: int
) -> None:
    found = shares(step, busy, a_floor(floor, in_bytes, arithmetic))
    assert found is not None
    parts = [found.launches, found.kernels, found.bytes or 0.0, found.arithmetic or 0.0]
    assert sum(parts) == pytest.approx(1.0, abs=1e-12)
    assert min(parts) >= 0
    assert (found.bytes is None) == (arithmetic > in_bytes)
    assert (found.arithmetic is None) == (arithmetic <= in_bytes)


def test_shares_are_those_of_the_definition() -> None:
    assert shares(10 * MS, 6 * MS, a_floor(2 * MS)) == Shares(
        launches=0.4, kernels=0.4, bytes=0.2, arithmetic=None
    )


@pytest.mark.parametrize("floor", [None, a_floor(None)])
def test_without_a_floor_shares_are_unknown(floor: Floor | None) -> None:
    assert shares(10 * MS, 6 * MS, floor) is None


@pytest.mark.parametrize(
    ("busy", "floor", "wall"),
    [
        (4, a_floor(1 * MS), LAUNCHES),
        (5, a_floor(1 * MS), LAUNCHES),
        (9, a_floor(3 * MS), KERNELS),
        (9, a_floor(7 * MS), BYTES),
        (9, a_floor(7 * MS, 2 * MS, 6 * MS), ARITHMETIC),
        (6, a_floor(3 * MS), MIXED),
    ],
)
def test_the_wall_takes_at_least_half_of_the_clean_step(busy: int, floor: Floor, wall: str) -> None:
    found = judged(10 * MS, busy * MS, floor)
    assert (found.wall, found.reason, found.confirm_with) == (wall, None, CONFIRM_WITH[wall])
    assert found.shares == shares(10 * MS, busy * MS, floor)


@PROPERTY
@given(times, times, times)
def test_a_named_wall_has_the_largest_share_and_a_mixed_step_none_of_half(
    step: int, busy: int, floor: int
) -> None:
    found = judged(step, busy, a_floor(floor))
    if busy > step * (1 + BUSY_TOLERANCE):
        assert (found.wall, found.shares) == (None, None)
        return
    assert found.shares is not None
    parts = {
        LAUNCHES: found.shares.launches,
        KERNELS: found.shares.kernels,
        BYTES: found.shares.bytes or 0.0,
    }
    if found.wall == MIXED:
        assert max(parts.values()) < MAJORITY
    else:
        assert parts[str(found.wall)] == max(parts.values()) >= MAJORITY
    assert found.predicted_step_ms is None or found.predicted_step_ms >= 0


def test_launches_are_named_without_a_floor_and_nothing_else_is() -> None:
    idle, busy = judged(10 * MS, 5 * MS), judged(10 * MS, 6 * MS)
    assert (idle.wall, idle.shares, idle.reason) == (LAUNCHES, None, None)
    assert (busy.wall, busy.shares, busy.predicted_step_ms) == (None, None, None)
    assert busy.reason == (
        "the GPU is busy for 60 % of the step, and how much of that it needs is not known: "
        "the model is not known"
    )


@pytest.mark.parametrize(("busy", "wall"), [(2_499_999, LAUNCHES), (2_500_001, None)])
def test_without_a_clean_time_launches_must_outlive_a_cut_of_every_gap_to_a_third(
    busy: int, wall: str | None
) -> None:
    # Window 10 ms: of the 7.5 ms of gaps 2.5 ms stay, as much as the busy time.
    found = judged(None, busy, a_floor(1 * MS))
    assert found.wall == wall
    text = "with every traced gap cut to a third the GPU would still idle 50 % of the step"
    assert (found.annotations == [f"no clean step time; {text}"]) == (wall is not None)
    assert wall or (found.reason or "").startswith(f"no clean step time: {text}")
    assert found.shares is None


def test_an_engines_step_without_a_clean_time_is_never_called_launches() -> None:
    found = judged(None, 1, window_ns=100 * MS, engine=True)
    assert found.wall is None
    assert "2 to 3 times its clean one" in (found.reason or "")
    assert "--clean-step-ms" in (found.reason or "")
    timed = judged(10 * MS, 1 * MS, engine=True)
    assert timed.wall == LAUNCHES


def test_no_gpu_and_no_step_are_no_wall_and_each_has_its_reason() -> None:
    assert verdict(Evidence(no_gpu="this run used none"), None).reason == (
        "no GPU: this run used none"
    )
    found = verdict(Evidence(step_ns=10 * MS), None)
    assert (found.wall, found.reason) == (None, "no step with GPU activity to judge")


def test_busy_beyond_the_clean_step_is_cut_and_said() -> None:
    found = judged(10 * MS, 10 * MS + MS // 4, a_floor(3 * MS))
    assert found.shares == Shares(launches=0.0, kernels=0.7, bytes=0.3)
    assert found.annotations == [
        "busy time in the trace exceeds the clean step: it is cut to the step"
    ]
    # Kernels at the floor, and no launches to wait for: no shorter than the floor itself.
    assert found.predicted_step_ms == 3.0


def test_busy_far_beyond_the_clean_step_is_of_other_work_and_names_no_wall() -> None:
    found = judged(10 * MS, 12 * MS, a_floor(3 * MS))
    assert (found.wall, found.shares) == (None, None)
    assert found.reason == (
        "the GPU is busy for 12.0 ms of each traced step, longer than the clean step of 10.0 ms: "
        "the two are not of the same work"
    )


def test_a_floor_beyond_busy_time_is_cut_and_said() -> None:
    found = judged(10 * MS, 8 * MS, a_floor(40 * MS))
    assert found.shares == Shares(launches=0.2, kernels=0.0, bytes=0.8)
    assert found.annotations == ["the floor exceeds the busy time: a ceiling or a dimension is off"]
    assert found.predicted_step_ms == 6.0


def test_weights_that_a_cache_may_serve_are_said() -> None:
    (said,) = judged(10 * MS, 9 * MS, a_floor(7 * MS, cached=True)).annotations
    assert said.endswith("the bytes floor is no floor")


def test_a_step_without_its_launches_takes_busy_time_and_idle_between_nodes() -> None:
    assumed = judged(10 * MS, 4 * MS)
    assert assumed.predicted_step_ms == 4 + 100 * ASSUMED_NODE_IDLE_NS / MS
    assert assumed.predicted_how == (
        "busy 4.00 ms + 100 kernels × 420 ns idle per graph node, assumed, as measured on an H200"
    )
    measured = judged(10 * MS, 4 * MS, node_idle_ns=1000.0)
    assert measured.predicted_step_ms == 4.1
    assert (measured.predicted_how or "").endswith(", measured on this device")


def test_each_other_wall_predicts_what_its_removal_leaves() -> None:
    kernels = judged(10 * MS, 9 * MS, a_floor(3 * MS))
    in_bytes = judged(10 * MS, 9 * MS, a_floor(7 * MS, 6 * MS, 1 * MS))
    assert (kernels.predicted_step_ms, in_bytes.predicted_step_ms) == (4.0, 7.0)
    for wall, found in (
        (ARITHMETIC, judged(10 * MS, 9 * MS, a_floor(7 * MS, 2 * MS, 6 * MS))),
        (MIXED, judged(10 * MS, 6 * MS, a_floor(3 * MS))),
    ):
        assert (found.wall, found.predicted_step_ms, found.predicted_how) == (wall, None, None)


@pytest.mark.parametrize("step", [10 * MS, None])
def test_what_slowed_the_card_is_said_with_every_verdict(step: int | None) -> None:
    window = SampleWindow(
        window="clean", gpu_uuid=None, samples=10, sm_clock_mhz_median=None,
        memory_clock_mhz_median=None, power_w_median=None, power_from=None,
        temperature_c_median=None, energy_j=None, energy_from=None, energy_j_per_token=None,
        throttle={"software_power_cap": 0.5, "hardware_thermal": 1.0, "idle": 1.0},
    )  # fmt: skip
    found = judged(step, 9 * MS, samples=window)
    assert found.annotations == [
        "power cap: 50 % of the samples in the clean window",
        "thermal: 100 % of the samples in the clean window",
    ]
    no_gpu = msgspec.structs.replace(Evidence(), no_gpu="none")
    assert verdict(no_gpu, window).annotations == found.annotations
