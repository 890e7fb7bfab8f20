"""Write a run: into a hidden folder beside its destination, renamed when whole.

A killed command leaves no half-run that looks whole, and what it does leave the next one beside it
removes; a failed one leaves nothing.
"""

import hashlib
import uuid
from pathlib import Path
from types import TracebackType

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from whichwall.schemas.destination import plain, put_in_place, put_new, strangers_of_run
from whichwall.schemas.errors import InputError, UsageError, require_regular
from whichwall.schemas.manifest import FILE, FileFacts, Manifest
from whichwall.schemas.partial import partial_folder, put_back
from whichwall.schemas.table import Table

ROWS_PER_GROUP = 1 << 17
# A row holds a time of its own, so it takes more than a byte however well the rest packs; text of
# templates packs a hundredfold. Small files may do better.
MOST_UNPACKED, FEW_ROWS, FEW_BYTES = 1000, 100_000, 1 << 26


def file_name(table: type[Table], rank: int | None = None) -> str:
    """Return the file of a table: `kernels.parquet`, or `kernels.rank3.parquet`."""
    return f"{table.NAME}.parquet" if rank is None else f"{table.NAME}.rank{rank}.parquet"


def rank_files(run: Path, table: type[Table]) -> list[Path]:
    """Return the files of a table in a run, in order of rank; empty if it has none."""
    plain = run / file_name(table)
    found = [plain] if plain.is_file() else []
    prefix, suffix = f"{table.NAME}.rank", ".parquet"
    numbered = [
        (int(p.name[len(prefix) : -len(suffix)]), p)
        for p in run.iterdir()
        if p.name.startswith(prefix)
        and p.name.endswith(suffix)
        and p.name[len(prefix) : -len(suffix)].isdecimal()
    ]
    return found + [p for _, p in sorted(numbered)]


class TableWriter:
    """Write one table's file in row groups of bounded size."""

    def __init__(self, table: type[Table], path: Path) -> None:
        """Open the file; nothing else may be written to it."""
        self.rows = 0
        self.path = path
        self.schema = table.schema()
        texts = [f.name for f in self.schema if pa.types.is_string(f.type)]
        self._writer = pq.ParquetWriter(
            path,
            self.schema,
            compression="zstd",
            use_dictionary=texts,  # type: ignore[arg-type]  # the stubs forget column names
            write_statistics=True,
        )
        self._held: list[pa.Table] = []
        self._held_rows = 0

    def write(self, rows: pa.Table) -> None:
        """Add rows; their columns must be the table's, in any order."""
        rows = rows.select(self.schema.names).cast(self.schema)
        self._held.append(rows)
        self._held_rows += rows.num_rows
        self.rows += rows.num_rows
        if self._held_rows >= ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.concat_tables(self._held), row_group_size=ROWS_PER_GROUP)
            self._held, self._held_rows = [], 0

    def close(self) -> None:
        """Write what is held and finish the file."""
        self._flush()
        self._writer.close()


class RunWriter:
    """Write a run folder; use as a context manager, and end with `finish`.

    Leaving the block without `finish`, by error or by Ctrl-C, removes what was written.
    """

    def __init__(self, out: Path, *, overwrite: bool = False) -> None:
        """Reserve the destination; an earlier run that a killed overwrite set aside is put back.

        Raises:
            UsageError: it exists and `overwrite` is false, or it is not a run to overwrite, or
                holds a file besides.
        """
        self.out = out = plain(out)
        self._overwrite = overwrite
        put_back(out)
        self._refuse_existing()
        self.id = uuid.uuid4().hex
        self.folder: Path  # hidden, and there while the block lasts
        self._making = partial_folder(out)
        self._writers: dict[str, TableWriter] = {}
        self._adopted: dict[str, FileFacts] = {}

    def _refuse_existing(self) -> None:
        if not (self.out.exists() or self.out.is_symlink()):
            return
        if not self._overwrite:
            raise UsageError(f"{self.out}: already exists; give another --out, or --overwrite")
        empty = self.out.is_dir() and not any(self.out.iterdir())
        if not (empty or (self.out / FILE).is_file()):
            raise UsageError(
                f"{self.out}: is not a run (no {FILE} in it), so --overwrite leaves it alone; "
                "give another --out"
            )
        if strangers := strangers_of_run(self.out):
            raise UsageError(
                f"{self.out}: holds {strangers[0]}, which is no part of a run, so --overwrite "
                "leaves it alone; move that away, or give another --out"
            )

    def __enter__(self) -> "RunWriter":
        """Create the hidden folder; remove those that killed commands left."""
        try:
            self.folder = self._making.__enter__()
        except OSError as error:
            raise UsageError(
                f"{self.out}: cannot create it ({error.strerror}); give a writable --out"
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove whatever was not finished; a full disk, which names no file, gets the run's."""
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(self.out)
        self._making.__exit__(None, None, None)

    def table(self, table: type[Table], rank: int | None = None) -> TableWriter:
        """Return the writer of a table's file, opened on first use."""
        name = file_name(table, rank)
        if name not in self._writers:
            self._writers[name] = TableWriter(table, self.folder / name)
        return self._writers[name]

    def write(
        self, table: type[Table], rows: list[dict[str, object]], rank: int | None = None
    ) -> None:
        """Write a small table whole, from rows as dictionaries."""
        self.table(table, rank).write(pa.Table.from_pylist(rows, schema=table.schema()))

    def start_again(self) -> None:
        """Remove the tables that were written so far."""
        for writer in self._writers.values():
            writer.close()
            writer.path.unlink()
        self._writers.clear()

    def adopt(self, part: Path, manifest: Manifest) -> None:
        """Take over the tables of a finished run: another rank's, so that no names meet.

        Raises:
            InputError: it lists a file that is not in its folder.
        """
        for name in manifest.files:
            if Path(name).name != name:
                raise InputError(f"{part}: lists {name!r}, which is no file of its own folder")
            (part / name).rename(self.folder / name)
        self._adopted.update(manifest.files)

    def finish(self, manifest: Manifest) -> Path:
        """Close the files, write run.json with their checksums, and rename into place."""
        files = dict(self._adopted)
        for name, writer in self._writers.items():
            writer.close()
            files[name] = file_facts(writer.path, writer.rows)
        files = dict(sorted(files.items()))
        whole = msgspec.structs.replace(manifest, id=self.id, name=self.out.name, files=files)
        (self.folder / FILE).write_bytes(whole.encode())
        self._replace()
        return self.out

    def _replace(self) -> None:
        if self.out.is_symlink():
            raise UsageError(f"{self.out}: is a link; give another --out")
        self._refuse_existing()
        put = put_in_place if self._overwrite else put_new
        put(self.folder, self.out)


def file_facts(path: Path, rows: int) -> FileFacts:
    """Return rows, size and SHA-256 of a file."""
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            size += len(block)
    return FileFacts(rows=rows, bytes=size, sha256=digest.hexdigest())


def read_schema(path: Path) -> pa.Schema:
    """Return a Parquet file's Arrow schema.

    Raises:
        InputError: not a readable Parquet file, or one that unpacks out of all proportion.
    """
    require_regular(path, "table")
    try:
        with pq.ParquetFile(path) as file:
            _refuse_bomb(path, file.metadata)
            return file.schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path}: not a readable Parquet file ({error}); copy or collect the run again"
        ) from error


def _refuse_bomb(path: Path, said: pq.FileMetaData) -> None:
    """Refuse a file that would unpack to far more than any table of its size holds."""
    packed = path.stat().st_size
    unpacked = sum(said.row_group(i).total_byte_size for i in range(said.num_row_groups))
    if said.num_rows > packed + FEW_ROWS or unpacked > packed * MOST_UNPACKED + FEW_BYTES:
        raise InputError(
            f"{path}: says it holds {said.num_rows} rows and {unpacked} bytes, in a file of "
            f"{packed}; expected a table as collect and import write it"
        )
