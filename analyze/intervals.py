"""Arithmetic of time intervals in exact int64 ns: union, and how much of it lies where."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from whichwall.schemas.overheads import Overheads

Int64s = npt.NDArray[np.int64]


class Intervals(NamedTuple):
    """Disjoint intervals in order of time: the union of whatever they were made from."""

    starts: Int64s
    ends: Int64s

    @classmethod
    def union(cls, starts: Int64s, ends: Int64s) -> "Intervals":
        """Unite intervals given in any order; touching ones become one."""
        if not len(starts):
            return cls(starts, ends)
        order = np.argsort(starts, kind="stable")
        starts, reached = starts[order], np.maximum.accumulate(ends[order])
        fresh = np.concatenate([[True], starts[1:] > reached[:-1]])
        last = np.concatenate([np.flatnonzero(fresh)[1:] - 1, [len(starts) - 1]])
        return cls(starts[fresh], reached[last])

    @classmethod
    def of(cls, spans: pl.DataFrame) -> "Intervals":
        """Unite the rows of any table with a start and a duration; a negative one covers nothing.

        A row that never ended may be centuries long: its end is kept within 64 bits.
        """
        starts = spans[Overheads.start_ns].to_numpy()
        longest = np.iinfo(np.int64).max - np.maximum(starts, 0)
        return cls.union(starts, starts + spans[Overheads.dur_ns].to_numpy().clip(0, longest))

    def measure_before(self, times: Int64s) -> Int64s:
        """Return how much of the union lies before each time, ns."""
        if not len(self.starts):
            return np.zeros(len(times), np.int64)
        whole = np.concatenate([[0], np.cumsum(self.ends - self.starts)])
        index = np.searchsorted(self.starts, times, side="right")
        beyond = np.clip(self.ends[np.maximum(index - 1, 0)] - times, 0, None)
        return np.asarray(whole[index] - np.where(index > 0, beyond, 0), np.int64)

    def covered(self, starts: Int64s, ends: Int64s) -> Int64s:
        """Return how much of each window [start, end) the union covers, ns."""
        return self.measure_before(ends) - self.measure_before(starts)


def covered_in_groups(
    groups: pl.DataFrame, starts: Int64s, ends: Int64s, spans: pl.DataFrame, by: list[str]
) -> Int64s:
    """Return how much of each window [start, end) the spans of its own group cover, ns.

    Args:
        groups: a row per window: what its group is.
        starts: of the windows.
        ends: of the windows.
        spans: a table with a start and a duration.
        by: the columns of `spans` that answer to those of `groups`, in the same order.
    """
    covered = np.zeros(groups.height, np.int64)
    if not groups.height or not spans.height:
        return covered
    times = spans.select(*by, Overheads.start_ns, Overheads.dur_ns)
    spans_of = times.partition_by(by, as_dict=True, maintain_order=True)
    windows_of = groups.with_row_index().partition_by(
        groups.columns, as_dict=True, maintain_order=True
    )
    for group, windows in windows_of.items():
        if group in spans_of:
            at = windows["index"].to_numpy()
            covered[at] = Intervals.of(spans_of[group]).covered(starts[at], ends[at])
    return covered
