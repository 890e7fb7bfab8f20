import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frames import Row, a_pass, table
from tests.properties import PROPERTY
from whichwall.analyze.timings import timings, tpot_ns, ttft_ns
from whichwall.schemas.passes import AFTER, CLEAN, DECODE, PREFILL, PROFILED, WARMUP, Passes
from whichwall.schemas.timings import Timings


def request(
    start: int, prefill: int, steps: list[int], pause: int = 0, **more: object
) -> list[Row]:
    """Return a prefill and the decode steps that follow it, each after a pause of the host."""
    rows = [a_pass(start, prefill, PREFILL) | more]
    at = start + prefill
    for wall in steps:
        rows.append(a_pass(at + pause, wall) | more)
        at += pause + wall
    return rows


def test_a_series_is_summed_up_whole() -> None:
    rows = [
        a_pass(100 + 10 * i, wall, gpu_ns=gpu, batch=2, tokens=2, context_tokens=64 + i)
        for i, (wall, gpu) in enumerate([(7, 3), (5, None), (9, 4), (6, 5)])
    ]
    assert timings(table(Passes, *rows)).to_dicts() == [
        {
            "point": 0, "rank": 0, "phase": DECODE, "stage": CLEAN, "count": 4,
            "wall_ns_median": 6, "wall_ns_p10": 5, "wall_ns_p90": 8, "gpu_ns_median": 4,
            "batch": 2, "tokens": 2.0, "context_tokens": 65.5, "start_ns": 100, "end_ns": 136,
        }
    ]  # fmt: skip


def test_points_ranks_phases_and_stages_stay_apart() -> None:
    rows = [
        a_pass(start, 1, phase, stage, point=point, rank=rank)
        for start, (point, rank, phase, stage) in enumerate(
            [(1, 0, DECODE, CLEAN), (0, 1, DECODE, CLEAN), (0, 0, DECODE, PROFILED),
             (0, 0, PREFILL, CLEAN), (0, 0, DECODE, CLEAN)]
        )
    ]  # fmt: skip
    columns = [Timings.point, Timings.rank, Timings.phase, Timings.stage, Timings.count]
    assert timings(table(Passes, *rows)).select(columns).rows() == [
        (0, 0, DECODE, PROFILED, 1), (0, 0, PREFILL, CLEAN, 1), (0, 0, DECODE, CLEAN, 1),
        (0, 1, DECODE, CLEAN, 1), (1, 0, DECODE, CLEAN, 1),
    ]  # fmt: skip


def test_what_was_not_measured_stays_unknown() -> None:
    row = a_pass(0, 5, batch=None, tokens=None, context_tokens=None)
    found = timings(table(Passes, row)).row(0, named=True)
    unknown = [Timings.gpu_ns_median, Timings.batch, Timings.tokens, Timings.context_tokens]
    assert [found[name] for name in unknown] == [None] * 4


@PROPERTY
@given(st.integers(1, 10**9), st.lists(st.integers(1, 10**9), min_size=1, max_size=20),
       st.integers(0, 10**6))  # fmt: skip
def test_tpot_is_last_less_first_token_over_one_less_than_the_tokens(
    prefill: int, steps: list[int], pause: int
) -> None:
    rows = table(Passes, *request(10**18, prefill, steps, pause))
    tokens = 1 + len(steps)
    first, last = prefill, prefill + sum(steps) + pause * len(steps)
    expected = (last - first) / (tokens - 1)
    assert tpot_ns(rows) == pytest.approx(expected, abs=1)
    assert ttft_ns(rows) == prefill


def test_tpot_and_ttft_are_medians_over_clean_requests_of_the_first_point() -> None:
    rows = [
        *request(0, 100, [1000] * 3, stage=WARMUP),
        *request(10_000, 10, [4, 6]),
        *request(20_000, 30, [7, 9]),
        *request(30_000, 20, [50, 70]),
        *request(40_000, 200, [2000] * 3, stage=PROFILED),
        *request(50_000, 300, [3000] * 3, stage=AFTER),
        *request(60_000, 400, [4000] * 3, point=1),
        *request(5_000, 500, [5000] * 3, rank=1),
    ]
    assert (ttft_ns(table(Passes, *rows)), tpot_ns(table(Passes, *rows))) == (20, 8)


def test_steps_before_the_first_prefill_are_no_request() -> None:
    assert tpot_ns(table(Passes, a_pass(0, 5), a_pass(5, 5))) is None
    rows = [a_pass(0, 5), *request(100, 10, [20])]
    assert tpot_ns(table(Passes, *rows)) == 20


@pytest.mark.parametrize(
    ("rows", "ttft"), [([], None), ([a_pass(0, 5, PREFILL)], 5), ([a_pass(0, 5, DECODE)], None)]
)
def test_one_token_has_no_time_per_token(rows: list[Row], ttft: int | None) -> None:
    assert (ttft_ns(table(Passes, *rows)), tpot_ns(table(Passes, *rows))) == (ttft, None)
