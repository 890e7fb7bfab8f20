"""Read a run: the manifest, and a polars LazyFrame per table.

    run = whichwall.open("traces/run42")
    run.manifest.model
    run.kernels.collect()

Rows are read when a frame is collected, and only the columns it uses.
"""

from pathlib import Path

import polars as pl

from whichwall.schemas.ceilings import Ceilings
from whichwall.schemas.completions import Completions
from whichwall.schemas.errors import InputError
from whichwall.schemas.folder import file_facts, rank_files, read_schema
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import FILE, Manifest, read_manifest
from whichwall.schemas.ops import Ops
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.parts import Parts
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import Points
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.requests import Requests
from whichwall.schemas.samples import Samples
from whichwall.schemas.table import Table
from whichwall.schemas.tokens import Tokens

RUN_TABLES: tuple[type[Table], ...] = (
    Points, Passes, Requests, Completions, Tokens, Parts, Kernels, Launches, Ops, Ranges, Overheads,
    Samples, Ceilings,
)  # fmt: skip


def polars_schema(table: type[Table]) -> pl.Schema:
    """Return a table's columns as polars types."""
    return pl.Schema(table.schema())


def scan(run: Path, table: type[Table]) -> pl.LazyFrame:
    """Scan a table of a run, all ranks one after the other; empty if the run has none.

    Columns that an older version lacked are null.

    Raises:
        InputError: a file is damaged or is not this table.
        VersionError: a file is newer than this code.
    """
    paths = rank_files(run, table)
    for path in paths:
        table.check(read_schema(path), str(path))
    schema = polars_schema(table)
    if not paths:
        return pl.LazyFrame(schema=schema)
    return pl.scan_parquet(
        paths, glob=False, schema=schema, missing_columns="insert", extra_columns="ignore"
    )


def frame(table: type[Table], rows: list[dict[str, object]]) -> pl.DataFrame:
    """Build a small frame of a table; absent columns are null."""
    return pl.DataFrame(rows, schema=polars_schema(table))


class Run:
    """A run on disk: its manifest, and each table as a LazyFrame."""

    def __init__(self, path: Path) -> None:
        """Read the manifest; tables are read when asked for."""
        self.path = path
        self.manifest: Manifest = read_manifest(path)
        self._checked: set[Path] = set()

    def scan(self, table: type[Table]) -> pl.LazyFrame:
        """Return one table, all ranks together.

        Raises:
            InputError: a file is not the one that run.json vouches for, or is not this table.
            VersionError: a file is newer than this code.
        """
        rows = scan(self.path, table)
        for path in rank_files(self.path, table):
            self._check(path)
        return rows

    def _check(self, path: Path) -> None:
        """Compare a file's checksum, once: at some damage polars panics rather than fails."""
        said = self.manifest.files.get(path.name)
        if said is None or path in self._checked:
            return
        if file_facts(path, said.rows) != said:
            raise InputError(
                f"{path}: is damaged, or not the file whose size and SHA-256 {FILE} states; "
                "copy or collect the run again"
            )
        self._checked.add(path)

    @property
    def points(self) -> pl.LazyFrame:
        """What was asked for."""
        return self.scan(Points)

    @property
    def passes(self) -> pl.LazyFrame:
        """Timings."""
        return self.scan(Passes)

    @property
    def requests(self) -> pl.LazyFrame:
        """Whole requests, text to text."""
        return self.scan(Requests)

    @property
    def completions(self) -> pl.LazyFrame:
        """Requests to a server."""
        return self.scan(Completions)

    @property
    def tokens(self) -> pl.LazyFrame:
        """When their tokens came."""
        return self.scan(Tokens)

    @property
    def parts(self) -> pl.LazyFrame:
        """Parts of the model timed on their own."""
        return self.scan(Parts)

    @property
    def kernels(self) -> pl.LazyFrame:
        """GPU activities."""
        return self.scan(Kernels)

    @property
    def launches(self) -> pl.LazyFrame:
        """API calls."""
        return self.scan(Launches)

    @property
    def ops(self) -> pl.LazyFrame:
        """CPU operators."""
        return self.scan(Ops)

    @property
    def ranges(self) -> pl.LazyFrame:
        """Annotations and modules."""
        return self.scan(Ranges)

    @property
    def overheads(self) -> pl.LazyFrame:
        """The profiler's own work."""
        return self.scan(Overheads)

    @property
    def samples(self) -> pl.LazyFrame:
        """nvidia-smi samples."""
        return self.scan(Samples)

    @property
    def ceilings(self) -> pl.LazyFrame:
        """Measured limits."""
        return self.scan(Ceilings)


def open_run(path: str | Path) -> Run:
    """Open a run folder.

    Raises:
        InputError: not a run.
        VersionError: written by a newer whichwall.
    """
    return Run(Path(path))
