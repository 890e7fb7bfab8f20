"""What a run measured beside its trace: points, timings, samples and limits, read once."""

from dataclasses import dataclass

import polars as pl

from whichwall.analyze.tables import read_table
from whichwall.schemas.ceilings import Ceilings
from whichwall.schemas.completions import Completions
from whichwall.schemas.parts import Parts
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import Points
from whichwall.schemas.requests import Requests
from whichwall.schemas.run import Run
from whichwall.schemas.samples import Samples
from whichwall.schemas.tokens import Tokens


@dataclass(frozen=True)
class Measurements:
    """Each table whole, empty where the run has none."""

    points: pl.DataFrame  # Points
    passes: pl.DataFrame  # Passes
    samples: pl.DataFrame  # Samples
    ceilings: pl.DataFrame  # Ceilings
    requests: pl.DataFrame  # Requests
    parts: pl.DataFrame  # Parts
    completions: pl.DataFrame  # Completions
    tokens: pl.DataFrame  # Tokens


def read_measurements(run: Run) -> Measurements:
    """Read the tables.

    Raises:
        InputError: a table is damaged.
    """
    return Measurements(
        points=read_table(run, Points),
        passes=read_table(run, Passes),
        samples=read_table(run, Samples),
        ceilings=read_table(run, Ceilings),
        requests=read_table(run, Requests),
        parts=read_table(run, Parts),
        completions=read_table(run, Completions),
        tokens=read_table(run, Tokens),
    )
