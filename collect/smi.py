"""Read samples that somebody else's nvidia-smi wrote to a file.

Stamps have no time zone; they are taken as UTC, which is right where nvidia-smi ran under TZ=UTC.
"""

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

from whichwall.collect.smi_fields import (
    COLUMNS,
    INDEX,
    LAYOUTS,
    MEMORY_TEMPERATURE,
    SHAPES,
    TIMESTAMP,
    UUID,
    canonical,
)
from whichwall.collect.smi_health import Gap, diagnose, find_gaps, sampler_facts
from whichwall.collect.smi_rows import NULL_TEXT, SmiParser, is_header, parse_stamp
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import InputError, require_regular
from whichwall.schemas.manifest import SamplerFacts

_GZIP_MAGIC = b"\x1f\x8b"
# PowerShell's `>` writes UTF-16 with a byte order mark.
_BYTE_ORDER_MARKS = (
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)
# Rows that a layout has to fit: enough to meet a busy and an idle card.
INFER_ROWS = 1000


@dataclass(frozen=True)
class SmiCapture:
    """The samples of one file: rows for the samples table, and what is to be said of them."""

    rows: list[dict[str, object]]
    facts: SamplerFacts
    diagnostics: list[Diagnostic]
    gaps: list[Gap]
    parser: SmiParser


def read_samples(path: Path, fields: Sequence[str] | None = None) -> SmiCapture:
    """Read a saved `nvidia-smi --query-gpu … --format=csv`, plain or gzipped.

    With a header the columns are known by name; without one by `fields`, as queried and in that
    order, else by a known layout that the content fits. A last line without a line end is dropped
    and counted: a killed nvidia-smi leaves one. Of a gzip file that stops early its start is kept.

    Raises:
        InputError: unreadable, not such a file, or columns that cannot be told.
    """
    text, whole = _read_text(path)
    *lines, tail = text.split("\n")
    lines = [line.rstrip("\r") for line in lines]
    first = next((_cells(line) for line in lines if line.strip()), [])
    named = first if is_header(first) else None
    columns = _columns(path, lines, named, fields)
    parser = SmiParser(columns)
    for number, line in enumerate(lines, 1):
        if named is None or _cells(line) != named:
            parser.feed(number, line)
    if tail.strip():
        parser.reject(len(lines) + 1, tail)
    _check(path, parser)
    return SmiCapture(
        rows=parser.sample_rows(),
        facts=sampler_facts(parser, "csv", None),
        diagnostics=diagnose(parser, None) + ([] if whole else [_truncated(path)]),
        gaps=find_gaps(parser, None),
        parser=parser,
    )


def _read_text(path: Path) -> tuple[str, bool]:
    """Return the text, and whether the file holds all of it."""
    require_regular(path, "CSV of nvidia-smi")
    try:
        raw, whole = path.read_bytes(), True
        if raw.startswith(_GZIP_MAGIC):
            raw, whole = _unzip(raw)
    except (OSError, EOFError, zlib.error) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{path}: cannot be read ({what}); expected nvidia-smi's CSV, plain or gzipped"
        ) from error
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if raw.startswith(mark)), "utf-8")
    return raw.decode(encoding, errors="replace"), whole


def _unzip(raw: bytes) -> tuple[bytes, bool]:
    """Return what a gzip file holds, and whether it is whole.

    Raises:
        EOFError, OSError, zlib.error: nothing of it can be read.
    """
    found = []
    with gzip.open(io.BytesIO(raw)) as file:
        try:
            while block := file.read1():
                found.append(block)
        except (EOFError, OSError, zlib.error):
            if not found:
                raise
            return b"".join(found), False
    return b"".join(found), True


def _truncated(path: Path) -> Diagnostic:
    message = f"{path.name}: the file stops early; what it holds before that is kept"
    return Diagnostic("truncated", "warning", None, message)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


def _columns(
    path: Path, lines: list[str], named: list[str] | None, fields: Sequence[str] | None
) -> Sequence[str]:
    """Return the columns' names: the header's, else those given, else a known layout's."""
    if named is None:
        return fields or _infer(path, lines)
    if fields and [canonical(f) for f in fields] != [canonical(n) for n in named]:
        raise InputError(
            f"{path}: its header names {', '.join(map(canonical, named))}, the fields given are "
            f"{', '.join(fields)}; leave --sample-fields out"
        )
    return [canonical(name) for name in named]


def _infer(path: Path, lines: list[str]) -> tuple[str, ...]:
    """Return the known layout that a file without a header fits.

    Raises:
        InputError: none fits, or several fit and disagree about a column of the samples table.
    """
    cells_of_rows = (cells for line in lines if parse_stamp((cells := _cells(line))[0]) is not None)
    stamped = list(islice(cells_of_rows, INFER_ROWS))
    if not stamped:
        return LAYOUTS[0]
    counts = Counter(map(len, stamped))
    fitting = []
    for layout in LAYOUTS:
        rows = [cells for cells in stamped if len(cells) == len(layout)]
        if 2 * counts[len(layout)] >= len(stamped) and all(_fits(layout, cells) for cells in rows):
            fitting.append((layout, _meaning(layout, rows)))
    if not fitting or any(meaning != fitting[0][1] for _, meaning in fitting):
        width = counts.most_common(1)[0][0]
        raise InputError(
            f"{path}: {width} columns without a header, in no known order; "
            "give the fields as they were queried with --sample-fields timestamp,index,uuid,…"
        )
    return fitting[0][0]


def _fits(layout: Sequence[str], cells: Sequence[str]) -> bool:
    for name, cell in zip(layout, cells, strict=True):
        # Of all fields, only the memory's temperature prints N/A without brackets.
        is_null = bool(cell and NULL_TEXT.fullmatch(cell)) and (
            cell != "N/A" or name == MEMORY_TEMPERATURE
        )
        if name == TIMESTAMP or is_null:
            continue
        if not re.fullmatch(SHAPES[name], cell):
            return False
    return True


def _meaning(layout: Sequence[str], rows: list[list[str]]) -> dict[str, int]:
    """Return where each column of the samples table that has any value would be read from."""
    return {
        name: at
        for at, name in enumerate(layout)
        if name in COLUMNS and any(re.fullmatch(SHAPES.get(name, ".*"), r[at]) for r in rows)
    }


def _check(path: Path, parser: SmiParser) -> None:
    """Refuse a file of something else, and rows of several GPUs that cannot be told apart."""
    if not parser.values and not parser.events:
        raise InputError(
            f"{path}: no row of nvidia-smi's CSV in it ({len(parser.rejected)} other lines); "
            "expected the output of nvidia-smi --query-gpu=timestamp,… --format=csv"
        )
    if UUID not in parser.names and INDEX not in parser.names:
        stamps = parser.column(TIMESTAMP)
        if any(a == b for a, b in pairwise(stamps)):
            raise InputError(
                f"{path}: rows of several GPUs with neither uuid nor index to tell them apart; "
                "query uuid as well"
            )
