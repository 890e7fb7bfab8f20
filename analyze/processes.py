"""Tell which clean passes ran in which process: some modes measure in several fresh ones."""

import polars as pl

from whichwall.schemas.experiments import TAX
from whichwall.schemas.passes import DECODE, PREFILL, Passes

# In these a visit is a process of its own; in sweeps one process makes all the visits.
ONE_POINT = (DECODE, PREFILL)
MODES = (*ONE_POINT, TAX)


def of_first_process(mode: str, passes: pl.DataFrame) -> pl.DataFrame:
    """Return the passes of the process that was traced and whose energy was counted.

    A run of one point repeats its clean passes in further processes, and nothing else.
    """
    if mode not in ONE_POINT:
        return passes
    visit = pl.col(Passes.visit).fill_null(0)
    return passes.filter(visit == visit.min())
