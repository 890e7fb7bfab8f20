"""Align two sequences: which item of one is which of the other, in order, at the greatest worth.

A longest common subsequence in which matches have a worth. Without a cost for leaving items out
the best of a row is a running maximum, so a row of the table is three vector operations; halving
(Hirschberg, CACM 18(6), 1975) keeps memory linear. What both begin and end with is cut off
first. Sequences too long for a table are cut where tokens that both have equally often stand in
the same order, as histogram diffs do.
"""

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Worth = npt.NDArray[np.int32]  # of matching one token (row) with another (column); 0: no match

NOBODY = -1

# Cells of a table kept whole to be traced back: 4 bytes each, twice.
KEPT_CELLS = 1 << 22
# Cells worked out at all: a few tenths of a second.
MOST_CELLS = 1 << 26


def align(left: Numbers, right: Numbers, worth: Worth) -> Numbers:
    """Return for each item of `left` the place in `right` that it is aligned with, or -1.

    Items are tokens, which number the rows and columns of `worth`; no match may be worth more
    than that of a token with itself.
    """
    found = np.full(len(left), NOBODY, np.int64)
    start = _common(left, right)
    end = _common(left[start:][::-1], right[start:][::-1])
    found[:start] = np.arange(start)
    found[len(left) - end :] = np.arange(len(right) - end, len(right))
    middle, other = left[start : len(left) - end], right[start : len(right) - end]
    for here, there in _pieces(middle, other):
        matched = _solve(middle[here], other[there], worth)
        known = matched != NOBODY
        found[start + here.start + np.flatnonzero(known)] = matched[known] + start + there.start
    return found


def _common(left: Numbers, right: Numbers) -> int:
    """Return how many items both begin with."""
    shorter = min(len(left), len(right))
    different = np.flatnonzero(left[:shorter] != right[:shorter])
    return int(different[0]) if len(different) else shorter


def _pieces(left: Numbers, right: Numbers) -> Iterator[tuple[slice, slice]]:
    """Return stretches that lie beside each other: all as one, or between anchors."""
    here = there = 0
    if len(left) * len(right) > MOST_CELLS:
        for i, j in _anchors(left, right):
            yield slice(here, i), slice(there, j)
            yield slice(i, i + 1), slice(j, j + 1)
            here, there = i + 1, j + 1
    yield slice(here, len(left)), slice(there, len(right))


def _anchors(left: Numbers, right: Numbers) -> list[tuple[int, int]]:
    """Return pairs of places of equal tokens, rising in both.

    Tokens that occur equally often are paired first with first, last with last; of these pairs
    the longest rising chain is kept.
    """
    kinds = int(max(left.max(), right.max())) + 1
    equally = np.bincount(left, minlength=kinds) == np.bincount(right, minlength=kinds)
    here, there = (np.flatnonzero(equally[side]) for side in (left, right))
    by_left = np.argsort(left[here], kind="stable")
    by_right = np.argsort(right[there], kind="stable")
    partner = np.empty(len(here), np.int64)
    partner[by_left] = there[by_right]
    chain = _rising(partner)
    return list(zip(here[chain].tolist(), partner[chain].tolist(), strict=True))


def _rising(values: Numbers) -> list[int]:
    """Return the places of the longest strictly rising subsequence."""
    tails: list[int] = []
    places: list[int] = []
    before: list[int] = []
    for place, value in enumerate(values.tolist()):
        at = bisect_left(tails, value)
        before.append(places[at - 1] if at else NOBODY)
        if at == len(tails):
            tails.append(value)
            places.append(place)
        else:
            tails[at], places[at] = value, place
    chain = []
    at = places[-1] if places else NOBODY
    while at != NOBODY:
        chain.append(at)
        at = before[at]
    return chain[::-1]


def _solve(left: Numbers, right: Numbers, worth: Worth) -> Numbers:
    """Align without cutting: by one table if it is small, else by halves of `left`."""
    if not len(left) or not len(right):
        return np.full(len(left), NOBODY, np.int64)
    if len(left) == 1 or len(left) * len(right) <= KEPT_CELLS:
        return _trace_back(left, right, worth)
    half = len(left) // 2
    ahead = _last_row(left[:half], right, worth)
    behind = _last_row(left[half:][::-1], right[::-1], worth)[::-1]
    cut = int((ahead + behind).argmax())
    first = _solve(left[:half], right[:cut], worth)
    second = _solve(left[half:], right[cut:], worth)
    return np.concatenate([first, np.where(second == NOBODY, NOBODY, second + cut)])


def _last_row(left: Numbers, right: Numbers, worth: Worth) -> Worth:
    """Return the greatest worth of aligning all of `left` with each beginning of `right`."""
    gains = {token: worth[token, right] for token in np.unique(left).tolist()}
    best = np.zeros(len(right) + 1, np.int32)
    for token in left.tolist():
        taken = np.maximum(best[1:], best[:-1] + gains[token])
        np.maximum.accumulate(taken, out=best[1:])
    return best


def _trace_back(left: Numbers, right: Numbers, worth: Worth) -> Numbers:
    gain = worth[left[:, np.newaxis], right[np.newaxis, :]]
    best = np.zeros((len(left) + 1, len(right) + 1), np.int32)
    for i, row in enumerate(gain):
        taken = np.maximum(best[i, 1:], best[i, :-1] + row)
        np.maximum.accumulate(taken, out=best[i + 1, 1:])
    found = np.full(len(left), NOBODY, np.int64)
    i, j = len(left), len(right)
    while i and j:
        won = gain[i - 1, j - 1]
        if won and best[i, j] == best[i - 1, j - 1] + won:
            i, j = i - 1, j - 1
            found[i] = j
        elif best[i, j] == best[i - 1, j]:
            i -= 1
        else:
            j -= 1
    return found
