from hypothesis import given
from hypothesis import strategies as st

from tests.frames import Row, call, op, table
from tests.properties import PROPERTY
from whichwall.analyze.containment import innermost
from whichwall.schemas.launches import Launches
from whichwall.schemas.ops import Ops

Span = tuple[int, int]


@st.composite
def nested_spans(draw: st.DrawFn, begin: int = 0, end: int = 60, depth: int = 3) -> list[Span]:
    """Draw spans of one thread: each lies within, before or after any other."""
    found: list[Span] = []
    at = begin
    while depth and at < end and draw(st.booleans()):
        start = draw(st.integers(at, end))
        stop = draw(st.integers(start, end))
        found.append((start, stop))
        found += draw(nested_spans(start, stop, depth - 1))
        at = stop + 1
    return found


def brute_force(time: int, spans: list[Span]) -> int | None:
    """Return the narrowest span that holds a time; of equals, the later one."""
    holding = [i for i, (start, end) in enumerate(spans) if start <= time <= end]
    return min(holding, key=lambda i: (spans[i][1] - spans[i][0], -i), default=None)


@PROPERTY
@given(nested_spans(), nested_spans(), st.lists(st.integers(-2, 65), max_size=12))
def test_the_innermost_operator_is_the_narrowest_that_holds_the_call(
    one: list[Span], other: list[Span], times: list[int]
) -> None:
    spans = {1: one, 2: other}
    rows: list[Row] = [op(start, end, "x", tid=tid) for tid in spans for start, end in spans[tid]]
    calls = [call(time, time + 1, tid=1 + time % 3) for time in times]
    found = innermost(table(Launches, *calls), table(Ops, *rows)).to_list()
    expected = []
    for time in times:
        tid = 1 + time % 3
        inner = brute_force(time, spans.get(tid, []))
        expected.append(inner if inner is None or tid == 1 else inner + len(one))
    assert found == expected


def test_order_in_the_file_does_not_matter() -> None:
    ops = table(Ops, op(20, 30, "second"), op(2, 4, "inner"), op(0, 10, "outer"))
    calls = table(Launches, call(25, 26), call(9, 9), call(3, 3), call(15, 15))
    assert innermost(calls, ops).to_list() == [0, 2, 1, None]


def test_ranks_and_points_do_not_mix() -> None:
    ops = table(Ops, op(0, 10, "x"), op(0, 10, "x", rank=1), op(0, 10, "x", point=1))
    calls = table(Launches, call(5, 5, rank=1), call(5, 5, point=1), call(5, 5, point=2))
    assert innermost(calls, ops).to_list() == [1, 2, None]


def test_a_thread_without_operators_has_none() -> None:
    assert innermost(table(Launches, call(5, 5, tid=9)), table(Ops, op(0, 9, "x"))).to_list() == [
        None
    ]
