from whichwall.analyze.operations import Operation
from whichwall.analyze.role_rates import Needed, needed, with_rates
from whichwall.schemas import roles as r
from whichwall.schemas.summary import RoleTotal

FOUND = [
    Operation("gate_up", r.GATE_UP_PROJ, flops=3_000, bytes=500, count=4),
    Operation("bias", r.GATE_UP_PROJ, flops=0, bytes=10, count=4),
    Operation("norm", r.NORM, flops=0, bytes=64, count=9),
    Operation("attention", r.ATTENTION, flops=800, bytes=0, count=4),
]


def test_what_a_pass_needs_is_added_up_by_role_and_left_out_without_products() -> None:
    assert needed(FOUND, context_known=True) == {
        r.GATE_UP_PROJ: Needed(bytes=2_040, flops=12_000),
        r.ATTENTION: Needed(bytes=0, flops=3_200),
    }


def test_without_a_known_context_nothing_is_said_of_attention() -> None:
    assert set(needed(FOUND, context_known=False)) == {r.GATE_UP_PROJ}


def test_rates_are_over_the_time_that_the_role_was_at_work() -> None:
    totals = [
        RoleTotal(r.GATE_UP_PROJ, 8_160, 0.5, 8),
        RoleTotal(r.ATTENTION, 6_400, 0.4, 8),
        RoleTotal(r.NORM, 1_600, 0.1, 18),
        RoleTotal(r.LM_HEAD, 0, 0.0, 0),
    ]
    found = with_rates(totals, needed(FOUND, context_known=True), passes=2)
    # 1 GB/s is a byte and 1 TFLOP/s a thousand FLOPs a nanosecond.
    assert [(t.achieved_gbps, t.achieved_tflops) for t in found] == [
        (2 * 2_040 / 8_160, 2 * 12_000 / 8_160 / 1_000),
        (None, 2 * 3_200 / 6_400 / 1_000),
        (None, None),
        (None, None),
    ]
    assert [t.busy_ns for t in found] == [t.busy_ns for t in totals]
