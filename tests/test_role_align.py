import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from whichwall.analyze.roles import align as module
from whichwall.analyze.roles.align import NOBODY, Numbers, Worth, align

KINDS = 4
sequences = st.lists(st.integers(0, KINDS - 1), max_size=12).map(lambda s: np.array(s, np.int64))
worths = st.lists(
    st.integers(0, 3), min_size=KINDS * KINDS, max_size=KINDS * KINDS
).map(lambda w: np.array(w, np.int32).reshape(KINDS, KINDS))  # fmt: skip


def greatest(left: Numbers, right: Numbers, worth: Worth) -> int:
    best = np.zeros((len(left) + 1, len(right) + 1), int)
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            best[i + 1, j + 1] = max(best[i, j + 1], best[i + 1, j], best[i, j] + worth[one, other])
    return int(best[-1, -1])


def reached(left: Numbers, right: Numbers, worth: Worth) -> int:
    place = align(left, right, worth)
    matched = place != NOBODY
    assert (np.diff(place[matched]) > 0).all()
    return int(worth[left[matched], right[place[matched]]].sum())


@given(sequences, sequences, worths, st.sampled_from([1, 8, module.KEPT_CELLS]))
def test_no_alignment_is_worth_more(
    left: Numbers, right: Numbers, worth: Worth, kept_cells: int
) -> None:
    np.fill_diagonal(worth, 4)
    before = module.KEPT_CELLS
    module.KEPT_CELLS = kept_cells  # smaller tables are put together by halves
    try:
        assert reached(left, right, worth) == greatest(left, right, worth)
    finally:
        module.KEPT_CELLS = before


def test_long_sequences_with_a_few_items_more_and_less_align_but_for_these() -> None:
    layer = np.array([0, 1, 2, 0, 3, 1, 1, 2], np.int64)
    whole = np.tile(layer, 2_000)
    gone, new = [77, 4_000, 9_001], [50, 12_000]
    other = np.insert(np.delete(whole, gone), new, 4)
    assert len(whole) * len(other) > module.MOST_CELLS  # too long for a table

    place = align(whole, other, np.eye(5, dtype=np.int32))

    assert (place == NOBODY).sum() == len(gone)
    matched = place != NOBODY
    assert (whole[matched] == other[place[matched]]).all()


def test_nothing_aligns_with_nothing() -> None:
    nothing, worth = np.zeros(0, np.int64), np.eye(KINDS, dtype=np.int32)
    some = np.array([1, 2], np.int64)
    assert align(nothing, some, worth).tolist() == []
    assert align(some, nothing, worth).tolist() == [NOBODY, NOBODY]
    assert align(some, np.array([3], np.int64), worth).tolist() == [NOBODY, NOBODY]
