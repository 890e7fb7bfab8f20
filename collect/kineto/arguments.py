"""The arguments of events: only named ones are read, and an odd value is null, not a failure."""

import re
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from whichwall.collect.kineto.events import NOTHING, Event
from whichwall.collect.kineto.exact import INT64_MAX, INT64_MIN, joined
from whichwall.collect.kineto.repair import Repairs, repair

LABEL_BORDER = re.compile(r"[\s\[\]:]+")
WHOLE_NUMBER = re.compile(r"\s*-?[0-9]{1,20}\s*")

Number = int | float | str | None
Triple = list[int | float | str | None] | None
Arguments = TypeVar("Arguments", bound=msgspec.Struct)


class GpuArguments(msgspec.Struct, gc=False):
    """What GPU rows say: kernels, copies, sets and projected annotations."""

    device: Number = None
    stream: Number = None
    correlation: Number = None
    external_id: Number = msgspec.field(default=None, name="External id")
    old_external_id: Number = msgspec.field(default=None, name="external id")
    graph_id: Number = msgspec.field(default=None, name="graph id")
    graph_node_id: Number = msgspec.field(default=None, name="graph node id")
    grid: Triple = None
    block: Triple = None
    registers: Number = msgspec.field(default=None, name="registers per thread")
    shared_memory: Number = msgspec.field(default=None, name="shared memory")
    size: Number = msgspec.field(default=None, name="bytes")


class CallArguments(msgspec.Struct, gc=False):
    """What API calls say."""

    correlation: Number = None
    external_id: Number = msgspec.field(default=None, name="External id")
    old_external_id: Number = msgspec.field(default=None, name="external id")


class OpArguments(msgspec.Struct, gc=False):
    """What operators and annotations say; shapes stay the profiler's own text."""

    external_id: Number = msgspec.field(default=None, name="External id")
    old_external_id: Number = msgspec.field(default=None, name="external id")
    dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    old_dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input dims")
    types: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")


def read_arguments(events: list[Event], kind: type[Arguments], repairs: Repairs) -> list[Arguments]:
    """Decode the arguments of events, one struct each; absent or unreadable ones are defaults."""
    raw = [e.args or b"{}" for e in events]
    try:
        return msgspec.json.decode(b"[" + b",".join(raw) + b"]", type=list[kind])  # type: ignore[valid-type]
    except (msgspec.DecodeError, RecursionError):
        return [_read_one(bytes(text), kind, repairs) for text in raw]


def _read_one(text: bytes, kind: type[Arguments], repairs: Repairs) -> Arguments:
    """Decode one event's arguments field by field, so that one odd value costs only itself."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        values = msgspec.json.decode(repair(text, repairs), type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        repairs.repaired += 1
        return kind()
    kept = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in values:
            continue
        try:
            kept[field.name] = msgspec.json.decode(values[field.encode_name], type=field.type)
        except (msgspec.DecodeError, RecursionError):
            repairs.repaired += 1
    return kind(**kept)


def int64s(values: Sequence[Number]) -> "pa.Array[Any]":
    """Return an int64 column; what is no integer of that size is null."""
    try:
        # Without a type given: with one, pyarrow would cut the decimals off a float.
        found: pa.Array[Any] = pa.array(values)
        if pa.types.is_int64(found.type):
            return found
        if pa.types.is_null(found.type):
            return found.cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass
    return pa.array([as_int64(v) for v in values], pa.int64())


def texts(raw: list[msgspec.Raw]) -> "pa.Array[Any]":
    """Return JSON values as their own text; absent ones are null."""
    found = joined(raw)
    try:
        found.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([bytes(r).decode("utf-8", "replace") or None for r in raw], pa.string())
    absent = pc.equal(found, pa.scalar(""))
    known: pa.Array[Any] = pc.if_else(absent, pa.scalar(None, pa.string()), found)
    return known


def as_int64(value: Number) -> int | None:
    """Return a whole number from an int, an integral float or its text; else None."""
    if isinstance(value, str):
        value = int(value) if WHOLE_NUMBER.fullmatch(value) else None
    if isinstance(value, float):
        value = int(value) if value.is_integer() else None
    if value is None or not INT64_MIN <= value <= INT64_MAX:
        return None
    return value


def trailing_number(value: Number) -> int | None:
    """Return a process, thread, stream or device number, also from a label such as 'stream 7'."""
    if not isinstance(value, str):
        return as_int64(value)
    words = [word for word in LABEL_BORDER.split(value) if word.isdecimal()]
    return as_int64(words[-1]) if words else None
