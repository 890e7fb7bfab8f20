from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.frames import overhead, table
from tests.properties import PROPERTY
from whichwall.analyze.intervals import Int64s, Intervals
from whichwall.schemas.overheads import Overheads

Span = tuple[int, int]

points = st.integers(0, 40)
spans = st.lists(st.tuples(points, st.integers(0, 12)).map(lambda s: (s[0], s[0] + s[1])),
                 max_size=12)  # fmt: skip


def columns(pairs: list[Span]) -> tuple[Int64s, Int64s]:
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return array[:, 0].copy(), array[:, 1].copy()


def cells(pairs: list[Span]) -> set[int]:
    """Return the whole numbers that lie in [start, end) of any pair."""
    return {at for start, end in pairs for at in range(start, end)}


@PROPERTY
@given(spans)
def test_a_union_is_disjoint_sorted_and_covers_the_same_numbers(pairs: list[Span]) -> None:
    union = Intervals.union(*columns(pairs))
    found = list(zip(union.starts.tolist(), union.ends.tolist(), strict=True))
    assert cells(found) == cells(pairs)
    assert found == sorted(found)
    assert all(end < start for (_, end), (start, _) in pairwise(found))


@PROPERTY
@given(spans, st.lists(st.integers(-5, 60), max_size=8))
def test_the_measure_before_a_time_counts_the_numbers_below_it(
    pairs: list[Span], times: list[int]
) -> None:
    union = Intervals.union(*columns(pairs))
    expected = [len({at for at in cells(pairs) if at < time}) for time in times]
    assert union.measure_before(np.array(times, np.int64)).tolist() == expected


@PROPERTY
@given(spans, spans)
def test_a_window_is_covered_as_far_as_the_union_lies_in_it(
    pairs: list[Span], windows: list[Span]
) -> None:
    union = Intervals.union(*columns(pairs))
    expected = [len(cells(pairs) & cells([window])) for window in windows]
    assert union.covered(*columns(windows)).tolist() == expected


def test_times_since_the_epoch_lose_no_nanosecond() -> None:
    now = 1_800_000_000_000_000_001
    union = Intervals.of(table(Overheads, overhead(now, now + 3), overhead(now + 2, now + 7)))
    assert (union.starts.tolist(), union.ends.tolist()) == ([now], [now + 7])


def test_a_row_that_ends_before_it_starts_covers_nothing() -> None:
    union = Intervals.of(
        table(Overheads, overhead(10, 20), overhead(15, 5), overhead(30, -(2**62)))
    )
    assert union.covered(np.array([0]), np.array([100])).tolist() == [10]


def test_a_row_that_never_ended_reaches_the_end_of_64_bits_and_no_further() -> None:
    endless = overhead(10, 0, dur_ns=2**63 - 1)
    union = Intervals.of(table(Overheads, endless, overhead(5, 8)))
    assert (union.starts.tolist(), union.ends.tolist()) == ([5, 10], [8, 2**63 - 1])
