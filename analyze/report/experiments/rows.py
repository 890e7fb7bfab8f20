"""Tables of points: a row per point and phase, where one that was refused says so in its row."""

from collections.abc import Callable, Iterable
from typing import Any

import polars as pl

from whichwall.analyze.quantities import (
    NOT_KNOWN,
    amount_of_bytes,
    count,
    duration,
    significant,
    times,
)
from whichwall.analyze.report.document import Table, Text
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.points import DONE, OUT_OF_MEMORY, REFUSED
from whichwall.schemas.sweep import Sweep

Row = dict[str, Any]
Cell = tuple[str, Callable[[Row], Text]]
NOTHING = "–"
_SPOKEN = {REFUSED: "refused", OUT_OF_MEMORY: "out of memory"}

GPU_TIME: Cell = ("on the GPU", lambda row: duration(row[Sweep.gpu_ns]))
FLOOR: Cell = ("floor", lambda row: duration(row[Sweep.floor_ns]))
TIMES_FLOOR: Cell = ("times its floor", lambda row: times(row[Sweep.times_floor]))
CACHE: Cell = ("cache", lambda row: amount_of_bytes(row[Sweep.cache_bytes]))
MEMORY: Cell = ("most memory", lambda row: amount_of_bytes(row[Sweep.memory_bytes]))
RATES: tuple[Cell, ...] = (
    ("GB/s", lambda row: significant(row[Sweep.achieved_gbps])),
    ("TFLOP/s", lambda row: significant(row[Sweep.achieved_tflops])),
    ("FLOP/byte", lambda row: significant(row[Sweep.intensity])),
)


TRACED: tuple[Cell, ...] = (
    ("GPU busy, traced", lambda row: duration(row[Sweep.busy_ns])),
    ("kernels", lambda row: count(row[Sweep.kernels])),
    ("launches", lambda row: count(row[Sweep.launches])),
)


def traced(rows: Iterable[Row]) -> tuple[Cell, ...]:
    """Return the columns of GPU work, where any of the points was traced on a GPU."""
    return TRACED if any(row[Sweep.busy_ns] is not None for row in rows) else ()


def number(name: str, column: str) -> Cell:
    """Return a column of counts."""
    return name, lambda row: count(row[column])


def steps(name: str) -> tuple[Cell, ...]:
    """Return the columns of a step and its spread, inside visits and between them."""
    return (
        (name, lambda row: duration(row[Sweep.step_ns])),
        ("p10 to p90", lambda row: _range(row[Sweep.step_ns_p10], row[Sweep.step_ns_p90])),
        ("visits differ", _visits),
    )


def table(rows: Iterable[Row], first: Cell, cells: Iterable[Cell]) -> Table:
    """Return a row per point; one without a time says how it ended in place of its first value."""
    columns = list(cells)
    return Table(
        head=(first[0], *(name for name, _ in columns)),
        rows=tuple((first[1](row), *_cells(row, columns)) for row in rows),
        align="l" + "r" * len(columns),
    )


def _cells(row: Row, columns: list[Cell]) -> tuple[Text, ...]:
    if row[Sweep.step_ns] is None:
        return ended(row), *[NOTHING] * (len(columns) - 1)
    return tuple(say(row) for _, say in columns)


def ended(row: Row) -> str:
    """Say how a point ended, and why."""
    outcome = row[Sweep.outcome]
    if outcome == DONE:
        return "not timed"
    spoken, reason = _SPOKEN.get(outcome, str(outcome)), row[Sweep.reason]
    return f"{spoken}: {reason}" if reason else spoken


def ended_briefly(row: Row) -> str:
    """Say how a point ended, and why, without what the reason says in brackets."""
    return ended(row).partition(" (")[0]


def _range(low: int | None, high: int | None) -> str:
    if low is None or high is None:
        return NOT_KNOWN
    return f"{duration(low)} to {duration(high)}"


def _visits(row: Row) -> str:
    if row[Sweep.visits] < 2:
        return "one visit"
    return _range(row[Sweep.visit_ns_lowest], row[Sweep.visit_ns_highest])


def label(row: Row) -> str:
    """Return what a point is called: its label, else its size."""
    if row[Sweep.label]:
        return str(row[Sweep.label])
    sizes = (
        ("batch", row[Sweep.batch]),
        ("prompt", row[Sweep.prompt_tokens]),
        ("new tokens", row[Sweep.new_tokens]),
    )
    said = ", ".join(f"{name} {count(size)}" for name, size in sizes if size is not None)
    return said or f"point {row[Sweep.point]}"


def of_phase(inputs: ReportInputs, phase: str) -> list[Row]:
    """Return the rows of one phase, and those of points without any, in the order of points."""
    mine = pl.col(Sweep.phase).eq_missing(pl.lit(phase)) | pl.col(Sweep.phase).is_null()
    return list(inputs.sweep.filter(mine).iter_rows(named=True))


def timed(rows: Iterable[Row]) -> list[Row]:
    """Keep the rows that have a time."""
    return [row for row in rows if row[Sweep.step_ns] is not None]
