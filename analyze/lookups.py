"""Read from the token lookup of each pass how many sequences and tokens it works on."""

from typing import NamedTuple

import polars as pl

from whichwall.analyze.roles.operators import INTEGER_TYPES, read_operator
from whichwall.schemas.marks import Marks
from whichwall.schemas.ops import Ops
from whichwall.schemas.passes import DECODE, PREFILL
from whichwall.schemas.run import polars_schema
from whichwall.schemas.steps import BY_REPETITION

# The operator as the model calls it; what it launches has its indices laid flat.
LOOKUP = r"(^|::)embedding$"
# An iteration that trains works on tokens too, and is neither prefill nor decode.
TRAINS = r"(?i)backward"

PLACE = [Ops.point, Ops.rank]
_END_NS, _TRAINED = "end_ns", "trained"


class Work(NamedTuple):
    """What a pass works on; unknown is None."""

    phase: str | None = None
    batch: int | None = None
    tokens: int | None = None


def with_work(marks: pl.DataFrame, ops: pl.DataFrame) -> pl.DataFrame:
    """Return the marks with phase, batch and tokens as the shapes of their lookups tell.

    Indices of [batch, tokens] tell all; those of a flat batch only how many tokens, unless it is
    one. Only passes found by repetition are read: an annotation says what it says.

    Args:
        marks: rows of `Marks`.
        ops: rows of `Ops`. An operator belongs to the pass begun when it ends, since the first
            launch of a pass may lie within it.
    """
    told = pl.col(Ops.name).str.contains(LOOKUP) | pl.col(Ops.name).str.contains(TRAINS)
    telling = ops.filter(told)
    if not marks.height or not telling.height:
        return marks
    mine = telling.with_columns(
        (pl.col(Ops.start_ns) + pl.col(Ops.dur_ns)).alias(_END_NS),
        pl.col(Ops.name).str.contains(TRAINS).alias(_TRAINED),
    ).sort(_END_NS)
    begun = marks.select(*PLACE, Marks.step, Marks.begin_ns).sort(Marks.begin_ns)
    of_pass = mine.join_asof(
        begun, left_on=_END_NS, right_on=Marks.begin_ns, by=PLACE, check_sortedness=False
    ).filter(pl.col(Marks.step).is_not_null())
    work = {
        key: _work(rows)
        for key, rows in of_pass.partition_by([*PLACE, Marks.step], as_dict=True).items()
    }
    rows = [
        row | _told(row, work.get((row[Marks.point], row[Marks.rank], row[Marks.step]), Work()))
        for row in marks.iter_rows(named=True)
    ]
    return pl.DataFrame(rows, schema=polars_schema(Marks))


def _told(row: dict[str, object], work: Work) -> dict[str, object]:
    if row[Marks.found_by] != BY_REPETITION or row[Marks.phase] is not None:
        return {}
    return {Marks.phase: work.phase, Marks.batch: work.batch, Marks.tokens: work.tokens}


def _work(ops: pl.DataFrame) -> Work:
    """Return what the lookup in the largest table tells: positions are looked up in smaller ones.

    Where the lookups disagree on the tokens of a sequence, or the table is read twice, they do
    not all feed one decoder, and nothing is told.
    """
    if ops[_TRAINED].any():
        return Work()
    tables: list[int] = []
    indices: list[tuple[int, ...]] = []
    for name, dims, types in ops.select(Ops.name, Ops.input_dims, Ops.input_types).iter_rows():
        operator = read_operator(name, dims, types)
        if len(operator.shapes) > 1 and operator.types[1] in INTEGER_TYPES:
            tables.append(operator.shapes[0][0])
            indices.append(operator.shapes[1])
    largest = max(tables, default=0)
    if tables.count(largest) != 1 or len({shape[-1:] for shape in indices}) != 1:
        return Work()
    return _of_indices(indices[tables.index(largest)])


def _of_indices(shape: tuple[int, ...]) -> Work:
    """Return the work of a lookup of so many indices: [batch, tokens], or all tokens laid flat."""
    match shape:
        case (batch, each):
            return Work(DECODE if each == 1 else PREFILL, batch, batch * each)
        case (1,):
            return Work(DECODE, 1, 1)
        case (tokens,):
            return Work(None, None, tokens)
        case _:
            return Work()
