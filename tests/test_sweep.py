"""Points side by side: steps and spread, floors, waits, what was refused, what was traced."""

import polars as pl

from tests.experiment_runs import LIMITS, Clock, limit, point
from tests.frames import MANIFEST, Row, table
from tests.golden import MODEL
from tests.report_inputs import group
from whichwall.analyze.experiments import varied
from whichwall.analyze.floors import Basis
from whichwall.analyze.knee import knee_of
from whichwall.analyze.sweep import sweep
from whichwall.analyze.timings import timings
from whichwall.schemas.ceilings import Ceilings
from whichwall.schemas.experiments import CONTEXT
from whichwall.schemas.passes import DECODE, MATMUL, PREFILL, WARMUP, Passes
from whichwall.schemas.points import LONG_GENERATION, OUT_OF_MEMORY, REFUSED, Points
from whichwall.schemas.steps import Steps
from whichwall.schemas.summary import StepGroup
from whichwall.schemas.sweep import Sweep


def swept(
    points: list[Row],
    passes: list[Row],
    groups: list[StepGroup] | None = None,
    *,
    known: bool = True,
) -> pl.DataFrame:
    frame = table(Passes, *passes)
    basis = Basis(
        manifest=MANIFEST,
        model=MODEL if known else None,
        points=table(Points, *points),
        ceilings=table(Ceilings, *(limit(*row) for row in LIMITS)) if known else table(Ceilings),
        timings=timings(frame),
        steps=table(Steps),
    )
    return sweep(basis, frame, groups or [])


def values(rows: pl.DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return rows.select(columns).rows()


def test_a_point_has_a_row_for_each_phase_in_the_order_of_a_request() -> None:
    passes = Clock().request(0, 900, [100, 120, 140])

    rows = swept([point(0)], passes)

    assert values(rows, Sweep.phase, Sweep.step_ns, Sweep.passes) == [
        (PREFILL, 900, 1), (DECODE, 120, 3),
    ]  # fmt: skip


def test_a_refused_point_stays_with_its_reason_and_nulls() -> None:
    refused = point(0, **{Points.outcome: REFUSED, Points.reason: "no kernel"})

    rows = swept([refused], [])

    known = {name: value for name, value in rows.row(0, named=True).items() if value is not None}
    assert known == {
        Sweep.point: 0, Sweep.engine: "eager", Sweep.attention: "sdpa", Sweep.dtype: "bfloat16",
        Sweep.batch: 1, Sweep.context_tokens: 16, Sweep.prompt_tokens: 16, Sweep.new_tokens: 4,
        Sweep.outcome: REFUSED, Sweep.reason: "no kernel", Sweep.visits: 0, Sweep.passes: 0,
    }  # fmt: skip


def test_what_was_timed_before_memory_ran_out_is_kept() -> None:
    broken = point(0, **{Points.outcome: OUT_OF_MEMORY, Points.reason: "38 GiB"})

    rows = swept([broken], Clock().passes(0, [100]))

    assert values(rows, Sweep.outcome, Sweep.step_ns) == [(OUT_OF_MEMORY, 100)]


def test_visits_are_counted_and_their_lowest_and_highest_median_kept() -> None:
    clock = Clock()
    passes = [
        *clock.passes(0, [100, 110, 120]),
        *clock.passes(0, [130, 150, 170], visit=1),
        *clock.passes(0, [999], stage=WARMUP, visit=2),
    ]

    rows = swept([point(0)], passes)

    assert values(rows, Sweep.visits, Sweep.visit_ns_lowest, Sweep.visit_ns_highest) == [
        (2, 110, 150)
    ]


def test_tokens_are_counted_for_all_sequences_and_for_each() -> None:
    passes = Clock().passes(0, [1_000_000], batch=8, tokens=8)

    rows = swept([point(0, batch=8)], passes)

    assert values(rows, Sweep.tokens_per_s, Sweep.tokens_per_s_each) == [(8000.0, 1000.0)]


def test_floor_and_rates_are_those_of_the_pass() -> None:
    rows = swept([point(0)], Clock().passes(0, [1_000_000]))

    (row,) = rows.iter_rows(named=True)
    assert row[Sweep.times_floor] == 1_000_000 / row[Sweep.floor_ns]
    assert row[Sweep.achieved_gbps] == row[Sweep.floor_bytes] / 1_000_000
    assert row[Sweep.intensity] == row[Sweep.floor_flops] / row[Sweep.floor_bytes]
    # 16 tokens × 2 layers × keys and values of 2 heads of 16 numbers × 2 bytes
    assert row[Sweep.cache_bytes] == 16 * 2 * 2 * 2 * 16 * 2


def test_without_a_model_there_is_a_step_and_no_floor() -> None:
    rows = swept([point(0)], Clock().passes(0, [100]), known=False)

    assert values(rows, Sweep.step_ns, Sweep.floor_ns, Sweep.cache_bytes, Sweep.intensity) == [
        (100, None, None, None)
    ]


def test_matrix_products_have_neither_floor_nor_tokens() -> None:
    passes = Clock().passes(0, [100], MATMUL, batch=None, tokens=None)

    rows = swept([point(0)], passes)

    assert values(rows, Sweep.phase, Sweep.step_ns, Sweep.floor_ns, Sweep.tokens_per_s) == [
        (MATMUL, 100, None, None)
    ]


def test_the_waits_are_those_of_whole_requests_of_one_visit() -> None:
    clock = Clock()
    passes = [
        *clock.request(0, 900, [100, 100, 100]),
        *clock.request(0, 700, [200, 200, 200], visit=1),
    ]

    rows = swept([point(0)], passes)

    waits = (Sweep.ttft_ns, Sweep.tpot_ns, Sweep.request_ns, Sweep.request_tokens)
    assert set(values(rows, *waits)) == {(800, 150, 1250, 4)}


def test_steps_without_a_clean_prefill_make_no_request() -> None:
    rows = swept([point(0)], Clock().passes(0, [100, 100]))

    assert values(rows, Sweep.ttft_ns, Sweep.tpot_ns, Sweep.request_ns) == [(None, None, None)]


def test_a_traced_point_has_its_gpu_work() -> None:
    rows = swept([point(0), point(1)], [
        *Clock().passes(0, [100]), *Clock().passes(1, [100]),
    ], [group()])  # fmt: skip

    assert values(rows, Sweep.point, Sweep.busy_ns, Sweep.kernels, Sweep.launches) == [
        (0, 12_000, 3.0, 3.0), (1, None, None, None),
    ]  # fmt: skip


def test_a_long_generation_is_no_point_of_the_line() -> None:
    points = [point(0), point(1, **{Points.label: LONG_GENERATION})]

    rows = swept(points, [*Clock().passes(0, [100]), *Clock().passes(1, [100])])

    assert varied(CONTEXT, rows)[Sweep.point].to_list() == [0]


def test_a_rise_within_what_visits_differ_by_is_no_knee() -> None:
    clock = Clock()
    points = [point(n, batch=2**n) for n in range(4)]
    steady = [row for n in range(4) for row in clock.passes(n, [100 if n < 3 else 130])]
    drifting = [row for n in range(4) for row in clock.passes(n, [140 if n < 3 else 170], visit=1)]

    calm = knee_of(swept(points, steady), Sweep.batch, DECODE)
    noisy = knee_of(swept(points, [*steady, *drifting]), Sweep.batch, DECODE)

    assert calm is not None
    assert calm.at == 4
    assert noisy is None
