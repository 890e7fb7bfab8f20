"""Events of one run of the file, sorted by category into rows of the trace tables."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whichwall.collect.kineto.arguments import (
    CallArguments,
    GpuArguments,
    Number,
    OpArguments,
    Triple,
    int64s,
    read_arguments,
    texts,
    trailing_number,
)
from whichwall.collect.kineto.events import Event
from whichwall.collect.kineto.exact import EPOCH_FROM_NS, Int64s, nanoseconds, since_epoch
from whichwall.collect.kineto.repair import Repairs
from whichwall.schemas import kernels, launches, ranges
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.ops import Ops
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.table import EARLIEST_NS, LATEST_NS, LONGEST_NS, Table

MODULE_PREFIX = "nn.Module:"
OP, PYTHON, OVERHEAD, SPAN = "op", "python", "overhead", "span"
INT32 = range(-(1 << 31), 1 << 31)

# Whose kernels Kineto writes as anybody's, but whose calls it calls by their own name.
OTHER_VENDORS = ("xpu", "musa", "mtia", "privateuse1")

# Category as written, today and in 2021, and what its rows are. All else is counted, not kept.
CATEGORIES = {
    "kernel": kernels.KERNEL, "Kernel": kernels.KERNEL,
    "gpu_memcpy": kernels.MEMCPY, "Memcpy": kernels.MEMCPY,
    "gpu_memset": kernels.MEMSET, "Memset": kernels.MEMSET,
    "cuda_runtime": launches.RUNTIME, "Runtime": launches.RUNTIME, "hip_runtime": launches.RUNTIME,
    "cuda_driver": launches.DRIVER,
    **dict.fromkeys((f"{vendor}_runtime" for vendor in OTHER_VENDORS), launches.RUNTIME),
    **dict.fromkeys((f"{vendor}_driver" for vendor in OTHER_VENDORS), launches.DRIVER),
    "cpu_op": OP, "Operator": OP,
    "user_annotation": ranges.ANNOTATION,
    "gpu_user_annotation": ranges.GPU_ANNOTATION,
    "python_function": PYTHON,
    "overhead": OVERHEAD,
    "Trace": SPAN,
}  # fmt: skip

# Which rows each table holds, in this order within a run of events.
KINDS: dict[type[Table], tuple[str, ...]] = {
    Kernels: (kernels.KERNEL, kernels.MEMCPY, kernels.MEMSET),
    Launches: (launches.RUNTIME, launches.DRIVER),
    Ops: (OP,),
    Ranges: (ranges.ANNOTATION, PYTHON, ranges.GPU_ANNOTATION),
    Overheads: (OVERHEAD,),
}

Columns = dict[str, "pa.Array[Any]"]
ByKind = dict[str, list[Event]]


class RowBuilder:
    """Turn events into rows; keeps the few facts that the whole file must answer for."""

    def __init__(
        self,
        rank: int,
        point: int,
        base_ns: int | None,
        find_base: Callable[[], int | None] | None = None,
    ) -> None:
        """Fix what each row carries and what a relative time is relative to.

        Where the base is not known yet, it is found when the first relative time is met.
        """
        self.rank = rank
        self.point = point
        self.base_ns = base_ns
        self._find_base = find_base
        self.repairs = Repairs()
        self.events = 0
        self.has_phases = False
        self.python_frames_dropped = 0
        self.has_fractions = False
        self.has_relative_times = False
        self.has_shapes = False
        self.has_ops = False
        self.devices: set[int] = set()
        self.recording: tuple[int, int] | None = None

    def build(self, events: list[Event]) -> dict[type[Table], pa.Table]:
        """Return the rows that these events add to each table; tables without rows are absent."""
        by_kind = self._sort(events)
        makers: dict[type[Table], Callable[[str, list[Event]], pa.Table]] = {
            Kernels: self._kernels,
            Launches: self._launches,
            Ops: self._ops,
            Ranges: self._ranges,
            Overheads: self._overheads,
        }
        self._note_recording(by_kind[SPAN])
        tables = {}
        for table, kinds in KINDS.items():
            parts = [makers[table](kind, by_kind[kind]) for kind in kinds if by_kind[kind]]
            if any(part.num_rows for part in parts):
                tables[table] = pa.concat_tables(parts)
        return tables

    def _sort(self, events: list[Event]) -> ByKind:
        self.events += len(events)
        self.has_phases = self.has_phases or any(event.ph for event in events)
        by_category: dict[str | None, list[Event]] = defaultdict(list)
        for event in events:
            if event.ph == "X":
                by_category[event.cat].append(event)
        by_kind: ByKind = {kind: [] for kind in CATEGORIES.values()}
        for category, found in by_category.items():
            if category in CATEGORIES:
                by_kind[CATEGORIES[category]] += found
        frames = by_kind[PYTHON]
        by_kind[PYTHON] = [e for e in frames if e.name and e.name.startswith(MODULE_PREFIX)]
        self.python_frames_dropped += len(frames) - len(by_kind[PYTHON])
        return by_kind

    def _note_recording(self, spans: list[Event]) -> None:
        """Widen the recording by the profiler's own spans, which say when it was on."""
        for span in spans:
            (start,), (start_known,) = nanoseconds([span.ts])
            (dur,), (dur_known,) = nanoseconds([span.dur])
            begin = int(self._since_epoch(np.array([start]))[0])
            timed = start_known and dur_known and EARLIEST_NS < begin < LATEST_NS
            end = begin + int(dur)
            if timed and begin <= end < LATEST_NS:
                before = self.recording or (begin, begin)
                self.recording = (min(before[0], begin), max(before[1], end))

    def _timed(self, events: list[Event], *, void_too: bool = False) -> tuple[list[Event], Columns]:
        """Return the events whose times are known, with their start, duration and name.

        A time that no clock of ours can show is not known either, but for GPU activities: the
        analysis counts those rows as void.
        """
        start, start_known = nanoseconds([e.ts for e in events])
        dur, dur_known = nanoseconds([e.dur for e in events])
        known = start_known & dur_known
        since = self._since_epoch(start)
        if not void_too:
            known &= (since > EARLIEST_NS) & (since < LATEST_NS)
            known &= (dur > EARLIEST_NS) & (dur < LONGEST_NS)
        if not known.all():
            self.repairs.dropped += int((~known).sum())
            events = [e for e, k in zip(events, known, strict=True) if k]
            start, since, dur = start[known], since[known], dur[known]
        self.has_fractions = self.has_fractions or b"." in b"".join([e.ts for e in events])
        relative = (start > 0) & (start < EPOCH_FROM_NS)
        self.has_relative_times = self.has_relative_times or bool(relative.any())
        return events, {
            "start_ns": pa.array(since),
            "dur_ns": pa.array(dur),
            "name": pa.array([e.name or "" for e in events], pa.string()),
        }

    def _since_epoch(self, ns: Int64s) -> Int64s:
        if self.base_ns is None and self._find_base and (ns < EPOCH_FROM_NS).any():
            self.base_ns, self._find_base = self._find_base(), None
        return since_epoch(ns, self.base_ns)

    def _table(self, table: type[Table], count: int, columns: Columns) -> pa.Table:
        """Return rows of a table: the columns given, point and rank, and null for the rest."""
        schema = table.schema()
        constants = {"point": self.point, "rank": self.rank}
        arrays = []
        for field in schema:
            if field.name in columns:
                column = columns[field.name]
                arrays.append(column if column.type == field.type else column.cast(field.type))
            elif field.name in constants:
                arrays.append(pa.repeat(pa.scalar(constants[field.name], field.type), count))
            else:
                arrays.append(pa.nulls(count, field.type))
        return pa.Table.from_arrays(arrays, schema=schema)

    def _kernels(self, kind: str, events: list[Event]) -> pa.Table:
        events, columns = self._timed(events, void_too=True)
        arguments = read_arguments(events, GpuArguments, self.repairs)
        columns |= _place(events, arguments) | _links(arguments)
        columns |= {
            "kind": pa.repeat(pa.scalar(kind), len(events)),
            "graph_id": int64s([a.graph_id for a in arguments]),
            "graph_node_id": int64s([a.graph_node_id for a in arguments]),
            "registers_per_thread": int64s([a.registers for a in arguments]),
            "shared_memory_bytes": int64s([a.shared_memory for a in arguments]),
            "size_bytes": int64s([a.size for a in arguments]),
        }
        columns |= _triple("grid", [a.grid for a in arguments])
        columns |= _triple("block", [a.block for a in arguments])
        self.devices.update(d for d in columns["device"].unique().to_pylist() if d is not None)
        return self._table(Kernels, len(events), columns)

    def _launches(self, api: str, events: list[Event]) -> pa.Table:
        events, columns = self._timed(events)
        arguments = read_arguments(events, CallArguments, self.repairs)
        columns |= _thread(events) | _links(arguments)
        columns |= {"api": pa.repeat(pa.scalar(api), len(events))}
        return self._table(Launches, len(events), columns)

    def _ops(self, _: str, events: list[Event]) -> pa.Table:
        events, columns = self._timed(events)
        arguments = read_arguments(events, OpArguments, self.repairs)
        dims = texts([a.dims or a.old_dims for a in arguments])
        self.has_ops = self.has_ops or bool(events)
        self.has_shapes = self.has_shapes or dims.null_count < len(dims)
        columns |= _thread(events) | {
            "external_id": _external_ids(arguments),
            "input_dims": dims,
            "input_types": texts([a.types for a in arguments]),
        }
        return self._table(Ops, len(events), columns)

    def _ranges(self, kind: str, events: list[Event]) -> pa.Table:
        events, columns = self._timed(events)
        if kind == ranges.GPU_ANNOTATION:
            placed = read_arguments(events, GpuArguments, self.repairs)
            columns |= _place(events, placed) | {"external_id": _external_ids(placed)}
        else:
            arguments = read_arguments(events, OpArguments, self.repairs)
            columns |= _thread(events) | {"external_id": _external_ids(arguments)}
        stored = ranges.MODULE if kind == PYTHON else kind
        columns |= {"kind": pa.repeat(pa.scalar(stored), len(events))}
        return self._table(Ranges, len(events), columns)

    def _overheads(self, _: str, events: list[Event]) -> pa.Table:
        events, columns = self._timed(events)
        return self._table(Overheads, len(events), columns)


def _place(events: list[Event], arguments: list[GpuArguments]) -> Columns:
    """Return device and stream: from the arguments, else the process and thread of the row."""
    device, stream = (_int32s([a.device for a in arguments]), int64s([a.stream for a in arguments]))
    if device.null_count:
        device = pc.coalesce(device, _int32s([trailing_number(e.pid) for e in events]))
    if stream.null_count:
        stream = pc.coalesce(stream, int64s([trailing_number(e.tid) for e in events]))
    return {"device": device, "stream": stream}


def _int32s(values: Sequence[Number]) -> "pa.Array[Any]":
    whole = int64s(values)
    try:
        return whole.cast(pa.int32())
    except pa.ArrowInvalid:
        fits = [v if v is not None and v in INT32 else None for v in whole.to_pylist()]
        return pa.array(fits, pa.int32())


def _thread(events: list[Event]) -> Columns:
    return {
        "pid": int64s([e.pid if type(e.pid) is int else trailing_number(e.pid) for e in events]),
        "tid": int64s([e.tid if type(e.tid) is int else trailing_number(e.tid) for e in events]),
    }


def _links(arguments: Sequence[GpuArguments | CallArguments]) -> Columns:
    return {
        "correlation": int64s([a.correlation for a in arguments]),
        "external_id": _external_ids(arguments),
    }


def _external_ids(
    arguments: Sequence[GpuArguments | CallArguments | OpArguments],
) -> "pa.Array[Any]":
    return int64s(
        [a.old_external_id if a.external_id is None else a.external_id for a in arguments]
    )


def _triple(name: str, values: list[Triple]) -> Columns:
    axes = [
        int64s([v[axis] if v is not None and axis < len(v) else None for v in values])
        for axis in range(3)
    ]
    return {f"{name}_{axis}": column for axis, column in zip("xyz", axes, strict=True)}
