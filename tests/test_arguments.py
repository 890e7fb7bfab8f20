import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import PROPERTY
from whichwall.collect.kineto.arguments import (
    GpuArguments,
    as_int64,
    int64s,
    read_arguments,
    texts,
    trailing_number,
)
from whichwall.collect.kineto.events import Event
from whichwall.collect.kineto.repair import Repairs

LIMIT = 2**63


def read(*texts: str) -> tuple[list[GpuArguments], Repairs]:
    repairs = Repairs()
    events = [Event(args=msgspec.Raw(text.encode())) for text in texts]
    return read_arguments(events, GpuArguments, repairs), repairs


def test_an_odd_value_is_null_and_costs_only_itself() -> None:
    found, repairs = read('{"device": 0, "correlation": [7], "stream": 7}', '{"device": 1}')
    assert found == [GpuArguments(device=0, stream=7), GpuArguments(device=1)]
    assert repairs == Repairs(repaired=1)


def test_a_number_that_is_not_finite_is_null_and_counted_as_such() -> None:
    found, repairs = read('{"device": 0, "bytes": 1e999, "memory bandwidth (GB/s)": inf}')
    assert found == [GpuArguments(device=0)]
    assert repairs == Repairs(nonfinite=2)


@pytest.mark.parametrize("text", ["null", "[]", '"text"', "5", "{"])
def test_arguments_that_are_no_object_are_all_unknown(text: str) -> None:
    assert read(text)[0] == [GpuArguments()]


@given(st.integers(-(2**70), 2**70))
@PROPERTY
def test_a_whole_number_is_kept_where_64_bits_hold_it(value: int) -> None:
    expected = value if -LIMIT <= value < LIMIT else None
    assert as_int64(value) == as_int64(str(value)) == expected
    assert int64s([value, 1]).to_pylist() == [expected, 1]


@given(st.one_of(st.text(max_size=25), st.floats(), st.none()))
@PROPERTY
def test_anything_else_is_a_number_or_null_but_never_a_failure(value: str | float | None) -> None:
    found = as_int64(value)
    assert found is None or (value is not None and float(found) == float(value))
    assert int64s([value]).to_pylist() == [found]


@pytest.mark.parametrize(
    ("label", "number"),
    [("stream 7 ", 7), ("[TP00-DP01] 4711", 4711), (-5, -5), ("GPU", None), ("", None),
     (None, None), (2**63, None)],
)  # fmt: skip
def test_a_label_is_known_by_its_last_number(label: int | str | None, number: int | None) -> None:
    assert trailing_number(label) == number


def test_a_json_value_is_its_own_text_and_an_absent_one_is_null() -> None:
    raw = [msgspec.Raw(b"[[1, 896], []]"), msgspec.Raw(b""), msgspec.Raw('["Größe"]'.encode())]
    assert texts(raw).to_pylist() == ["[[1, 896], []]", None, '["Größe"]']
    assert texts([]).to_pylist() == []


def test_a_text_that_is_not_utf8_is_replaced_and_its_neighbours_stay() -> None:
    raw = [msgspec.Raw(b'["ok"]'), msgspec.Raw(b""), msgspec.Raw(b'["\xff"]')]
    assert texts(raw).to_pylist() == ['["ok"]', None, '["\ufffd"]']
