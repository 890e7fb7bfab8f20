"""A run's trace, ready for analyses: valid, linked activities with steps, gaps and roles."""

from dataclasses import dataclass

import polars as pl

from whichwall.analyze.completeness import Completeness, completeness
from whichwall.analyze.gaps import gaps
from whichwall.analyze.links import external_ids_trusted, link
from whichwall.analyze.marks import marks
from whichwall.analyze.roles.attribute import attribute
from whichwall.analyze.roles.inferred import infer_model
from whichwall.analyze.steps import assign, steps, with_gaps
from whichwall.analyze.tables import read_table
from whichwall.analyze.validity import is_void, recording_of
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import RankFacts
from whichwall.schemas.model import Model
from whichwall.schemas.ops import Ops
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.run import Run


@dataclass(frozen=True)
class Trace:
    """Everything a trace says, as frames."""

    activities: pl.DataFrame  # Activities
    roles: pl.DataFrame  # Roles, row by row with activities
    steps: pl.DataFrame  # Steps
    gaps: pl.DataFrame  # Gaps
    marks: pl.DataFrame  # Marks
    ops: pl.DataFrame  # Ops
    launches: pl.DataFrame  # Launches
    model: Model | None  # the manifest's, else what the shapes tell
    complete: Completeness
    void_rows: int
    external_ids_trusted: bool


def read_trace(run: Run) -> Trace:
    """Read and link a run's trace tables.

    Raises:
        InputError: a table is damaged.
    """
    launches, ops = read_table(run, Launches), read_table(run, Ops)
    overheads, everything = read_table(run, Overheads), read_table(run, Kernels)
    valid = _valid(everything, [launches, ops, overheads], run.manifest.ranks)
    marked = marks(read_table(run, Ranges))
    activities = assign(link(valid, launches, ops), marked)
    found = steps(activities, marked)
    idle = gaps(activities, found, launches, overheads)
    roles = attribute(activities, run.manifest.model)
    return Trace(
        activities=activities,
        roles=roles,
        steps=with_gaps(found, idle),
        gaps=idle,
        marks=marked,
        ops=ops,
        launches=launches,
        model=run.manifest.model or infer_model(activities, roles),
        complete=completeness(activities, launches, everything),
        void_rows=everything.height - valid.height,
        external_ids_trusted=external_ids_trusted(valid),
    )


def _valid(kernels: pl.DataFrame, host: list[pl.DataFrame], ranks: list[RankFacts]) -> pl.DataFrame:
    """Leave out void rows, judged against each rank's own recording."""
    parts = []
    for facts in ranks:
        mine = (pl.col(Kernels.rank) == facts.rank) & (pl.col(Kernels.point) == facts.point)
        rows = kernels.filter(mine)
        recording = recording_of(facts, [frame.filter(mine) for frame in host], rows)
        parts.append(rows.filter(~is_void(recording, facts.base_ns or 0)))
    return pl.concat(parts) if parts else kernels.clear()
