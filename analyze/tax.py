"""What the profiler costs: the same step before, under and after it."""

import polars as pl

from whichwall.analyze.timings import first_place
from whichwall.schemas.passes import AFTER, CLEAN, DECODE, PREFILL, PROFILED
from whichwall.schemas.summary import Tax
from whichwall.schemas.timings import Timings


def tax(timings: pl.DataFrame) -> Tax | None:
    """Return the tax on the first point's decode step, else on its prefill; null if untimed."""
    for phase in (DECODE, PREFILL):
        rows = timings.filter(pl.col(Timings.phase) == phase)
        if not rows.height:
            continue
        first = first_place(rows)
        median = dict(first.select(Timings.stage, Timings.wall_ns_median).iter_rows())
        clean = median.get(CLEAN)
        if clean and (PROFILED in median or AFTER in median):
            return Tax(
                phase=phase,
                clean_ns_median=clean,
                profiled_ns_median=median.get(PROFILED),
                after_ns_median=median.get(AFTER),
                profiled_ratio=_ratio(median.get(PROFILED), clean),
                after_ratio=_ratio(median.get(AFTER), clean),
            )
    return None


def _ratio(value: int | None, clean: int) -> float | None:
    return None if value is None else value / clean
