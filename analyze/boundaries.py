"""Where passes begin: as annotated, split where an annotation holds several, else as repeated."""

from dataclasses import dataclass

import polars as pl

from whichwall.analyze.lookups import with_work
from whichwall.analyze.marks import ENGINES, PLACE, marks
from whichwall.analyze.repetition import Known, begins_of_passes, find_passes
from whichwall.analyze.steps import assign
from whichwall.schemas.activities import Activities
from whichwall.schemas.marks import Marks
from whichwall.schemas.run import polars_schema
from whichwall.schemas.steps import BY_REPETITION

# A recording of a million kernels is copied here several times over: not with all its columns.
LOOKED_AT = [
    Activities.point, Activities.rank, Activities.device, Activities.stream, Activities.name,
    Activities.start_ns, Activities.launch, Activities.launch_start_ns, Activities.op_name,
    Activities.step,
]  # fmt: skip


@dataclass(frozen=True)
class Boundaries:
    """The marks of a trace's passes, and how many annotations had to be split for them."""

    marks: pl.DataFrame  # Marks
    split: int


def boundaries(
    activities: pl.DataFrame, annotations: pl.DataFrame, ops: pl.DataFrame
) -> Boundaries:
    """Return the passes of a trace.

    Args:
        activities: linked rows of `Activities`; their steps do not matter.
        annotations: rows of `Ranges`.
        ops: rows of `Ops`.
    """
    activities = activities.select(LOOKED_AT)
    # A pass of no sequence, as engines mark at the end of a request, works on nothing.
    marked = marks(annotations).filter(pl.col(Marks.batch).ne_missing(pl.lit(0, pl.Int64)))
    unmarked = activities.join(marked, on=PLACE, how="anti", maintain_order="left")
    repeated = find_passes(unmarked, ops)
    whole, split = _split(assign(activities, marked), marked, ops)
    return Boundaries(pl.concat([whole, repeated]).sort(*PLACE, Marks.step), split)


def _split(
    activities: pl.DataFrame, marked: pl.DataFrame, ops: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """Return the marks, each that holds several passes split, and how many those are.

    An engine marks each pass by itself.
    """
    held = activities.partition_by([*PLACE, Activities.step], as_dict=True, maintain_order=True)
    rows: list[dict[str, object]] = []
    split, known = 0, Known()
    for mark in marked.iter_rows(named=True):
        mine = held.get((mark[Marks.point], mark[Marks.rank], mark[Marks.step]))
        checked = mine is not None and mark[Marks.family] not in ENGINES
        begins = begins_of_passes(mine, known) if mine is not None and checked else []
        if not begins:
            rows.append(mark)
            continue
        split += 1
        # What an annotation launches before its first pass would fall to the step before.
        rows += [
            mark | {Marks.name: None, Marks.found_by: BY_REPETITION, Marks.begin_ns: begin_ns}
            for begin_ns in [mark[Marks.begin_ns], *begins[1:]]
        ]
    found = pl.DataFrame(rows, schema=polars_schema(Marks)).with_columns(
        pl.int_range(pl.len(), dtype=pl.Int64).over(PLACE).alias(Marks.step)
    )
    return (with_work(found, ops) if split else found), split
