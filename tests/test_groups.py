import pytest

from tests.frames import Row, a_pass, table
from whichwall.analyze.groups import (
    Clean,
    Key,
    clean_of,
    gaps_per_step,
    groups_of,
    traced_group,
    untraced_group,
)
from whichwall.analyze.timings import timings
from whichwall.schemas.gaps import DEVICE, LAUNCH, Gaps
from whichwall.schemas.passes import DECODE, PREFILL, PROFILED, WARMUP, Passes
from whichwall.schemas.steps import Steps
from whichwall.schemas.summary import Floor, RoleTotal, Shares, StepGroup

KEY = Key(point=0, rank=0, device=0, phase=DECODE)
TIMED = timings(
    table(
        Passes,
        *(a_pass(i, 100 + i) for i in range(11)),
        a_pass(50, 900, PREFILL),
        a_pass(60, 1, stage=WARMUP),
        a_pass(70, 2, stage=PROFILED, point=1),
    )
)
FLOOR = Floor(
    phase=DECODE, point=0, batch=4, tokens=3, context_tokens=0, floor_ns=250, bytes_ns=250,
    arithmetic_ns=10, bytes=2_000_000, flops=8_000_000, bandwidth_gbps=8000.0,
    bandwidth_from="measured", tflops=800.0, tflops_from="measured", cached_weights=False,
)  # fmt: skip


def step(number: int, **more: object) -> Row:
    return {
        "point": 0, "rank": 0, Steps.device: 0, Steps.step: number, Steps.found_by: "annotation",
        Steps.phase: DECODE, Steps.start_ns: 1000 * number, Steps.window_ns: 900,
        Steps.busy_ns: 400, Steps.busy_without_communication_ns: 350, Steps.kernels: 7,
        Steps.launches: 5, Steps.kernel_median_ns: 30, Steps.gap_median_ns: 20, **more,
    }  # fmt: skip


def gap(of_step: int | None, dur: int, cause: str = LAUNCH, **more: object) -> Row:
    return {
        "point": 0, "rank": 0, Gaps.device: 0, Gaps.start_ns: 0, Gaps.dur_ns: dur,
        Gaps.cause: cause, Gaps.step: of_step, Gaps.before_name: "a", Gaps.after_name: "b", **more,
    }  # fmt: skip


def test_the_clean_step_is_that_of_its_own_series() -> None:
    assert clean_of(TIMED, 0, 0, DECODE, None) == Clean(105, 101, 109, "passes")
    assert clean_of(TIMED, 0, 0, PREFILL, None) == Clean(900, 900, 900, "passes")
    for point, rank, phase in ((1, 0, DECODE), (0, 1, DECODE), (0, 0, None)):
        assert clean_of(TIMED, point, rank, phase, None) is None


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (DECODE, Clean(77, None, None, "option")),
        (None, Clean(77, None, None, "option")),
        (PREFILL, Clean(900, 900, 900, "passes")),
    ],
)
def test_a_step_timed_elsewhere_speaks_of_decode_or_of_an_unnamed_phase(
    phase: str | None, expected: Clean
) -> None:
    assert clean_of(TIMED, 0, 0, phase, 77) == expected


def test_steps_are_grouped_by_point_rank_device_and_phase() -> None:
    rows = [
        step(0, phase=PREFILL), step(1), step(2), step(1, device=1), step(0, point=1),
        step(3, phase=None), step(4, device=None),
    ]  # fmt: skip
    found = {key: rows[Steps.step].to_list() for key, rows in groups_of(table(Steps, *rows))}
    assert found == {
        (0, 0, 0, DECODE): [1, 2], (0, 0, 0, PREFILL): [0], (0, 0, 0, None): [3],
        (0, 0, 1, DECODE): [1], (0, 0, None, DECODE): [4], (1, 0, 0, DECODE): [0],
    }  # fmt: skip


def test_gaps_are_medians_over_steps_and_a_step_without_one_counts_as_none() -> None:
    steps = table(Steps, step(1), step(2), step(3))
    gaps = table(
        Gaps,
        gap(1, 10), gap(1, 20), gap(2, 50), gap(3, 40), gap(3, 5, DEVICE), gap(3, 6, DEVICE),
        gap(None, 999), gap(7, 999), gap(1, 999, device=1), gap(1, 999, rank=1),
    )  # fmt: skip
    assert gaps_per_step(steps, gaps) == {LAUNCH: 40, DEVICE: 0}


def test_a_group_is_summed_up_whole() -> None:
    roles = [RoleTotal("norm", 30, 0.5, 3), RoleTotal("other", 30, 0.5, 4)]
    rows = table(
        Steps, step(1, busy_ns=300, kernels=6), step(2, busy_ns=500), step(3, window_ns=1000)
    )
    found = traced_group(
        KEY, rows, table(Gaps, gap(1, 60)), Clean(800, 700, 900, "passes"), FLOOR, roles
    )
    assert found == StepGroup(
        rank=0, device=0, point=0, phase=DECODE, count=3, batch=4, window_ns_median=900,
        busy_ns_median=400, busy_without_communication_ns_median=350,
        busy_fraction_traced=400 / 900, busy_fraction_clean=0.5,
        clean_step_ns_median=800, clean_step_ns_p10=700, clean_step_ns_p90=900, clean_from="passes",
        kernels_median=7.0, launches_median=5.0, kernel_median_ns=30, gap_median_ns=20,
        gaps_by_cause_ns={LAUNCH: 0}, tokens_per_s=4 * 1e9 / 800, achieved_gbps=2500.0,
        achieved_tflops=10.0, times_floor=800 / 250,
        shares=Shares(launches=0.5, kernels=150 / 800, bytes=250 / 800), roles=roles,
        attributed_share=0.5,
    )  # fmt: skip


def test_what_is_not_known_of_a_group_is_null() -> None:
    found = traced_group(KEY, table(Steps, step(1)), table(Gaps), None, None, [])
    unknown = [
        "batch", "busy_fraction_clean", "clean_step_ns_median", "clean_step_ns_p10",
        "clean_step_ns_p90", "clean_from", "tokens_per_s", "achieved_gbps", "achieved_tflops",
        "times_floor", "shares", "attributed_share",
    ]  # fmt: skip
    assert {name: getattr(found, name) for name in unknown} == dict.fromkeys(unknown)
    assert (found.busy_ns_median, found.gaps_by_cause_ns) == (400, {})


def test_a_prefill_counts_the_tokens_fed_and_a_decode_those_generated() -> None:
    clean = Clean(800, None, None, "option")
    of = {
        phase: traced_group(
            KEY._replace(phase=phase), table(Steps, step(1, batch=2)), table(Gaps), clean, floor,
            [],
        ).tokens_per_s
        for phase, floor in ((DECODE, None), (PREFILL, FLOOR), (None, None))
    }  # fmt: skip
    assert of == {DECODE: 2e9 / 800, PREFILL: 2 * 3 * 1e9 / 800, None: None}


def test_a_timed_pass_without_gpu_work_has_its_clean_numbers_and_no_busy_time() -> None:
    found = untraced_group(0, 0, DECODE, 5, Clean(800, 700, 900, "passes"), FLOOR)
    assert (found.device, found.count, found.clean_step_ns_median) == (None, 5, 800)
    assert found.tokens_per_s == 4 * 1e9 / 800
    unknown = ["window_ns_median", "busy_ns_median", "busy_fraction_traced", "busy_fraction_clean",
               "kernels_median", "launches_median", "shares"]  # fmt: skip
    assert {name: getattr(found, name) for name in unknown} == dict.fromkeys(unknown)
