import importlib

import pyarrow as pa
import pytest

from tests.conftest import ROOT
from whichwall.schemas.errors import InputError, VersionError
from whichwall.schemas.table import FLOAT64, INT64, TEXT, Column, Table


class Idle(Table):
    """A table of this test alone."""

    NAME = "idle"
    VERSION = 3

    start_ns = Column(INT64, "When it began.", "ns", required=True)
    note = Column(TEXT, "Why.")


class Powered(Idle):
    """Idle stretches with power."""

    NAME = "powered"

    power_w = Column(FLOAT64, "Power drawn.", "W")


def every_table() -> list[type[Table]]:
    """Return all tables that schemas/ declares."""
    for path in (ROOT / "schemas").glob("*.py"):
        importlib.import_module(f"whichwall.schemas.{path.stem}")
    found = [t for t in Table.__subclasses__() if t.__module__.startswith("whichwall.")]
    return sorted(found, key=lambda table: table.__name__)


TABLES = every_table()

# Tables that are drawn hold what is shown: there, units are converted.
KEPT = [table for table in TABLES if table.__module__ != "whichwall.schemas.chart"]

# A number in one of these units says so in its column's name.
WORDS = {
    "ns": "ns", "us": "us", "bytes": "bytes", "MHz": "mhz", "W": "w", "J": "j", "MiB": "mib",
    "%": "percent", "°C": "c", "GB/s": "gbps", "TFLOP/s": "tflops",
}  # fmt: skip


def test_a_column_read_from_its_class_is_its_name() -> None:
    assert Idle.start_ns == "start_ns"


def test_a_table_of_a_table_has_the_columns_of_both_in_order() -> None:
    assert Powered.schema().names == ["start_ns", "note", "power_w"]
    assert Idle.schema().names == ["start_ns", "note"]


def test_the_schema_carries_name_version_unit_and_sentence() -> None:
    found = Idle.schema()

    assert found.metadata == {b"whichwall.table": b"idle", b"whichwall.version": b"3"}
    assert [(f.name, f.type, f.nullable, f.metadata) for f in found] == [
        ("start_ns", pa.int64(), False, {b"doc": b"When it began.", b"unit": b"ns"}),
        ("note", pa.string(), True, {b"doc": b"Why."}),
    ]


@pytest.mark.parametrize("table", TABLES)
def test_every_column_has_a_sentence(table: type[Table]) -> None:
    said = {c.name: c.doc for c in table.COLUMNS.values()}

    assert [name for name, doc in said.items() if not doc[:1].strip() or doc[-1:] not in ".…"] == []


@pytest.mark.parametrize("table", KEPT)
def test_a_unit_is_in_the_name_and_in_the_metadata(table: type[Table]) -> None:
    by_metadata = {c.name: WORDS[c.unit] for c in table.COLUMNS.values() if c.unit in WORDS}
    words = {name: set(name.split("_")[1:]) & set(WORDS.values()) for name in table.COLUMNS}

    assert by_metadata == {name: said.pop() for name, said in words.items() if said}


@pytest.mark.parametrize("table", TABLES)
def test_times_are_whole_nanoseconds(table: type[Table]) -> None:
    # A median of two may lie between them; rounding it is up to who shows it.
    times = {n: c.type for n, c in table.COLUMNS.items() if c.unit == "ns" and "median" not in n}

    assert times == dict.fromkeys(times, pa.int64())


def test_no_two_tables_share_a_name() -> None:
    assert len({table.NAME for table in TABLES}) == len(TABLES)


def stated(fields: "list[pa.Field[pa.DataType]]", **metadata: str) -> pa.Schema:
    """Return the schema of a file that states the given metadata."""
    return pa.schema(fields, metadata={f"whichwall.{k}": v for k, v in metadata.items()})


START = pa.field("start_ns", pa.int64())
NOTE = pa.field("note", pa.string())


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_file_of_this_version_or_older_is_taken(version: str) -> None:
    Idle.check(stated([START, NOTE], table="idle", version=version), "idle.parquet")


def test_a_file_may_lack_optional_columns_and_have_others() -> None:
    other = pa.field("other", pa.float32())

    Idle.check(stated([other, START], table="idle", version="1"), "idle.parquet")


def test_a_newer_version_is_refused_naming_found_and_known() -> None:
    with pytest.raises(VersionError) as caught:
        Idle.check(stated([START, NOTE], table="idle", version="4"), "a/idle.parquet")

    assert str(caught.value) == (
        "a/idle.parquet: idle has schema version 4, this whichwall knows up to 3; upgrade whichwall"
    )


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            stated([START], table="samples", version="1"),
            "x.parquet: holds table 'samples', expected 'idle'; import or collect the run again",
        ),
        (
            stated([START, NOTE]),
            "x.parquet: holds table 'without a name', expected 'idle'; "
            "import or collect the run again",
        ),
        (
            stated([START], table="idle", version="new"),
            "x.parquet: schema version 'new' is not a number",
        ),
        (
            stated([pa.field("note", pa.int32())], table="idle", version="1"),
            "x.parquet: 2 wrong columns for idle: "
            "'note' is int32, expected string, 'start_ns' is missing",
        ),
    ],
)
def test_a_file_that_is_not_the_table_is_refused(found: pa.Schema, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Idle.check(found, "x.parquet")

    assert str(caught.value) == message
