"""nvidia-smi's CSV, line by line: rows, null values with their reasons, and sentences.

A line is a row only if it has every column and a readable stamp. Anything else is counted and,
where it is a sentence that nvidia-smi is known to print, kept as an event. A value that is not
one is null, and the text found in its place is counted; nothing becomes 0.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite

from whichwall.collect.smi_fields import (
    COLUMNS,
    INDEX,
    TIMESTAMP,
    UNITS,
    UUID,
    Kind,
    canonical,
    kind_of,
)
from whichwall.schemas.errors import InputError
from whichwall.schemas.samples import Samples
from whichwall.schemas.table import LATEST_NS

Value = int | float | str | None

NS_PER_S = 1_000_000_000
INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1

NULL_TEXT = re.compile(
    r"\[.*\]|N/A|Not Supported|Unknown Error|ERR!|Insufficient Permissions|", re.IGNORECASE
)
_STAMP = re.compile(r"(\d{4})/(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
_MASK = re.compile(r"0x[0-9a-fA-F]{1,16}")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(?: ([A-Za-z%/]+))?")
_FIELD_NAME = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-zA-Z0-9_]+)*(?: \[[^\]]*\])?")

# Sentences that nvidia-smi prints in place of rows; the first that fits names the event.
_SENTENCES = (
    ("field_refused", re.compile(r'Field "([^"]+)" is not a valid field')),
    ("gpu_lost", re.compile(r"GPU is lost")),
    ("gpu_requires_reset", re.compile(r"requires? (?:a )?reset", re.IGNORECASE)),
    ("gpu_unreachable", re.compile(r"Unable to determine the device handle")),
    ("no_devices", re.compile(r"No devices were found")),
    ("driver_failed", re.compile(r"NVIDIA-SMI has failed|Failed to initialize NVML")),
    ("no_permission", re.compile(r"Insufficient Permissions", re.IGNORECASE)),
)


@dataclass(frozen=True)
class Event:
    """A sentence in the middle of the rows: its line from 1, and which sentence it is."""

    line: int
    kind: str
    field: str | None = None

    def __str__(self) -> str:
        """Return the event in words fit for a manifest."""
        about = f" {self.field}" if self.field else ""
        return f"{self.kind}{about} (line {self.line})"


@dataclass
class SmiParser:
    """Read nvidia-smi's lines as they come; `fields` are the columns, in order."""

    fields: Sequence[str]
    values: list[tuple[Value, ...]] = field(default_factory=list)
    received_ns: list[int | None] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    nulls: dict[str, Counter[str]] = field(default_factory=dict)
    rejected: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Resolve each column's name, kind and unit once.

        Raises:
            InputError: no timestamp among the fields, or a field named twice.
        """
        self.names = [canonical(name) for name in self.fields]
        twice = sorted(name for name, n in Counter(self.names).items() if n > 1)
        if TIMESTAMP not in self.names or twice:
            what = f"{', '.join(twice)} given twice" if twice else "no timestamp among them"
            raise InputError(
                f"nvidia-smi fields {', '.join(self.fields)}: {what}; "
                "expected the fields as queried, with timestamp"
            )
        self._kinds = [kind_of(name) for name in self.names]
        self._stamp = self.names.index(TIMESTAMP)

    def feed(self, number: int, line: str, received_ns: int | None = None) -> None:
        """Take one whole line, without its line end."""
        if not line.strip():
            return
        cells = [cell.strip() for cell in line.split(",")]
        stamp = parse_stamp(cells[self._stamp]) if len(cells) == len(self.names) else None
        if stamp is None:
            self.reject(number, line)
            return
        row: list[Value] = []
        for name, kind, cell in zip(self.names, self._kinds, cells, strict=True):
            value = stamp if kind == "stamp" else parse_value(name, kind, cell)
            if value is None:
                self.nulls.setdefault(name, Counter())[cell] += 1
            row.append(value)
        self.values.append(tuple(row))
        self.received_ns.append(received_ns)
        self.lines.append(number)

    def reject(self, number: int, line: str) -> None:
        """Count a line that is no row, and keep what it says if that is known."""
        self.rejected.append(number)
        for kind, pattern in _SENTENCES:
            if match := pattern.search(line):
                about = match.group(1) if pattern.groups else None
                self.events.append(Event(number, kind, about))
                return

    def column(self, name: str) -> list[Value]:
        """Return one canonical field's values in order of arrival; nulls if it was not asked."""
        if name not in self.names:
            return [None] * len(self.values)
        at = self.names.index(name)
        return [row[at] for row in self.values]

    def times_by_gpu(self) -> dict[Value, list[tuple[int, int]]]:
        """Return (line, stamp in ns) per GPU, told apart by UUID, else by index."""
        key = self.column(UUID if UUID in self.names else INDEX)
        times: dict[Value, list[tuple[int, int]]] = {}
        for gpu, line, row in zip(key, self.lines, self.values, strict=True):
            stamp = row[self._stamp]
            assert isinstance(stamp, int)
            times.setdefault(gpu, []).append((line, stamp))
        return times

    def sample_rows(self) -> list[dict[str, object]]:
        """Return the rows as the samples table has them; other fields are left out."""
        wanted = [(i, COLUMNS[name]) for i, name in enumerate(self.names) if name in COLUMNS]
        return [
            {Samples.received_ns: received} | {column: row[i] for i, column in wanted}
            for row, received in zip(self.values, self.received_ns, strict=True)
        ]


def parse_stamp(text: str) -> int | None:
    """Return `YYYY/MM/DD HH:MM:SS.msec`, taken as UTC, in ns since the Unix epoch."""
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    *whole, fraction = match.groups()
    try:
        moment = datetime(*(int(part) for part in whole), tzinfo=UTC)  # type: ignore[arg-type, misc]
    except ValueError:
        return None
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    seconds = since.days * 86_400 + since.seconds
    stamp = seconds * NS_PER_S + int((fraction or "0").ljust(9, "0"))
    return stamp if 0 <= stamp < LATEST_NS else None


# Readings change every 100 ms at most and come back to the same few hundred texts.
@lru_cache(maxsize=1 << 14)
def parse_value(name: str, kind: Kind, cell: str) -> Value:
    """Return a cell's value, with or without its unit; None for what is not a value."""
    if NULL_TEXT.fullmatch(cell):
        return None
    if kind == "text":
        return cell
    if kind == "mask":
        return _bounded(int(cell, 16), INT64_MAX) if _MASK.fullmatch(cell) else None
    match = _NUMBER.fullmatch(cell)
    if match is None:
        return cell if kind == "any" else None
    number, unit = match.groups()
    if unit is not None and unit != UNITS.get(name, unit):
        return None
    if kind == "integer":
        return _bounded(int(number), INT32_MAX) if number.isdecimal() else None
    return float(number) if isfinite(float(number)) else None


def _bounded(value: int, most: int) -> int | None:
    return value if value <= most else None


def is_header(cells: Sequence[str]) -> bool:
    """Tell whether a line's cells are names of fields rather than values."""
    names = [canonical(cell) for cell in cells]
    return TIMESTAMP in names and all(_FIELD_NAME.fullmatch(cell) for cell in cells)
