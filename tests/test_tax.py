import pytest

from tests.frames import Row, a_pass, table
from whichwall.analyze.tax import tax
from whichwall.analyze.timings import timings
from whichwall.schemas.passes import AFTER, CLEAN, DECODE, PREFILL, PROFILED, WARMUP, Passes
from whichwall.schemas.summary import Tax


def tax_of(*rows: Row) -> Tax | None:
    return tax(timings(table(Passes, *rows)))


def test_the_tax_is_the_same_step_before_under_and_after_the_profiler() -> None:
    rows = [a_pass(i, wall, stage=stage)
            for i, (stage, wall) in enumerate(
                [(WARMUP, 99), (CLEAN, 10), (CLEAN, 20), (PROFILED, 45), (AFTER, 18)])]  # fmt: skip
    assert tax_of(*rows) == Tax(
        phase=DECODE, clean_ns_median=15, profiled_ns_median=45, after_ns_median=18,
        profiled_ratio=3.0, after_ratio=1.2,
    )  # fmt: skip


def test_decode_speaks_before_prefill_and_the_first_point_before_others() -> None:
    rows = [
        a_pass(0, 100, PREFILL, CLEAN), a_pass(1, 200, PREFILL, PROFILED),
        a_pass(2, 10, DECODE, CLEAN), a_pass(3, 30, DECODE, PROFILED),
        a_pass(4, 1, DECODE, CLEAN, point=1), a_pass(5, 9, DECODE, PROFILED, point=1),
    ]  # fmt: skip
    found = tax_of(*rows)
    assert found is not None
    assert (found.phase, found.profiled_ratio, found.after_ratio) == (DECODE, 3.0, None)
    prefill = tax_of(*rows[:2])
    assert prefill is not None
    assert (prefill.phase, prefill.profiled_ratio) == (PREFILL, 2.0)


@pytest.mark.parametrize("stages", [(), (CLEAN,), (PROFILED, AFTER), (WARMUP, PROFILED)])
def test_without_both_sides_the_tax_is_unknown(stages: tuple[str, ...]) -> None:
    assert tax_of(*(a_pass(i, 10, stage=stage) for i, stage in enumerate(stages))) is None
