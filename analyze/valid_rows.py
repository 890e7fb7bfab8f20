"""Check the rows of one table: nulls, choices, ranges, and the points and ranks they name.

One pass over the file, of which only counts are kept.
"""

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from whichwall.analyze.valid_manifest import named_traces
from whichwall.schemas.findings import COPY_AGAIN, ERROR, MAKE_AGAIN, REMARK, Finding
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import Manifest
from whichwall.schemas.ops import Ops
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.points import Points
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.samples import Samples
from whichwall.schemas.table import (
    EARLIEST_NS,
    FLOAT64,
    LATEST_NS,
    MOMENTS,
    NANOSECONDS,
    Column,
    Table,
)

TRACE_TABLES = (Kernels, Launches, Ops, Ranges, Overheads)
# What another program said is stored as it said it: an odd value there is no damage.
AS_SAID = (*TRACE_TABLES, Samples)
# No GPU was timed before 2001, and none will be by this program after 2100.
PLAUSIBLE_FROM_NS, PLAUSIBLE_TO_NS = 10**18, 4_102_444_800 * 10**9
COUNTED_UNITS = (NANOSECONDS, "tokens", "sequences", "calls", "bytes")
_ROWS, _NULL, _OTHER, _WORD, _FAR, _ODD, _NEGATIVE, _NOT_FINITE = (
    "rows", "null", "other", "word", "far", "odd", "negative", "not finite",
)  # fmt: skip
Counts = dict[str, object]


class Known(NamedTuple):
    """The points and ranks that rows of a run may name."""

    points: frozenset[int] | None  # null: the run has no table of points
    traces: frozenset[tuple[int, int]]  # point and rank of each trace
    ranks: frozenset[int]
    on_epoch: bool  # trace times are Unix epoch, rather than relative to nothing known


def known_of(manifest: Manifest, points: frozenset[int] | None) -> Known:
    """Return what rows may name, by the manifest and the points of the run."""
    traces = [facts for _, facts in named_traces(manifest)]
    return Known(
        points=points,
        traces=frozenset((facts.point, facts.rank) for facts in traces),
        # A run without any trace is of one process.
        ranks=frozenset(facts.rank for facts in manifest.ranks) or frozenset((0,)),
        on_epoch=all(facts.time_origin == "epoch" for facts in traces),
    )


def check_rows(
    file: str, table: type[Table], rows: pl.LazyFrame, known: Known, rank: int | None = None
) -> list[Finding]:
    """Return what is wrong in the rows of a table's file.

    Args:
        file: its name, for the findings.
        table: what it holds.
        rows: all of it.
        known: the points and ranks that it may name.
        rank: the only rank that it may hold, where its name says one.
    """
    counts = _count(table, rows)
    found = [
        finding
        for column in table.COLUMNS.values()
        for finding in _of_column(file, table, column, counts, known)
    ]
    if table is Points:
        found += _twice(file, rows)
    return found + _places(file, table, rows, known, rank)


def _count(table: type[Table], rows: pl.LazyFrame) -> Counts:
    wanted = [pl.len().alias(_ROWS)]
    for name, column in table.COLUMNS.items():
        value = pl.col(name)
        if column.required:
            wanted.append(value.null_count().alias(_NULL + name))
        if column.choices:
            other = value.is_not_null() & ~value.is_in(list(column.choices))
            wanted.append(other.sum().alias(_OTHER + name))
            wanted.append(value.filter(other).first().alias(_WORD + name))
        if column.unit == NANOSECONDS and table is not Kernels:
            inside = value.is_between(EARLIEST_NS, LATEST_NS, closed="none")
            wanted.append((~inside).sum().alias(_FAR + name))
        if name in MOMENTS and table is not Kernels:
            inside = value.is_between(PLAUSIBLE_FROM_NS, PLAUSIBLE_TO_NS)
            wanted.append((~inside).sum().alias(_ODD + name))
        if column.unit in COUNTED_UNITS and name not in MOMENTS and table is not Kernels:
            wanted.append((value < 0).sum().alias(_NEGATIVE + name))
        if column.type == FLOAT64:
            wanted.append((~value.is_finite()).sum().alias(_NOT_FINITE + name))
    return rows.select(wanted).collect(engine="streaming").row(0, named=True)


def _of_column(
    file: str, table: type[Table], column: Column, counts: Counts, known: Known
) -> Iterator[Finding]:
    name, rows = column.name, counts[_ROWS]
    odd = REMARK if table in AS_SAID else ERROR
    again = "" if odd == REMARK else MAKE_AGAIN
    if n := counts.get(_NULL + name):
        yield Finding(file, f"{n} of {rows} values of {name} are null", "none", COPY_AGAIN)
    if n := counts.get(_OTHER + name):
        word = str(counts[_WORD + name])[:40]
        choices = " or ".join(column.choices)
        yield Finding(file, f"{n} values of {name} such as {word!r}", choices, COPY_AGAIN)
    if n := counts.get(_FAR + name):
        yield Finding(
            file, f"{n} of {rows} values of {name} are out of all range",
            f"{EARLIEST_NS} to {LATEST_NS} ns", COPY_AGAIN,
        )  # fmt: skip
    elif (n := counts.get(_ODD + name)) and (known.on_epoch or table not in TRACE_TABLES):
        yield Finding(
            file, f"{n} of {rows} values of {name} are no time of a recording",
            "Unix epoch, from 2001 to 2100", again, odd,
        )  # fmt: skip
    if n := counts.get(_NEGATIVE + name):
        yield Finding(file, f"{n} of {rows} values of {name} are negative", "0 or more", again, odd)
    if n := counts.get(_NOT_FINITE + name):
        yield Finding(file, f"{n} values of {name} are not finite", "a number", again, odd)


def _twice(file: str, rows: pl.LazyFrame) -> list[Finding]:
    counted = rows.group_by(Points.point).agg(pl.len().alias(_ROWS)).sort(Points.point).collect()
    return [
        Finding(file, f"point {point} stands there {n} times", "a row per point", MAKE_AGAIN)
        for point, n in counted.iter_rows()
        if n > 1
    ]


def _places(
    file: str, table: type[Table], rows: pl.LazyFrame, known: Known, only: int | None
) -> list[Finding]:
    """Return the points and ranks that nothing in the run tells of."""
    # Every table that has these columns calls them the same.
    point, rank = Kernels.point, Kernels.rank
    has = [name for name in (point, rank) if name in table.COLUMNS]
    if not has or table is Points:
        return []
    places = rows.group_by(has).len().sort(has, nulls_last=True).collect(engine="streaming")
    found = []
    for place in places.iter_rows(named=True):
        at, of, n = place.get(point), place.get(rank), f"{place['len']} rows"
        if only is not None and of != only:
            found.append(Finding(file, f"{n} of rank {of}", f"rank {only} alone", COPY_AGAIN))
        if table in TRACE_TABLES and (at, of) not in known.traces:
            listed = ", ".join(f"point {p} of rank {r}" for p, r in sorted(known.traces))
            found.append(
                Finding(file, f"{n} of point {at}, rank {of}",
                        f"traces that run.json names: {listed or 'none'}", MAKE_AGAIN)
            )  # fmt: skip
        elif of is not None and of not in known.ranks and table not in TRACE_TABLES:
            listed = ", ".join(map(str, sorted(known.ranks)))
            found.append(
                Finding(file, f"{n} of rank {of}", f"ranks of run.json: {listed}", MAKE_AGAIN)
            )
        if at is not None and known.points is not None and at not in known.points:
            found.append(
                Finding(file, f"{n} of point {at}", "points of the points table", MAKE_AGAIN)
            )
    return found
