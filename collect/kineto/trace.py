"""Read one trace file into the trace tables of a run, streamed and exact."""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from whichwall.collect.kineto.events import EventReader
from whichwall.collect.kineto.metadata import Metadata, find_base, read_metadata
from whichwall.collect.kineto.repair import Repairs
from whichwall.collect.kineto.rows import RowBuilder
from whichwall.collect.kineto.source import Source
from whichwall.schemas.diagnostics import Code, Diagnostic, Severity
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import RankFacts
from whichwall.schemas.ops import Ops
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.ranges import Ranges

TRACE_TABLES = (Kernels, Launches, Ops, Ranges, Overheads)
NANOSECOND, MICROSECOND = 1, 1000


@dataclass(frozen=True)
class TraceFacts:
    """What one trace file turned out to be."""

    rank: RankFacts
    metadata: Metadata
    diagnostics: list[Diagnostic]
    rows: dict[str, int]  # rows added to each table


def read_trace(
    path: Path, writer: RunWriter, *, rank: int = 0, numbered: bool = False, point: int = 0
) -> TraceFacts:
    """Add a trace's rows to a run; `numbered` tables are one file a rank.

    Memory is bounded by a few blocks of the file, whatever its size. Broken events are mended
    or dropped one by one and counted; a file that ends early keeps what it holds.

    Raises:
        InputError: not a readable trace.
    """
    source = Source(path)
    reader = EventReader(source)
    runs = reader.runs()
    first = next(runs, [])
    metadata = read_metadata(reader.head)
    base_ns = metadata.base_ns
    if base_ns is None and not reader.legacy:
        base_ns = find_base(Source(path).blocks())
    builder = RowBuilder(rank, point, base_ns)
    tables = {t: writer.table(t, rank if numbered else None) for t in TRACE_TABLES}
    before = {t: w.rows for t, w in tables.items()}
    for run in chain([first], runs):
        for table, rows in builder.build(run).items():
            tables[table].write(rows)
    metadata = read_metadata(reader.head + b"\n" + reader.tail)
    return TraceFacts(
        rank=_rank_facts(reader, builder, metadata),
        metadata=metadata,
        diagnostics=_diagnose(reader, builder, metadata, path.name),
        rows={t.NAME: w.rows - before[t] for t, w in tables.items()},
    )


def _rank_facts(reader: EventReader, builder: RowBuilder, metadata: Metadata) -> RankFacts:
    unknown = builder.base_ns is None and builder.has_relative_times
    return RankFacts(
        rank=builder.rank,
        source="legacy" if reader.legacy else "kineto",
        time_origin="unknown" if unknown else "epoch",
        base_ns=builder.base_ns,
        resolution_ns=NANOSECOND if builder.has_fractions else MICROSECOND,
        world_size=metadata.world_size,
        point=builder.point,
        has_shapes=builder.has_shapes if builder.has_ops else None,
        events=builder.events,
        python_frames_dropped=builder.python_frames_dropped,
        devices=sorted(builder.devices),
        recording_start_ns=builder.recording[0] if builder.recording else None,
        recording_end_ns=builder.recording[1] if builder.recording else None,
    )


def _diagnose(
    reader: EventReader, builder: RowBuilder, metadata: Metadata, file: str
) -> list[Diagnostic]:
    both = (reader.repairs, builder.repairs)
    totals = Repairs(
        sum(r.repaired for r in both), sum(r.nonfinite for r in both), sum(r.dropped for r in both)
    )
    found: list[Diagnostic] = []

    def say(code: Code, severity: Severity, count: int | None, message: str) -> None:
        found.append(Diagnostic(code, severity, count, f"{file}: {message}"))

    if reader.legacy:
        say("legacy_format", "warning", None, "the old exporter's bare list: it links no GPU work")
    if reader.truncated:
        say("truncated", "error", None, "the file stops early; what it holds before that is kept")
    if totals.repaired:
        say("repaired_json", "info", totals.repaired, "broken JSON was mended, no event was lost")
    if totals.nonfinite:
        say("nonfinite_numbers", "info", totals.nonfinite, "numbers that are not finite are null")
    if totals.dropped:
        say("dropped_events", "warning", totals.dropped, "unreadable events were left out")
    if builder.events and not builder.has_fractions and _rows_seen(builder):
        say("integer_microseconds", "info", None, "times are whole microseconds; gaps under 2 us are noise")
    if builder.base_ns is None and builder.has_relative_times:
        say(
            "unknown_time_origin", "warning", None,
            "relative times without baseTimeNanoseconds: durations hold, samples cannot be joined",
        )  # fmt: skip
    if metadata.distributed and metadata.rank is None:
        say("missing_rank", "warning", None, f"distributedInfo names no rank; taken as {builder.rank}")
    return found


def _rows_seen(builder: RowBuilder) -> bool:
    return builder.has_ops or bool(builder.devices)
