"""Variants of damaged text: each costs at most the host's row it is in, and is counted."""

import json
import re
from pathlib import Path

import pytest

from tests.frames import BASE_NS, Row, event, trace_text
from tests.wild import broken, healthy, looked_at, operators, packed, said, well

MENDED = {"repaired_json": 1}
TEXT = trace_text(healthy())
ARGS = re.compile(rb'"args": \{\s*"device": 0, "stream": 7, "correlation": 2\s*\}')

# What a string was written as, and what is right for it.
STRINGS = [
    rb'"C:\dev\kernels.cu(12): f"', rb'"C:\new\table\u12"', rb'"\uZZZZ"', rb'"\ud800 alone"',
    rb'"ends in a folder C:\tmp\"', b'"a\x01b"', b'"nul\x00x"', b'"two\nlines"', b'"tab\tname"',
    b'"\xff\xfe"', b'"half of a \xe2\x82"', b'"\xed\xa0\x80"', b'"a "quoted" b"', b'"a", "b"',
    b'"{"device": "cpu", "x": [1, 2]}(12): run"', b'"]}"x"', b'"""',
]  # fmt: skip
TOKENS = [b"N/A", b"NA", b"None", b"undefined", b"True", b"0x7f", b".5", b"5.", b"+5", b"01",
          b"<not known>", b"???"]  # fmt: skip
NONFINITE = [b"NaN", b"nan", b"-nan", b"-nan(ind)", b"inf", b"-Infinity", b"1.#INF", b"+inf",
             b"-1.#IND"]  # fmt: skip


@pytest.mark.parametrize("raw", STRINGS)
@pytest.mark.parametrize("row", [0, 5])
def test_a_broken_name_costs_no_row_whatever_row_it_is_of(
    tmp_path: Path, raw: bytes, row: int
) -> None:
    rows = healthy()
    rows[row]["name"] = "MARK"
    found = said(tmp_path, packed(broken(rows, {b"MARK": raw})))
    assert found == well(repaired_json=found.codes["repaired_json"])


@pytest.mark.parametrize("raw", STRINGS)
def test_a_broken_name_is_mended_in_a_file_without_spaces_too(tmp_path: Path, raw: bytes) -> None:
    rows = healthy()
    rows[5]["name"] = "MARK"
    text = json.dumps({"baseTimeNanoseconds": BASE_NS, "traceEvents": rows}, separators=(",", ":"))
    found = said(tmp_path, text.encode().replace(b'"MARK"', raw))
    assert found == well(repaired_json=found.codes["repaired_json"])


# A string that looks like two values is not told from two.
@pytest.mark.parametrize("raw", [s for s in STRINGS if b'", "' not in s])
def test_a_broken_argument_of_a_launch_costs_no_link(tmp_path: Path, raw: bytes) -> None:
    rows = healthy()
    rows[1]["args"] = {"kernel": "MARK", "correlation": 1}
    found = said(tmp_path, broken(rows, {b"MARK": raw}))
    assert found == well(repaired_json=found.codes["repaired_json"])


@pytest.mark.parametrize("raw", [b'"a", "b"', b'"{"device": "cpu", "x": [1, 2]}(12): run"', b"["])
def test_arguments_beyond_repair_leave_the_row_and_its_link(tmp_path: Path, raw: bytes) -> None:
    rows = healthy()
    rows[5]["args"] = {"device": 0, "stream": 7, "group": "MARK", "correlation": 2}
    assert said(tmp_path, broken(rows, {b"MARK": raw})) == well(repaired_json=1)


@pytest.mark.parametrize("token", [*TOKENS, *NONFINITE])
def test_a_bare_word_is_an_unknown_value_in_any_row(tmp_path: Path, token: bytes) -> None:
    code = "nonfinite_numbers" if token in NONFINITE else "repaired_json"
    for row in (0, 1, 5):
        rows = healthy()
        rows[row]["args"] = {"bytes": "MARK", **rows[row]["args"]}  # type: ignore[dict-item]
        assert said(tmp_path, broken(rows, {b"MARK": token})) == well(**{code: 1})


@pytest.mark.parametrize("token", [b".5", b"5.", b"+5", b"05"])
def test_a_time_spelled_unlike_json_is_still_that_time(tmp_path: Path, token: bytes) -> None:
    rows = healthy(1)
    rows[2]["dur"] = "MARK"
    found = said(tmp_path, broken(rows, {b"MARK": token}))
    assert (found.busy_ns, found.codes) == (500 if token == b".5" else 5000, MENDED)


@pytest.mark.parametrize(
    ("right", "wrong", "counted"),
    [
        (b'"device": 0, ', b'"device": 0,, ', 1),
        (b'"device": 0, ', b'"device": 0 ', 1),
        (b'"device": 0, ', b'"device": , ', 1),
        (b'"device": 0, ', b"device: 0, ", 1),
        (b'"device": 0, ', b',"device": 0, ', 1),
        (b'"dur": "50.000",', b'"dur": "50.000"', 1),
        (b'"correlation": 2\n', b'"correlation": 2,\n', 1),
        (b'"name": "kernel_2"', b"\"name\": 'kernel_2'", 1),
    ],
)  # fmt: skip
def test_a_comma_or_quote_too_few_or_too_many_in_a_gpu_row_is_mended(
    tmp_path: Path, right: bytes, wrong: bytes, counted: int
) -> None:
    assert right in TEXT
    assert said(tmp_path, TEXT.replace(right, wrong, 1)) == well(repaired_json=counted)


@pytest.mark.parametrize(
    ("right", "wrong", "codes"),
    [
        (b"},\n  {", b"},,\n  {", {}),
        (b"},\n  {", b"}\n  {", {}),
        (b'"traceEvents": [', b'"traceEvents": [,', {}),
        (b"}\n  ],", b"},\n  ],", {}),
        (b"\n", b"\r\n", {}),
        (b'"traceEvents": [', b'"traceEvents": [null,', {"dropped_events": 1}),
        (b'"traceEvents": [', b'"traceEvents": ["x", 5,', {"dropped_events": 2}),
        (b'"traceEvents": [', b'"traceEvents": [{},', {}),
        (b'"traceEvents": [', b'"traceEvents": [[{"ph": "X"}],', {"dropped_events": 1}),
    ],
)  # fmt: skip
def test_what_lies_between_events_costs_none_of_them(
    tmp_path: Path, right: bytes, wrong: bytes, codes: dict[str, int]
) -> None:
    assert right in TEXT
    assert said(tmp_path, TEXT.replace(right, wrong)) == well(**codes)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (b"\xef\xbb\xbf" + TEXT, {}),
        (packed(TEXT[:500]) + packed(TEXT[500:]), {}),
        (packed(b"") + packed(TEXT), {}),
        (packed(TEXT) + bytes(1000), {}),
        (TEXT + b"\ngarbage", {"repaired_json": 1}),
        (TEXT + bytes(4096), {"repaired_json": 1}),
    ],
)
def test_what_surrounds_the_text_costs_nothing(
    tmp_path: Path, text: bytes, codes: dict[str, int]
) -> None:
    assert said(tmp_path, text) == well(**codes)


@pytest.mark.parametrize(
    "junk",
    [b'"INFO": ["a "b" c"],', b'"x": nan,', b'"x": {"a": [1,2},', b'"p": "C:\\dir",',
     b'"x": "\x01\xff",', b'"e": ]}]}]},', b'"x": "never ends,'],
)  # fmt: skip
@pytest.mark.parametrize("key", [b'  "traceEvents"', b'  "traceName"'])
def test_broken_metadata_is_said_and_costs_no_event(
    tmp_path: Path, junk: bytes, key: bytes
) -> None:
    assert said(tmp_path, TEXT.replace(key, junk + key)) == well(repaired_json=1)
    base = b'"baseTimeNanoseconds": %d,\n' % BASE_NS
    moved = TEXT.replace(base, b"").replace(b'  "traceName"', junk + base + b'  "traceName"')
    assert said(tmp_path, packed(moved)) == well(repaired_json=1)


@pytest.mark.parametrize("cut", [0.5, 0.8, 0.99])
@pytest.mark.parametrize("gz", [False, True])
def test_a_cut_file_is_marked_and_what_it_holds_is_right(
    tmp_path: Path, cut: float, gz: bool
) -> None:
    text = packed(TEXT) if gz else TEXT
    found = looked_at(tmp_path, text[: int(cut * len(text))])
    assert "truncated" in {d.code for d in found.summary.diagnostics}
    assert all(d.busy_ns == 50_000 * d.gpu_activities for d in found.summary.devices)


def test_a_cut_after_the_first_kernel_does_not_make_it_void(tmp_path: Path) -> None:
    end = TEXT.index(b"kernel_1") + 200
    found = said(tmp_path, TEXT[: TEXT.index(b"\n  }", end - 200) + 4])
    assert (found.activities, found.busy_ns, found.codes) == (1, 50_000, {"truncated": None})


@pytest.mark.parametrize("depth", [100, 2000, 200_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ("[", "")])
def test_deep_nesting_costs_no_gpu_row_wherever_it_is(
    tmp_path: Path, depth: int, opening: str, closing: str
) -> None:
    inner = "1" if opening.startswith("{") else ""
    deep = (opening * depth + inner + closing * depth).encode()
    rows = healthy()
    rows[5]["args"] = {"device": 0, "stream": 7, "correlation": 2, "x": "MARK"}
    found = said(tmp_path, broken(rows, {b"MARK": deep}))
    assert found == well(**found.codes)
    assert found.codes.keys() <= MENDED.keys()


@pytest.mark.parametrize("number", [2**63, 2**64, 10**30, -(2**63) - 1])
@pytest.mark.parametrize("key", ["Comms Id", "bytes", "External id", "grid", "device", "stream"])
def test_an_integer_of_any_size_costs_only_itself(tmp_path: Path, number: int, key: str) -> None:
    rows = healthy()
    rows[5]["args"] = {"correlation": 2, key: [number, 1] if key == "grid" else number}
    rows.append(event("cpu_op", "aten::any", "1.000", "1.000", args={"Comms Id": number}))
    assert said(tmp_path, trace_text(rows)) == well()


@pytest.mark.parametrize("value", [b"5", b"1.5", b"true", b"[]", b"{}", b'["kernel_2"]'])
@pytest.mark.parametrize("field", [b'"kernel_2"', b'"aten::mm"'])
def test_a_field_of_another_type_costs_only_itself(
    tmp_path: Path, field: bytes, value: bytes
) -> None:
    assert said(tmp_path, TEXT.replace(field, value, 1)) == well(repaired_json=1)


@pytest.mark.parametrize("args", [b"null", b"[]", b'"x"', b"5", b"true", b'[{"correlation": 2}]'])
def test_arguments_that_are_no_object_are_none(tmp_path: Path, args: bytes) -> None:
    text = ARGS.sub(b'"args": ' + args, TEXT, count=1)
    assert said(tmp_path, text).codes == {"repaired_json": 1, "unlinked_kernels": 1}


def test_a_bare_list_of_todays_events_is_read_and_said_to_be_bare(tmp_path: Path) -> None:
    inputs = looked_at(tmp_path, json.dumps(healthy()).encode())
    codes = {d.code: d.message for d in inputs.summary.diagnostics}
    assert "such as base and GPUs" in codes["legacy_format"]
    assert [d.busy_ns for d in inputs.summary.devices] == [200_000]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (b'"name": "kernel_2"', b'"name": "x", "name": "kernel_2"'),
        (b'"ts": "10.000"', b'"ts": "5.000", "ts": "10.000"'),
        (b'"correlation": 2', b'"correlation": 99, "correlation": 2'),
        (b'"ph": "X", "cat": "kernel"', b'"args": {"stream": 99}, "ph": "X", "cat": "kernel"'),
    ],
)
def test_of_a_key_written_twice_the_last_counts(tmp_path: Path, right: bytes, wrong: bytes) -> None:
    assert right in TEXT
    assert said(tmp_path, TEXT.replace(right, wrong)) == well()


def test_a_second_list_of_events_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    second = b'  "traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1, "dur": 1}],\n'
    text = TEXT.replace(b'  "traceName"', second + b'  "traceName"')
    assert said(tmp_path, text) == well(repaired_json=1)


def test_several_faults_in_one_packed_file_are_all_mended(tmp_path: Path) -> None:
    rows: list[Row] = healthy()
    rows[2]["name"], rows[5]["name"], rows[8]["name"] = "ONE", "TWO", "THREE"
    rows[0]["args"] = {"External id": 1, "x": "FOUR"}
    marks = {b"ONE": b'"C:\\a"', b"TWO": b'"a "b" c"', b"THREE": b'"\xff"', b"FOUR": b"N/A"}
    text = broken(rows, marks).replace(b"},\n  {", b"}\n  {", 2)
    inputs = looked_at(tmp_path, packed(text))
    assert operators(inputs) == ["aten::mm"] * 4
    assert said(tmp_path, packed(text)) == well(repaired_json=4)
