"""Check that a run is whole: its files, their checksums, and what their rows say of each other.

Files are read here, one after the other; the checks of rows and links are functions of frames.
"""

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pyarrow.parquet as pq

from whichwall.analyze.tables import DAMAGE
from whichwall.analyze.valid_links import LINK_COLUMNS, check_links
from whichwall.analyze.valid_manifest import (
    check_manifest,
    check_points,
    is_plain,
    named_traces,
)
from whichwall.analyze.valid_rows import check_rows, known_of
from whichwall.schemas.destination import (
    LEFT_BY_FILE_MANAGERS,
    REPORT,
    is_unfinished_report,
    strangers_of_report,
)
from whichwall.schemas.errors import InputError, VersionError
from whichwall.schemas.findings import COPY_AGAIN, ERROR, REMARK, Finding, printable
from whichwall.schemas.folder import file_facts, file_name, read_schema
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.manifest import FILE, FileFacts, Manifest, RankFacts, read_manifest
from whichwall.schemas.points import Points
from whichwall.schemas.run import RUN_TABLES, polars_schema
from whichwall.schemas.table import UNIT_KEY, Table

TABLES = {table.NAME: table for table in RUN_TABLES}
TABLE_FILE = re.compile(r"([a-z_]+)(?:\.rank(\d{1,9}))?\.parquet")
# Beyond this a list helps nobody: a folder of a million strangers would print a million lines.
MOST_LINES = 200
_READING = (*DAMAGE, OSError)


class Validation(NamedTuple):
    """What was looked at in one run, and what was found."""

    run: Path
    files: int
    rows: int
    findings: list[Finding]

    @property
    def is_whole(self) -> bool:
        """Tell whether nothing is wrong: remarks are no errors."""
        return all(finding.severity != ERROR for finding in self.findings)

    def lines(self) -> list[str]:
        """Return one line for a whole run, its remarks in it; else a line per finding."""
        if self.is_whole:
            size = f"{self.files} files, {self.rows:,} rows"
            remarks = (finding.line() for finding in self.findings)
            return [printable("; ".join([f"{self.run}: whole: {size}", *remarks]))]
        ordered = sorted(self.findings, key=lambda finding: finding.severity)
        lines = [printable(f"{self.run}/{finding.line()}") for finding in ordered[:MOST_LINES]]
        more = len(ordered) - len(lines)
        return [*lines, f"{printable(str(self.run))}: {more} more findings"] if more else lines


def validate(path: Path) -> Validation:
    """Check the run in a folder.

    Raises:
        InputError: no run: no folder, or no manifest in it.
        VersionError: written by a newer whichwall.
    """
    try:
        manifest = read_manifest(path)
    except InputError as error:
        if isinstance(error, VersionError) or not (path / FILE).is_file():
            raise
        return Validation(path, 0, 0, [_refused(path / FILE, error)])
    findings = [*check_manifest(manifest), *_check_folder(path, manifest)]
    sound: dict[str, pl.LazyFrame] = {}
    for name, facts in manifest.files.items():
        if is_plain(name):
            wrong = list(_check_file(path / name, facts))
            findings += wrong
            if not wrong and (table := _table_of(name)):
                sound[name] = _scan(path / name, table)
    findings += _check_rows(manifest, sound)
    if all(name in sound for name in manifest.files if _table_of(name)) and not any(
        finding.severity == ERROR for finding in findings
    ):
        findings += _check_links(manifest, sound)
    rows = sum(facts.rows for facts in manifest.files.values())
    return Validation(path, len(manifest.files), rows, findings)


def _table_of(name: str) -> type[Table] | None:
    match = TABLE_FILE.fullmatch(name)
    return TABLES.get(match[1]) if match else None


def _rank_of(name: str) -> int | None:
    match = TABLE_FILE.fullmatch(name)
    return int(match[2]) if match and match[2] else None


def _check_folder(path: Path, manifest: Manifest) -> Iterator[Finding]:
    """Return what lies in the folder and is no part of a run, links above all."""
    for entry in sorted(path.iterdir()):
        if entry.name in manifest.files:
            continue  # checked with what run.json says of it
        if entry.is_symlink():
            yield _link(entry.name)
        elif entry.name == REPORT and entry.is_dir():
            yield from _check_report(entry)
        elif is_unfinished_report(entry.name):
            left = "left by a killed analyze; the next one removes it"
            yield Finding(entry.name, left, severity=REMARK)
        elif entry.name not in (FILE, *LEFT_BY_FILE_MANAGERS):
            yield Finding(
                entry.name, f"is no part of the run: {FILE} does not list it",
                "its files and report/ alone", "move it away",
            )  # fmt: skip


def _check_report(report: Path) -> Iterator[Finding]:
    links = [entry.name for entry in sorted(report.iterdir()) if entry.is_symlink()]
    for name in links:
        yield _link(f"{REPORT}/{name}")
    for name in strangers_of_report(report):
        if name not in links:
            yield Finding(
                f"{REPORT}/{name}", "is no part of a report", "what analyze writes", "move it away"
            )


def _link(name: str) -> Finding:
    return Finding(name, "is a link", "a file of the run itself", "put the file itself there")


def _check_file(path: Path, facts: FileFacts) -> Iterator[Finding]:
    """Compare a file with what the manifest says of it; only one that is the same is read."""
    try:
        found = path.lstat()
    except OSError:
        yield Finding(path.name, "is missing", f"{facts.bytes} bytes", COPY_AGAIN)
        return
    if stat.S_ISLNK(found.st_mode):
        yield _link(path.name)
        return
    if not stat.S_ISREG(found.st_mode):
        yield Finding(path.name, "is no file", "a regular file", COPY_AGAIN)
        return
    if found.st_size != facts.bytes:
        size = f"has {found.st_size} bytes"
        yield Finding(path.name, size, f"{facts.bytes} as {FILE} says", COPY_AGAIN)
        return
    try:
        sha256 = file_facts(path, 0).sha256
    except OSError as error:
        yield Finding(path.name, f"cannot be read ({error.strerror})", "a file to read", COPY_AGAIN)
        return
    if sha256 != facts.sha256:
        what = f"has SHA-256 {sha256[:16]}…"
        yield Finding(path.name, what, f"{facts.sha256[:16]}… as {FILE} says", COPY_AGAIN)
        return
    if (table := _table_of(path.name)) is None:
        what = "is no table that this whichwall knows; only its checksum was looked at"
        yield Finding(path.name, what, severity=REMARK)
        return
    yield from _check_schema(path, table, facts)


def _check_schema(path: Path, table: type[Table], facts: FileFacts) -> Iterator[Finding]:
    """Compare columns, types, units and the number of rows.

    Raises:
        VersionError: the file is of a newer version.
    """
    try:
        schema = read_schema(path)
        table.check(schema, str(path))
        rows = _decode(path)
    except VersionError:
        raise
    except InputError as error:
        yield _refused(path, error)
        return
    except _READING as error:
        yield _damaged(path.name, error)
        return
    if rows != facts.rows:
        yield Finding(path.name, f"holds {rows} rows", f"{facts.rows} as {FILE} says", COPY_AGAIN)
    for field in schema:
        column = table.COLUMNS.get(field.name)
        unit = (field.metadata or {}).get(UNIT_KEY, b"").decode("utf-8", "replace") or None
        if column and unit != column.unit:
            what = f"column {field.name} is in {unit or 'no unit'}"
            yield Finding(path.name, what, str(column.unit or "no unit"), COPY_AGAIN)


def _refused(path: Path, error: InputError) -> Finding:
    what, _, advice = str(error).removeprefix(f"{path}: ").partition("; ")
    return Finding(path.name, what, advice=advice or COPY_AGAIN)


def _decode(path: Path) -> int:
    """Decode every value once and count rows, by the library that only fails at a damaged page.

    A checksum does not clear a file whose manifest was written after the damage.
    """
    rows = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            batch.validate(full=True)
            rows += batch.num_rows
    return rows


def _scan(path: Path, table: type[Table]) -> pl.LazyFrame:
    return pl.scan_parquet(
        path, glob=False, schema=polars_schema(table), missing_columns="insert",
        extra_columns="ignore",
    )  # fmt: skip


def _check_rows(manifest: Manifest, sound: dict[str, pl.LazyFrame]) -> Iterator[Finding]:
    try:
        points = _points(sound)
    except _READING as error:
        yield _damaged(file_name(Points), error)
        return
    if points is not None:
        yield from check_points(manifest, points)
    known = known_of(manifest, points)
    for name, rows in sound.items():
        table = _table_of(name)
        assert table is not None
        try:
            yield from check_rows(name, table, rows, known, _rank_of(name))
        except _READING as error:
            yield _damaged(name, error)


def _damaged(name: str, error: BaseException) -> Finding:
    return Finding(name, f"is damaged ({error})", "rows that can be read", COPY_AGAIN)


def _points(sound: dict[str, pl.LazyFrame]) -> frozenset[int] | None:
    """Return the points that the run has rows of; None without such a table."""
    frames = [rows for name, rows in sound.items() if _table_of(name) is Points]
    if not frames:
        return None
    return frozenset(pl.concat(frames).select(Points.point).collect().to_series())


def _check_links(manifest: Manifest, sound: dict[str, pl.LazyFrame]) -> Iterator[Finding]:
    """Check one trace after the other, so that memory is bounded by the largest."""
    for _, facts in named_traces(manifest):
        frames: dict[type[Table], pl.DataFrame] = {}
        for table, columns in LINK_COLUMNS.items():
            try:
                frames[table] = _rows_of(table, columns, facts, sound)
            except _READING as error:
                yield _damaged(file_name(table), error)
                return
        yield from check_links(facts, frames)


def _rows_of(
    table: type[Table], columns: tuple[str, ...], facts: RankFacts, sound: dict[str, pl.LazyFrame]
) -> pl.DataFrame:
    frames = [
        rows for name, rows in sound.items()
        if _table_of(name) is table and _rank_of(name) in (None, facts.rank)
    ]  # fmt: skip
    mine = (pl.col(Kernels.point) == facts.point) & (pl.col(Kernels.rank) == facts.rank)
    if not frames:
        return pl.DataFrame(schema=polars_schema(table)).select(columns)
    return pl.concat([rows.filter(mine).select(columns) for rows in frames]).collect(
        engine="streaming"
    )
