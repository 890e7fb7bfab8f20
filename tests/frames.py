"""Small frames and Kineto texts for tests: only what a test says differs from plain."""

import json
from collections.abc import Sequence

import polars as pl

from whichwall.analyze.links import link
from whichwall.schemas.kernels import KERNEL, Kernels
from whichwall.schemas.launches import RUNTIME, Launches
from whichwall.schemas.manifest import VERSION, Manifest
from whichwall.schemas.ops import Ops
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.passes import CLEAN, DECODE, Passes
from whichwall.schemas.ranges import ANNOTATION, Ranges
from whichwall.schemas.run import frame
from whichwall.schemas.samples import Samples
from whichwall.schemas.table import Table

Row = dict[str, object]

PLACE: Row = {"point": 0, "rank": 0}
LAUNCH = "cudaLaunchKernel"
BASE_NS = 1_751_410_836_000_000_000

# What a run says of itself before anything is in it.
MANIFEST = Manifest(
    schema_version=VERSION,
    id="",
    name="",
    created_ns=1_790_000_000_123_456_789,
    tool_version="0.1.0",
    command="whichwall collect",
    mode="decode",
)


def kernel(start: int, end: int, correlation: int | None = None, **more: object) -> Row:
    """Return a row of `Kernels` on device 0, stream 7."""
    return {
        **PLACE,
        Kernels.kind: KERNEL,
        Kernels.name: f"kernel {start}",
        Kernels.device: 0,
        Kernels.stream: 7,
        Kernels.start_ns: start,
        Kernels.dur_ns: end - start,
        Kernels.correlation: correlation,
        **more,
    }


def call(start: int, end: int, correlation: int | None = None, **more: object) -> Row:
    """Return a row of `Launches` on thread 1: a launch unless named otherwise."""
    return {
        **PLACE,
        Launches.api: RUNTIME,
        Launches.name: LAUNCH,
        Launches.pid: 1,
        Launches.tid: 1,
        Launches.start_ns: start,
        Launches.dur_ns: end - start,
        Launches.correlation: correlation,
        **more,
    }


def op(start: int, end: int, name: str, **more: object) -> Row:
    """Return a row of `Ops` on thread 1."""
    return {
        **PLACE,
        Ops.name: name,
        Ops.pid: 1,
        Ops.tid: 1,
        Ops.start_ns: start,
        Ops.dur_ns: end - start,
        **more,
    }


def annotation(start: int, end: int, name: str, **more: object) -> Row:
    """Return a row of `Ranges`: an annotation on thread 1."""
    return {
        **PLACE,
        Ranges.kind: ANNOTATION,
        Ranges.name: name,
        Ranges.pid: 1,
        Ranges.tid: 1,
        Ranges.start_ns: start,
        Ranges.dur_ns: end - start,
        **more,
    }


def overhead(start: int, end: int, **more: object) -> Row:
    """Return a row of `Overheads`."""
    return {
        **PLACE,
        Overheads.name: "Activity Buffer Request",
        Overheads.start_ns: start,
        Overheads.dur_ns: end - start,
        **more,
    }


def a_pass(start: int, wall: int, phase: str = DECODE, stage: str = CLEAN, **more: object) -> Row:
    """Return a row of `Passes` of one sequence."""
    return {
        **PLACE,
        Passes.stage: stage,
        Passes.phase: phase,
        Passes.index: 0,
        Passes.start_ns: start,
        Passes.wall_ns: wall,
        Passes.batch: 1,
        Passes.tokens: 1,
        Passes.context_tokens: 100,
        **more,
    }


def sample(time_ns: int, power_w: float | None = None, **more: object) -> Row:
    """Return a row of `Samples` of the GPU "GPU-a"."""
    return {
        Samples.time_ns: time_ns,
        Samples.gpu_uuid: "GPU-a",
        Samples.power_instant_w: power_w,
        **more,
    }


def table(of: type[Table], *rows: Row) -> pl.DataFrame:
    """Return a frame of a table."""
    return frame(of, list(rows))


def linked(
    kernels: Sequence[Row], calls: Sequence[Row] = (), ops: Sequence[Row] = ()
) -> pl.DataFrame:
    """Return `Activities` as the analysis links them."""
    return link(table(Kernels, *kernels), table(Launches, *calls), table(Ops, *ops))


def event(cat: str, name: str, ts: object, dur: object, **more: object) -> Row:
    """Return one event of a trace file; keys in the order in which Kineto writes them."""
    args = more.pop("args", None)
    found: Row = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur}
    return {**found, **more} | ({} if args is None else {"args": args})


def gpu_event(name: str, ts: object, dur: object, correlation: int) -> Row:
    """Return a kernel's event on device 0, stream 7."""
    args = {"device": 0, "stream": 7, "correlation": correlation}
    return event("kernel", name, ts, dur, pid=0, tid=7, args=args)


def launch_event(ts: object, dur: object, correlation: int) -> Row:
    """Return a launch's event."""
    return event("cuda_runtime", LAUNCH, ts, dur, args={"correlation": correlation})


def trace_text(events: Sequence[Row], **metadata: object) -> bytes:
    """Return a trace file in Kineto's own layout: an event a block, two spaces a level."""
    head = {"schemaVersion": 1, "baseTimeNanoseconds": BASE_NS, **metadata}
    keys = "".join(f"  {json.dumps(k)}: {json.dumps(v)},\n" for k, v in head.items())
    rows = ",\n".join(native(one) for one in events)
    return f'{{\n{keys}  "traceEvents": [\n{rows}\n  ],\n  "traceName": "t.json"\n}}'.encode()


def native(one: Row) -> str:
    """Return an event as Kineto's C++ writer lays it out."""
    lines = [
        ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in one.items() if k in keys)
        for keys in (("ph", "cat", "name", "pid", "tid"), ("ts", "dur"))
    ]
    if isinstance(args := one.get("args"), dict):
        inner = ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in args.items())
        lines.append(f'"args": {{\n      {inner}\n    }}')
    body = ",\n    ".join(line for line in lines if line)
    return f"  {{\n    {body}\n  }}"
