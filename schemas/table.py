"""How a table is declared: a class with a column a line, each with type, unit and a sentence.

    class Overheads(Table):
        NAME = "overheads"
        name = Column(pa.string(), "What the profiler did.")

`Overheads.name` is the column's name as a string, so that a frame expression reads
`pl.col(Overheads.name)` and no column is spelled by hand outside this folder.
"""

from functools import cache
from typing import ClassVar

import pyarrow as pa

from whichwall.schemas.errors import InputError, VersionError

TABLE_KEY = b"whichwall.table"
VERSION_KEY = b"whichwall.version"
LONGEST_VERSION = 9  # digits
DOC_KEY = b"doc"
UNIT_KEY = b"unit"

INT32 = pa.int32()
INT64 = pa.int64()
FLOAT64 = pa.float64()
TEXT = pa.string()
BOOL = pa.bool_()

NANOSECONDS = "ns"
# Times between 1933 and 2116 and spans under 73 years: sums and differences fit in 64 bits.
EARLIEST_NS, LATEST_NS, LONGEST_NS = -(1 << 60), 1 << 62, 1 << 61
# Columns that are points in time; every other one in nanoseconds is a span.
MOMENTS = ("start_ns", "time_ns", "received_ns")


class Column:
    """Describe one column; read from its class, it is the column's name."""

    def __init__(
        self,
        type_: pa.DataType,
        doc: str,
        unit: str | None = None,
        *,
        required: bool = False,
        choices: tuple[str, ...] = (),
    ) -> None:
        """Declare type, meaning and unit; `required` columns are never null.

        A column with `choices` holds nothing else.
        """
        self.type = type_
        self.doc = doc
        self.unit = unit
        self.required = required
        self.choices = choices
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the name of the class attribute."""
        self.name = name

    def __get__(self, instance: object, owner: type) -> str:
        """Return the column's name."""
        return self.name

    def field(self) -> "pa.Field[pa.DataType]":
        """Return the Arrow field with its sentence and unit as metadata."""
        metadata = {DOC_KEY: self.doc.encode()}
        if self.unit:
            metadata[UNIT_KEY] = self.unit.encode()
        return pa.field(self.name, self.type, nullable=not self.required, metadata=metadata)


class Table:
    """Declare a table: subclass it, name it, list its columns in order."""

    NAME: ClassVar[str]
    VERSION: ClassVar[int] = 1
    COLUMNS: ClassVar[dict[str, Column]] = {}

    def __init_subclass__(cls) -> None:
        """Gather the columns, those of a base table first."""
        own = {k: v for k, v in vars(cls).items() if isinstance(v, Column)}
        cls.COLUMNS = {**cls.COLUMNS, **own}

    @classmethod
    @cache
    def schema(cls) -> pa.Schema:
        """Return the Arrow schema, with table name and version in its metadata."""
        metadata: dict[bytes | str, bytes | str] = {
            TABLE_KEY: cls.NAME.encode(),
            VERSION_KEY: str(cls.VERSION).encode(),
        }
        return pa.schema([c.field() for c in cls.COLUMNS.values()], metadata=metadata)

    @classmethod
    def check(cls, found: pa.Schema, where: str) -> None:
        """Refuse a file that is not this table or is newer than this code.

        Raises:
            InputError: the file holds another table, or a column has another type.
            VersionError: the file's version is newer; the message names both.
        """
        metadata = found.metadata or {}
        name = metadata.get(TABLE_KEY, b"").decode("utf-8", "replace")
        if name != cls.NAME:
            raise InputError(
                f"{where}: holds table {name or 'without a name'!r}, expected {cls.NAME!r}; "
                "import or collect the run again"
            )
        stated = metadata.get(VERSION_KEY, b"").decode("utf-8", "replace")
        if not stated.isdecimal() or len(stated) > LONGEST_VERSION:
            raise InputError(f"{where}: schema version {stated!r} is not a number")
        if int(stated) > cls.VERSION:
            raise VersionError(
                f"{where}: {cls.NAME} has schema version {stated}, this whichwall knows up to "
                f"{cls.VERSION}; upgrade whichwall"
            )
        wrong = [
            f"{f.name!r} is {f.type}, expected {cls.COLUMNS[f.name].type}"
            for f in found
            if f.name in cls.COLUMNS and f.type != cls.COLUMNS[f.name].type
        ]
        missing = [c.name for c in cls.COLUMNS.values() if c.required and c.name not in found.names]
        wrong += [f"{name!r} is missing" for name in missing]
        if wrong:
            raise InputError(
                f"{where}: {len(wrong)} wrong columns for {cls.NAME}: {', '.join(wrong)}"
            )
