"""A run's trace, ready for analyses: valid, linked activities with steps, gaps and roles."""

from dataclasses import dataclass

import polars as pl

from whichwall.analyze.boundaries import boundaries
from whichwall.analyze.completeness import Completeness, completeness
from whichwall.analyze.gaps import gaps
from whichwall.analyze.links import external_ids_trusted, link
from whichwall.analyze.roles.attribute import attribute
from whichwall.analyze.roles.captured import captured, with_captured
from whichwall.analyze.roles.inferred import infer_model
from whichwall.analyze.roles.reference import Reference, refer
from whichwall.analyze.steps import assign, steps, with_gaps
from whichwall.analyze.tables import read_table
from whichwall.analyze.validity import valid_rows
from whichwall.schemas.errors import InputError
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import RankFacts
from whichwall.schemas.model import Model
from whichwall.schemas.ops import Ops
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.run import Run
from whichwall.schemas.table import Table


@dataclass(frozen=True)
class Trace:
    """Everything a trace says, as frames."""

    activities: pl.DataFrame  # Activities
    roles: pl.DataFrame  # Roles, row by row with activities
    steps: pl.DataFrame  # Steps
    gaps: pl.DataFrame  # Gaps
    marks: pl.DataFrame  # Marks
    split_annotations: int  # those that hold several passes
    ops: pl.DataFrame  # Ops
    launches: pl.DataFrame  # Launches
    model: Model | None  # the manifest's, else the reference's, else what the shapes tell
    complete: Completeness
    void_rows: int
    external_ids_trusted: bool


def read_trace(
    run: Run, *, aside: RankFacts | None = None, reference: Reference | None = None
) -> Trace:
    """Read and link a run's trace tables.

    Graph replays get the operators of their capture where this run or the reference recorded
    it; what is left without an operator, the roles of its twins in the reference.

    Args:
        run: an open run.
        aside: read this trace, which the manifest keeps apart, in place of all else.
        reference: a run of the same model, eager or with the capture.

    Raises:
        InputError: a table is damaged, or the reference has nothing in common with the run.
    """
    launches, ops, overheads, everything, ranges = (
        _rows(run, table, aside) for table in (Launches, Ops, Overheads, Kernels, Ranges)
    )
    ranks = [aside] if aside else run.manifest.ranks
    valid = valid_rows(everything, [launches, ops, overheads], ranks)
    unmarked = with_captured(link(valid, launches, ops), captured(launches, ops))
    complete = completeness(unmarked, launches, everything)
    trusted, void_rows = external_ids_trusted(valid), everything.height - valid.height
    del valid, everything  # as large as the activities
    if reference is not None:
        unmarked = with_captured(unmarked, reference.captured)
    begun = boundaries(unmarked, ranges, ops)
    activities = assign(unmarked, begun.marks)
    found = steps(activities, begun.marks)
    idle = gaps(activities, found, launches, overheads)
    model = run.manifest.model or (reference.model if reference else None)
    roles = attribute(activities, model)
    if reference is not None:
        roles = refer(activities, roles, reference)
    return Trace(
        activities=activities,
        roles=roles,
        steps=with_gaps(found, idle),
        gaps=idle,
        marks=begun.marks,
        split_annotations=begun.split,
        ops=ops,
        launches=launches,
        model=model or infer_model(activities, roles),
        complete=complete,
        void_rows=void_rows,
        external_ids_trusted=trusted,
    )


def _rows(run: Run, table: type[Table], aside: RankFacts | None) -> pl.DataFrame:
    """Return the rows of a table that belong to a trace kept apart, or to none such."""
    rows, apart = read_table(run, table), (run.manifest.role_check, run.manifest.reference)
    # Every table of a trace calls this column the same.
    if aside is not None:
        return rows.filter(pl.col(Kernels.point) == aside.point)
    return rows.filter(~pl.col(Kernels.point).is_in([facts.point for facts in apart if facts]))


def read_reference(run: Run) -> Reference:
    """Read a run that names the operators which another run's kernels work for.

    Raises:
        InputError: it holds neither kernels nor a capture, or a table is damaged.
    """
    found = reference_of(run, read_trace(run))
    if not found.activities.height and not found.captured.ops:
        raise InputError(
            f"{run.path}: no GPU activity and no capture of a graph in it; expected an eager run "
            "of the same model, or its capture, as --reference"
        )
    return found


def trace_beside(run: Run) -> Trace | None:
    """Read the trace of the eager run that graph replays recorded beside them; None without one."""
    aside = run.manifest.reference
    return read_trace(run, aside=aside) if aside else None


def reference_of(run: Run, trace: Trace) -> Reference:
    """Return what a trace of a run can tell another about its kernels."""
    found = captured(trace.launches, trace.ops).named()
    return Reference(str(run.path), trace.activities, trace.roles, found, trace.model)
