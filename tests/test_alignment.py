"""Which points of two runs are one pair."""

from msgspec.structs import replace

from whichwall.analyze.alignment import align
from whichwall.schemas.comparison import PointSide
from whichwall.schemas.passes import DECODE, PREFILL
from whichwall.schemas.points import REFUSED

PLAIN = PointSide(
    point=0, phase=DECODE, label=None, engine="eager", attention="sdpa", dtype="bfloat16",
    batch=1, context_tokens=16, prompt_tokens=16, new_tokens=4, outcome="done", reason=None,
    processes=1, visits=1, passes=3, step_ns=10.0, step_ns_p10=9, step_ns_p90=11,
    process_ns_lowest=10.0, process_ns_highest=10.0,
)  # fmt: skip


def point(**more: object) -> PointSide:
    return replace(PLAIN, **more)


def test_runs_of_one_point_are_one_pair_whatever_they_differ_in() -> None:
    graph = point(engine="cuda-graph", batch=4, context_tokens=64, dtype="float16")

    assert align([PLAIN], [graph]) == ([(PLAIN, graph)], [], [])


def test_a_plain_run_meets_its_own_engine_in_a_ladder() -> None:
    eager, graph = (
        point(point=n, label=e, engine=e) for n, e in enumerate(("eager", "cuda-graph"))
    )
    mine = point(engine="cuda-graph")

    assert align([mine], [eager, graph]) == ([(mine, graph)], [], [eager])


def test_points_of_sweeps_meet_by_the_size_that_is_swept() -> None:
    a = [point(point=n, batch=batch) for n, batch in enumerate((1, 2, 4))]
    b = [point(point=n, batch=batch) for n, batch in enumerate((4, 2, 8))]

    assert align(a, b) == ([(a[1], b[1]), (a[2], b[0])], [a[0]], [b[2]])


def test_a_label_tells_points_apart_that_are_alike_otherwise() -> None:
    a = [point(point=0), point(point=1, label="long generation")]
    b = [point(point=0, label="long generation"), point(point=1)]

    assert align(a, b) == ([(a[0], b[1]), (a[1], b[0])], [], [])


def test_phases_never_meet_each_other() -> None:
    prefill = point(phase=PREFILL)

    assert align([PLAIN], [prefill]) == ([], [PLAIN], [prefill])


def test_a_prefill_goes_by_its_prompt_and_a_step_by_its_context() -> None:
    swept = [point(point=n, phase=PREFILL, prompt_tokens=p, context_tokens=p) for n, p in
             enumerate((16, 32))]  # fmt: skip
    mine = point(phase=PREFILL, prompt_tokens=32, context_tokens=0)

    assert align([mine], swept) == ([(mine, swept[1])], [], [swept[0]])


def test_a_refused_point_has_no_partner_and_is_not_lost() -> None:
    refused = point(phase=None, outcome=REFUSED, step_ns=None)

    assert align([refused], [refused]) == ([], [refused], [refused])
