"""The tables of a run, read whole; a damaged or lost one is named, never taken for empty."""

import polars as pl
import pyarrow as pa

from whichwall.schemas.errors import InputError
from whichwall.schemas.folder import file_name
from whichwall.schemas.run import Run
from whichwall.schemas.table import Table


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
        return run.scan(table).collect()
    except (pl.exceptions.PolarsError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(
            f"{run.path}: its table {table.NAME} is damaged ({error}); copy or collect it again"
        ) from error
