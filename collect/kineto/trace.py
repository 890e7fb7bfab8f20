"""Read one trace file into the trace tables of a run, streamed and exact."""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from whichwall.collect.kineto.events import EVENTS, EventReader
from whichwall.collect.kineto.metadata import Metadata, find_base, is_whole, read_metadata
from whichwall.collect.kineto.repair import Repairs
from whichwall.collect.kineto.rows import RowBuilder
from whichwall.collect.kineto.source import Source
from whichwall.schemas.diagnostics import Code, Diagnostic, Severity
from whichwall.schemas.errors import InputError
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import RankFacts
from whichwall.schemas.ops import Ops
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.table import Table

TRACE_TABLES: tuple[type[Table], ...] = (Kernels, Launches, Ops, Ranges, Overheads)
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
    reader = EventReader(Source(path))
    runs = reader.runs()
    first = next(runs, [])
    builder = RowBuilder(
        rank,
        point,
        read_metadata(reader.head).base_ns,
        None if reader.legacy else lambda: find_base(Source(path).blocks()),
    )
    tables = {t: writer.table(t, rank if numbered else None) for t in TRACE_TABLES}
    before = {t: w.rows for t, w in tables.items()}
    for run in chain([first], runs):
        for table, rows in builder.build(run).items():
            tables[table].write(rows)
    if builder.events and not builder.has_phases:
        raise InputError(
            f"{path}: holds {builder.events} objects and no event with a phase (ph) among them; "
            "expected a profiler trace as written by export_chrome_trace"
        )
    metadata = read_metadata(reader.head + b"\n" + reader.tail)
    return TraceFacts(
        rank=_rank_facts(reader, builder, metadata),
        metadata=metadata,
        diagnostics=_diagnose(reader, builder, metadata, path.name),
        rows={t.NAME: w.rows - before[t] for t, w in tables.items()},
    )


def _rank_facts(reader: EventReader, builder: RowBuilder, metadata: Metadata) -> RankFacts:
    unknown = builder.base_ns is None and builder.has_relative_times
    # Where every time is absolute the base was not looked for; it may yet stand behind the events.
    unused = None if reader.legacy else metadata.base_ns
    return RankFacts(
        rank=builder.rank,
        source="legacy" if reader.legacy else "kineto",
        time_origin="unknown" if unknown else "epoch",
        base_ns=unused if builder.base_ns is None else builder.base_ns,
        resolution_ns=NANOSECOND if builder.has_fractions else MICROSECOND,
        world_size=metadata.world_size,
        point=builder.point,
        has_shapes=builder.has_shapes if builder.has_ops else None,
        events=builder.events,
        python_frames_dropped=builder.python_frames_dropped,
        devices=sorted(builder.devices),
        recording_start_ns=builder.recording[0] if builder.recording else None,
        recording_end_ns=builder.recording[1] if builder.recording else None,
        ends_early=reader.truncated,
    )


def _diagnose(
    reader: EventReader, builder: RowBuilder, metadata: Metadata, file: str
) -> list[Diagnostic]:
    """Say what was mended, left out or cannot be known of the file."""
    mended = _repairs(reader, builder)
    relative = builder.base_ns is None and builder.has_relative_times
    no_rank = metadata.distributed and metadata.rank is None
    whole_us = _rows_seen(builder) and not builder.has_fractions
    said: list[tuple[bool, Code, Severity, int | None, str]] = [
        (reader.legacy, "legacy_format", "warning", None, _bare_list(builder)),
        (reader.truncated, "truncated", "error", None,
         "the file stops early; what it holds before that is kept"),
        (mended.repaired > 0, "repaired_json", "info", mended.repaired,
         "places of broken JSON were mended or passed over"),
        (mended.nonfinite > 0, "nonfinite_numbers", "info", mended.nonfinite,
         "numbers that are not finite are null"),
        (mended.dropped > 0, "dropped_events", "warning", mended.dropped,
         "unreadable events were left out"),
        (whole_us, "integer_microseconds", "info", None,
         "times are whole microseconds; gaps under 2 us are noise"),
        (relative, "unknown_time_origin", "warning", None,
         "relative times without a base: durations hold, samples cannot be joined"),
        (no_rank, "missing_rank", "warning", None,
         f"distributedInfo names no rank; taken as {builder.rank}"),
    ]  # fmt: skip
    return [
        Diagnostic(code, severity, count, f"{file}: {message}")
        for applies, code, severity, count, message in said
        if applies
    ]


def _bare_list(builder: RowBuilder) -> str:
    if builder.devices:
        return "a bare list of events: what stood around them is lost, such as base and GPUs"
    return "the old exporter's bare list: it links no GPU work"


def _repairs(reader: EventReader, builder: RowBuilder) -> Repairs:
    """Add up what was mended in events, in their arguments and around them."""
    both = (reader.repairs, builder.repairs)
    broken_around = not (reader.legacy or reader.truncated) and not (
        is_whole(reader.head, reader.tail) and EVENTS.search(reader.tail) is None
    )
    return Repairs(
        repaired=sum(r.repaired for r in both) + int(broken_around),
        nonfinite=sum(r.nonfinite for r in both),
        dropped=sum(r.dropped for r in both),
    )


def _rows_seen(builder: RowBuilder) -> bool:
    return builder.has_ops or bool(builder.devices)
