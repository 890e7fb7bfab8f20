import json
from decimal import ROUND_HALF_EVEN, Decimal

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import PROPERTY
from whichwall.collect.kineto.exact import INT64_MAX, INT64_MIN, nanoseconds, since_epoch

BASE_NS = 1_751_410_836_000_000_000
LATEST_NS = 4 * 10**18  # the year 2096
RELATIVE_NS = 7_889_238 * 10**9  # the base is renewed this often

int64s = st.integers(INT64_MIN, INT64_MAX)


def read(*texts: str) -> list[int | None]:
    """Return what each text is in ns, null where it is unknown."""
    values, known = nanoseconds([msgspec.Raw(t.encode()) for t in texts])
    return [int(v) if k else None for v, k in zip(values, known, strict=True)]


def as_microseconds(ns: int) -> str:
    """Write ns as Kineto does: microseconds and exactly three decimals."""
    sign = "-" if ns < 0 else ""
    return f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


@PROPERTY
@given(st.lists(int64s, max_size=20))
def test_three_decimals_are_exact_over_the_whole_of_int64(times: list[int]) -> None:
    assert read(*map(as_microseconds, times)) == times


@PROPERTY
@given(st.lists(st.integers(-(INT64_MAX // 1000), INT64_MAX // 1000), max_size=20))
def test_whole_microseconds_are_exact(times: list[int]) -> None:
    assert read(*map(str, times)) == [us * 1000 for us in times]


@PROPERTY
@given(st.lists(int64s, min_size=1, max_size=20))
def test_quoted_times_are_exact(times: list[int]) -> None:
    assert read(*(f'"{as_microseconds(ns)}"' for ns in times)) == times


@PROPERTY
@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=6), max_size=20))
def test_any_finite_decimal_is_within_a_nanosecond_or_at_an_end(values: list[Decimal]) -> None:
    texts = [f"{v:f}" for v in values]
    exact = [int((v * 1000).to_integral_value(ROUND_HALF_EVEN)) for v in values]
    found = read(*texts)
    held = [max(min(e, INT64_MAX), INT64_MIN) for e in exact]
    assert [one is not None and abs(one - e) <= 1 for one, e in zip(found, held, strict=True)] == [
        True
    ] * len(values)


@PROPERTY
@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-9e15, max_value=9e15))
def test_a_float_as_json_writes_it_is_read_to_the_nanosecond(value: float) -> None:
    text = json.dumps(value)
    found = read(text)[0]
    assert found is not None
    assert abs(Decimal(found) - Decimal(text) * 1000) <= 1


def test_a_unknown_time_among_known_ones_costs_only_itself() -> None:
    assert read("1.000", "null", '"2.500"', '"soon"', "NaN", "true", "-0.001", "1e3") == [
        1000, None, 2500, None, None, None, -1, 1_000_000,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("9223372036854775.807", INT64_MAX),
        ("-9223372036854775.808", INT64_MIN),
        ("9223372036854775.808", INT64_MAX),
        ("-9223372036854775.809", INT64_MIN),
        ("9999999999999999999.999", INT64_MAX),
        ("-9223372036854775808", INT64_MIN),
        ("1" * 400, INT64_MAX),
        ("1e400", INT64_MAX),
        ("-1e400", INT64_MIN),
        ("", None),
        ('""', None),
        ("[]", None),
    ],
)
def test_a_time_beyond_int64_is_its_last_and_its_neighbours_stay(text: str, ns: int | None) -> None:
    assert read(text) == [ns]
    assert read("5", text, "7") == [5000, ns, 7000]


def test_no_times_are_no_times() -> None:
    assert read() == []


@PROPERTY
@given(st.integers(0, RELATIVE_NS))
def test_a_relative_time_is_moved_by_the_base(ns: int) -> None:
    assert since_epoch(np.array([ns]), BASE_NS).tolist() == [BASE_NS + ns]


@PROPERTY
@given(st.integers(10**18, LATEST_NS), st.sampled_from([None, BASE_NS]))
def test_a_time_since_the_epoch_stays(ns: int, base: int | None) -> None:
    assert since_epoch(np.array([ns]), base).tolist() == [ns]


@PROPERTY
@given(st.integers(0, RELATIVE_NS))
def test_a_relative_time_without_a_base_stays(ns: int) -> None:
    assert since_epoch(np.array([ns]), None).tolist() == [ns]
