"""Bring what a client saw of a server to where other runs have passes: steps, window, tokens."""

from collections.abc import Callable, Sequence

import polars as pl

from whichwall.analyze.groups import FROM_COMPLETIONS, Clean
from whichwall.analyze.sampled import CLEAN_STAGE, Window
from whichwall.schemas.completions import Completions
from whichwall.schemas.passes import CLEAN
from whichwall.schemas.serving import Served, Waits

END = "end_ns"


def served_steps(served: Sequence[Served]) -> dict[int, Clean]:
    """Return the decode step of each point that had one request at a time: its TPOT."""
    return {
        one.point: Clean(one.tpot.median_ns, one.tpot.p10_ns, one.tpot.p90_ns, FROM_COMPLETIONS)
        for one in served
        if one.lanes == 1 and one.tpot is not None
    }


def first_median(served: Sequence[Served], wait: Callable[[Served], Waits | None]) -> int | None:
    """Return the median of one kind of wait at the first point."""
    found = wait(served[0]) if served else None
    return None if found is None else found.median_ns


def clean_window(completions: pl.DataFrame) -> Window | None:
    """Return the stretch from the first clean request to the end of the last."""
    clean = completions.filter(pl.col(Completions.stage) == CLEAN)
    if clean.is_empty():
        return None
    start = pl.col(Completions.start_ns)
    ends = clean.select(start.min(), (start + pl.col(Completions.total_ns)).max().alias(END))
    return Window(CLEAN_STAGE, *ends.row(0))


def generated_tokens(completions: pl.DataFrame, window: Window | None) -> int | None:
    """Return the tokens of requests sent in a window, warm-up among them; null where not counted.

    A request that failed may have made some too: then they are not known either.
    """
    if window is None:
        return None
    inside = completions.filter(
        pl.col(Completions.start_ns).is_between(window.start_ns, window.end_ns)
    )[Completions.new_tokens]
    return None if inside.is_empty() or inside.null_count() else int(inside.sum())
