"""The tables of a run, read whole; a damaged or lost one is named, never taken for empty."""

import polars as pl
import pyarrow as pa

from whichwall.schemas.errors import InputError
from whichwall.schemas.folder import file_name
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.run import Run
from whichwall.schemas.table import EARLIEST_NS, LATEST_NS, NANOSECONDS, Table

# A file that lies of itself makes the reader panic rather than fail.
DAMAGE = (
    pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, UnicodeDecodeError,
)  # fmt: skip


def read_table(run: Run, table: type[Table]) -> pl.DataFrame:
    """Return the rows of a table, all ranks together; none where the run has no such table.

    Raises:
        InputError: a file is damaged, or is missing though the manifest lists it.
        VersionError: a file is newer than this code.
    """
    mine = (file_name(table), f"{table.NAME}.rank")
    for path in (run.path / name for name in run.manifest.files if name.startswith(mine)):
        if not path.is_file():
            raise InputError(f"{path}: is missing, but run.json lists it; copy the run again")
    try:
        rows = run.scan(table).collect()
    except DAMAGE as error:
        raise InputError(
            f"{run.path}: its table {table.NAME} is damaged ({error}); copy or collect it again"
        ) from error
    _refuse_lies(run, table, rows)
    return rows.with_columns(
        pl.when(column.is_finite()).then(column) for column in map(pl.col, _floats(rows))
    )


def _floats(rows: pl.DataFrame) -> list[str]:
    return [name for name, kind in rows.schema.items() if kind.is_float()]


def _refuse_lies(run: Run, table: type[Table], rows: pl.DataFrame) -> None:
    """Refuse what no writer of ours writes: null where a value must be, times out of all range.

    Times of kernels may be anything: a void row is counted, not refused.
    """
    for name, column in table.COLUMNS.items():
        values = rows[name]
        if column.required and (nulls := values.null_count()):
            wrong = f"{nulls} of {rows.height} values of {name} are null"
        elif column.unit == NANOSECONDS and table is not Kernels and not _in_range(values):
            wrong = f"{name} holds a time outside of 1933 to 2116"
        elif column.choices and (other := set(values.unique()) - {*column.choices, None}):
            wrong = f"{name} holds {min(other)!r}, expected {', '.join(column.choices)}"
        else:
            continue
        raise InputError(
            f"{run.path}: its table {table.NAME} is damaged ({wrong}); copy or collect it again"
        )


def _in_range(times: pl.Series) -> bool:
    return bool(times.is_between(EARLIEST_NS, LATEST_NS, closed="none").all())
