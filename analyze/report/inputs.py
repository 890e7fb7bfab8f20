"""What a report needs to know: the results of an analysis and the tables behind them."""

from dataclasses import dataclass, field
from functools import partial

import polars as pl

from whichwall.schemas.completions import Completions
from whichwall.schemas.manifest import Manifest
from whichwall.schemas.requests import Requests
from whichwall.schemas.run import frame
from whichwall.schemas.summary import Summary
from whichwall.schemas.sweep import Sweep
from whichwall.schemas.tokens import Tokens


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
    requests: pl.DataFrame = field(default_factory=partial(frame, Requests, []))
    completions: pl.DataFrame = field(default_factory=partial(frame, Completions, []))
    tokens: pl.DataFrame = field(default_factory=partial(frame, Tokens, []))

    @property
    def sweep(self) -> pl.DataFrame:
        """Return the points of the run side by side, as `Sweep`."""
        return frame(Sweep, [dict(row) for row in self.summary.sweep])
