import gzip
import json
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frames import Row, event, gpu_event, launch_event, native, trace_text
from tests.properties import PROPERTY, SHORT_PROPERTY
from whichwall.collect.kineto import events, source
from whichwall.collect.kineto.events import NOTHING, Event, EventReader
from whichwall.collect.kineto.source import Source
from whichwall.schemas.errors import InputError

Layout = Callable[[Sequence[Row]], bytes]

# Texts that look like borders, ends and starts of events, inside strings.
TRAPS = [
    '},{"ph": "X"', '}, {\n "name":', "]}", '],"traceName"', "\\", '"', "}]\n}", "a,b", "{", "[{",
    "éß\u2028\U0001f600", "C:\\dir\\", "\\u0041",
]  # fmt: skip
BORDER_KEYS = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args", "s", "bp"]

names = st.one_of(st.sampled_from(TRAPS), st.text(max_size=8))
scalars = st.one_of(st.integers(-(2**70), 2**70), names, st.none(), st.booleans())
nested = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(BORDER_KEYS), names), inner, max_size=3),
    ),
    max_leaves=8,
)
arguments = st.dictionaries(st.one_of(st.sampled_from(["External id", "Input Dims"]), names),
                            nested, max_size=3)  # fmt: skip


@st.composite
def rows(draw: st.DrawFn) -> Row:
    row: Row = {
        "ph": draw(st.sampled_from(["X", "i", "M"])),
        "cat": draw(st.sampled_from(["cpu_op", "kernel"])),
        "name": draw(names),
        "pid": draw(st.one_of(st.integers(0, 2**40), names)),
        "tid": draw(st.integers(-(2**31), 2**31)),
        "ts": draw(st.integers(0, 10**15)),
        "dur": draw(st.integers(0, 10**6)),
    }
    if draw(st.booleans()):
        row["args"] = draw(arguments)
    keys = list(row)
    if draw(st.booleans()):
        keys = draw(st.permutations(keys))
    return {key: row[key] for key in keys}


def document(found: Sequence[Row]) -> dict[str, object]:
    gpus = [{"id": 0, "name": "A"}, {"id": 1, "name": "B"}, {"id": 2, "name": "C"}]
    return {"schemaVersion": 1, "traceEvents": list(found), "deviceProperties": gpus}


LAYOUTS: dict[str, Layout] = {
    "native": lambda found: trace_text(found, deviceProperties=[{"id": 0, "name": "A"}]),
    "indented": lambda found: json.dumps(document(found), indent=2).encode(),
    "tabs": lambda found: json.dumps(document(found), indent="\t").encode(),
    "one line": lambda found: json.dumps(document(found)).encode(),
    "compact": lambda found: json.dumps(
        document(found), separators=(",", ":"), ensure_ascii=False
    ).encode(),
    "bare list": lambda found: json.dumps(list(found)).encode(),
    "no end": lambda found: json.dumps(list(found), indent=0).encode()[: -1 if found else None],
}


Read = Callable[..., tuple[list[Event], EventReader]]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Read]:
    """Return a function that reads a text from a file in blocks of a size."""
    path = tmp_path_factory.mktemp("events") / "t.json"

    def read_text(text: bytes, block_bytes: int = 1 << 20) -> tuple[list[Event], EventReader]:
        patch.setattr(source, "BLOCK_BYTES", block_bytes)
        patch.setattr(events, "BLOCK_BYTES", block_bytes)
        path.write_bytes(text)
        reader = EventReader(Source(path))
        return [one for run in reader.runs() for one in run], reader

    with pytest.MonkeyPatch.context() as patch:
        yield read_text


def plain(found: Event) -> Row:
    """Return an event as the row that it was written from."""
    times = {"ts": json.loads(bytes(found.ts)), "dur": json.loads(bytes(found.dur))}
    args = {} if found.args is NOTHING else {"args": json.loads(bytes(found.args))}
    fields = {key: getattr(found, key) for key in ("ph", "cat", "name", "pid", "tid")}
    return {**fields, **times, **args}


def counts(reader: EventReader) -> tuple[int, int, int]:
    repairs = reader.repairs
    return repairs.repaired, repairs.nonfinite, repairs.dropped


@PROPERTY
@given(st.lists(rows(), max_size=8), st.sampled_from(sorted(LAYOUTS)), st.integers(1, 400))
def test_any_layout_in_blocks_of_any_size_reads_back_the_same_events(
    read: Read, written: list[Row], layout: str, block_bytes: int
) -> None:
    found, reader = read(LAYOUTS[layout](written), block_bytes)
    assert [plain(one) for one in found] == written
    assert counts(reader) == (0, 0, 0)
    assert not reader.truncated


@SHORT_PROPERTY
@given(st.lists(rows(), max_size=8), st.integers(32, 400), st.integers(1, 3))
def test_a_gzip_file_of_several_members_reads_back_the_same_events(
    read: Read, written: list[Row], block_bytes: int, members: int
) -> None:
    text = trace_text(written)
    cuts = [len(text) * i // members for i in range(members + 1)]
    packed = b"".join(gzip.compress(text[a:b]) for a, b in pairwise(cuts))
    found, reader = read(packed, block_bytes)
    assert [plain(one) for one in found] == written
    assert not reader.truncated


SMALL = [
    event("cpu_op", "aten::mm", "1.000", "20.000", args={
        "External id": 1, "Input Dims": [[1, 2], [2, 3], []], "Input type": ["float", "Scalar"],
        "parts": [{"name": "a", "ph": 1}, {"name": "b"}], "note": '}, {"ph": "X"}',
    }),
    launch_event("2.000", "3.000", 1),
    gpu_event("gemm", "6.000", "2.500", 1),
    event("cpu_op", "aten::add", "30.000", "4.000", args={"External id": 2}),
    gpu_event("add", "34.000", "1.500", 2),
]  # fmt: skip


def is_prefix(found: Sequence[Event], written: Sequence[Row]) -> bool:
    return [plain(one) for one in found] == list(written[: len(found)])


@pytest.mark.parametrize(
    ("layout", "block_bytes"),
    [*((layout, 1 << 20) for layout in sorted(LAYOUTS)), ("native", 64), ("compact", 100)],
)
def test_a_file_cut_at_any_byte_keeps_a_prefix_or_is_refused(
    read: Read, layout: str, block_bytes: int
) -> None:
    text = LAYOUTS[layout](SMALL)
    whole = 0
    for size in range(len(text)):
        try:
            found, reader = read(text[:size], block_bytes)
        except InputError:
            continue
        assert is_prefix(found, SMALL), size
        assert reader.truncated or layout in ("bare list", "no end"), size
        assert reader.repairs.dropped == 0, size
        whole = max(whole, len(found))
    assert whole == len(SMALL)


def test_a_gzip_file_cut_at_any_byte_keeps_a_prefix_or_is_refused(read: Read) -> None:
    packed = gzip.compress(trace_text(SMALL), compresslevel=1)
    for size in range(len(packed)):
        try:
            found, reader = read(packed[:size])
        except InputError:
            continue
        assert is_prefix(found, SMALL), size
        # The last eight bytes only check what is already there.
        assert reader.truncated, size


def test_a_file_that_ends_behind_its_events_is_truncated_and_loses_none(read: Read) -> None:
    text = trace_text(SMALL)
    found, reader = read(text[: text.rindex(b"]") + 1])
    assert [plain(one) for one in found] == SMALL
    assert reader.truncated


def others(found: Sequence[Event], broken: int) -> list[Row]:
    """Return the events that are not the broken one, as far as they are there whole."""
    kept = [row for i, row in enumerate(SMALL) if i != broken]
    texts = [json.dumps(row, sort_keys=True) for row in kept]
    read_back = []
    for one in found:
        try:
            read_back.append(json.dumps(plain(one), sort_keys=True))
        except (ValueError, msgspec.DecodeError):
            continue
    return [row for row, text in zip(kept, texts, strict=True) if text in read_back]


def span_of(text: bytes, index: int) -> tuple[int, int]:
    """Return where in a native text one event lies, from its first brace to its last."""
    raw = native(SMALL[index]).strip().encode()
    begin = text.index(raw)
    return begin, begin + len(raw)


@pytest.mark.parametrize(("broken", "block_bytes"), [(0, 1 << 20), (1, 64), (3, 200)])
def test_one_wrong_byte_in_an_event_loses_no_other_event(
    read: Read, broken: int, block_bytes: int
) -> None:
    text = trace_text(SMALL)
    begin, end = span_of(text, broken)
    expected = [row for i, row in enumerate(SMALL) if i != broken]
    for at in range(begin, end):
        for wrong in b'{}[]",:\\ \n0x\x00\xff':
            found, _ = read(text[:at] + bytes([wrong]) + text[at + 1 :], block_bytes)
            assert others(found, broken) == expected, (at, chr(wrong))


@PROPERTY
@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from([0, 1, 3]),
       st.sampled_from([48, 200, 1 << 20]))  # fmt: skip
def test_random_bytes_in_an_event_lose_no_other_event(
    read: Read, seed: int, many: int, broken: int, block_bytes: int
) -> None:
    random_bytes = random.Random(seed)
    text = bytearray(trace_text(SMALL))
    begin, end = span_of(bytes(text), broken)
    for _ in range(many):
        text[random_bytes.randrange(begin, end)] = random_bytes.randrange(256)
    found, _ = read(bytes(text), block_bytes)
    assert others(found, broken) == [row for i, row in enumerate(SMALL) if i != broken]


QUOTES = '{"x": "y"}(1): f'
NESTED_ROWS = [{"name": "inner", "pid": 1}, {"name": "other", "tid": 2}]


@pytest.mark.parametrize(
    ("right", "wrong", "kept", "repairs"),
    [
        ('"QUOTES"', f'"{QUOTES}"', True, (1, 0, 0)),
        ('"ph": "X"', '"ph" "X"', False, (0, 0, 1)),
    ],
)
def test_a_broken_event_with_nested_rows_ends_where_the_next_event_begins(
    read: Read, right: str, wrong: str, kept: bool, repairs: tuple[int, int, int]
) -> None:
    row = event("cpu_op", "QUOTES", 1, 2, args={"a": NESTED_ROWS, "b": NESTED_ROWS})
    broken = native(row).replace(right, wrong, 1).encode()
    text = trace_text([SMALL[1], SMALL[2]]).replace(b",\n  {", b",\n" + broken + b",\n  {")
    found, reader = read(text)
    between = [row | {"name": QUOTES}] if kept else []
    assert [plain(one) for one in found] == [SMALL[1], *between, SMALL[2]]
    assert counts(reader) == repairs


def test_a_mendable_last_event_is_mended_not_dropped(read: Read) -> None:
    text = trace_text([*SMALL, event("cpu_op", "last", 40, "WRONG", args={"External id": 9})])
    found, reader = read(text.replace(b'"WRONG"', b"N/A"))
    assert [one.name for one in found][-1] == "last"
    assert counts(reader) == (1, 0, 0)
    assert b"traceName" in reader.tail


def test_a_broken_last_event_is_dropped_and_the_file_is_not_called_truncated(read: Read) -> None:
    text = trace_text([*SMALL, event("WRONG", "a", 40, 1, args={"External id": 9})])
    found, reader = read(text.replace(b'"ph": "X", "cat": "WRONG"', b'"ph" "X", "cat": "cpu_op"'))
    assert [plain(one) for one in found] == SMALL
    assert (reader.truncated, counts(reader)) == (False, (0, 0, 1))


def test_a_missing_comma_between_events_loses_neither(read: Read) -> None:
    found, _ = read(trace_text(SMALL).replace(b"},\n  {", b"}\n  {"))
    assert [plain(one) for one in found] == SMALL


def test_a_file_of_spaces_before_an_event_does_not_hide_it(read: Read) -> None:
    text = trace_text(SMALL).replace(b'"traceEvents": [', b'"traceEvents": [' + b" " * 100_000)
    found, _ = read(text, block_bytes=1 << 12)
    assert [plain(one) for one in found] == SMALL


@pytest.mark.parametrize(
    "text",
    [b"", b"{}", b"[1, 2]", b'[INFO] "started"\n', b'{"traceEvents": null}', b"\xff\xfe[\x00",
     b'{"model_type": "llama"}', b"not json at all"],
)  # fmt: skip
def test_what_is_no_trace_is_refused_by_name(read: Read, text: bytes) -> None:
    with pytest.raises(InputError, match=r"t\.json: no traceEvents found .*; expected a profiler"):
        read(text)


def test_text_around_the_events_is_kept_for_the_metadata(read: Read) -> None:
    _, reader = read(trace_text(SMALL, worker="w"))
    assert b'"worker": "w"' in reader.head
    assert b'"traceName": "t.json"' in reader.tail
