"""Which operator was running on a thread at a moment: nesting by time, nothing else."""

import polars as pl

from whichwall.schemas.launches import Launches
from whichwall.schemas.ops import Ops

THREAD = [Ops.point, Ops.rank, Ops.tid]


def innermost(calls: pl.DataFrame, ops: pl.DataFrame) -> pl.Series:
    """Return, per call, the row number of the innermost operator on its thread, or null.

    Args:
        calls: rows of `Launches`.
        ops: rows of `Ops`; operators of one thread nest, none is assumed to be sorted.
    """
    queries = calls.with_row_index().partition_by(THREAD, as_dict=True, maintain_order=True)
    numbered = ops.select(*THREAD, Ops.start_ns, Ops.dur_ns).with_row_index()
    threads = numbered.partition_by(THREAD, as_dict=True, maintain_order=True)
    found: list[int | None] = [None] * calls.height
    for thread, asked in queries.items():
        if thread in threads:
            for row, op in _sweep(asked, threads[thread]):
                found[row] = op
    return pl.Series(found, dtype=pl.Int64)


def _sweep(calls: pl.DataFrame, ops: pl.DataFrame) -> list[tuple[int, int | None]]:
    """Walk one thread's time once, keeping the operators that are open."""
    ordered = ops.sort([Ops.start_ns, Ops.dur_ns], descending=[False, True], maintain_order=True)
    rows = ordered["index"].to_list()
    starts = ordered[Ops.start_ns].to_list()
    ends = (ordered[Ops.start_ns] + ordered[Ops.dur_ns]).to_list()
    asked = calls.sort(Launches.start_ns, maintain_order=True)
    found: list[tuple[int, int | None]] = []
    open_ops: list[int] = []
    following = 0
    for row, time in zip(asked["index"].to_list(), asked[Launches.start_ns].to_list(), strict=True):
        while following < len(starts) and starts[following] <= time:
            while open_ops and ends[open_ops[-1]] < starts[following]:
                open_ops.pop()
            open_ops.append(following)
            following += 1
        while open_ops and ends[open_ops[-1]] < time:
            open_ops.pop()
        found.append((row, rows[open_ops[-1]] if open_ops else None))
    return found
