"""What a report needs to know: the results of an analysis and the tables behind them."""

from dataclasses import dataclass

import polars as pl

from whichwall.schemas.manifest import Manifest
from whichwall.schemas.summary import Summary


@dataclass(frozen=True)
class ReportInputs:
    """The results of one run's analysis. Frames are as their tables in `schemas` say."""

    summary: Summary
    manifest: Manifest
    activities: pl.DataFrame
    gaps: pl.DataFrame
    steps: pl.DataFrame
    roles: pl.DataFrame  # a row per row of activities, in the same order
    ops: pl.DataFrame
    launches: pl.DataFrame
    samples: pl.DataFrame
    passes: pl.DataFrame
    points: pl.DataFrame
