import gzip
from pathlib import Path

import pytest

from tests.differences import ABSENT, Check
from tests.smi_cases import smi_checks
from whichwall.collect.smi import read_samples
from whichwall.collect.smi_fields import LAYOUTS, QUERY, canonical, supported_fields
from whichwall.collect.smi_rows import SmiParser, parse_stamp
from whichwall.schemas.errors import InputError
from whichwall.schemas.samples import Samples

CHECKS = smi_checks()
FIELDS = ["timestamp", "index", "uuid", "clocks.sm", "power.draw"]
STAMP_NS = 1_795_962_931_600_000_000
ROW = "2026/11/29 14:35:31.600, 0, GPU-e4c4a7b1, 1950, 359.58"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "smi.csv"
    path.write_bytes(text.encode())
    return path


@pytest.mark.skipif(not CHECKS, reason=f"no cases of nvidia-smi: {ABSENT}")
@pytest.mark.parametrize("check", CHECKS, ids=[check.name for check in CHECKS])
def test_each_handed_case_reads_and_imports_exactly_as_stated(check: Check, tmp_path: Path) -> None:
    assert check.differences(tmp_path) == []


@pytest.mark.parametrize(("name", "rows"), [("smi_decode", 692), ("smi_gemm", 395)])
def test_a_real_capture_without_a_header_is_told_by_its_content(
    shared: Path, name: str, rows: int
) -> None:
    found = read_samples(shared / "smi" / f"{name}.csv.gz")

    assert len(found.rows) == rows
    assert found.diagnostics == []
    # 1 s averages lag behind the instant reading, so no two of the power columns are confused.
    assert all(row[Samples.power_w] == row[Samples.power_average_w] for row in found.rows)
    assert any(row[Samples.power_w] != row[Samples.power_instant_w] for row in found.rows)


def test_a_header_with_units_names_the_columns_in_any_order(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "uuid, timestamp, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%]\n"
        "GPU-e4c4a7b1, 2026/11/29 14:35:31.600, 359.58 W, 1950 MHz, 97 %\n",
    )

    assert read_samples(path).rows == [
        {
            Samples.received_ns: None,
            Samples.gpu_uuid: "GPU-e4c4a7b1",
            Samples.time_ns: STAMP_NS,
            Samples.power_w: 359.58,
            Samples.sm_clock_mhz: 1950.0,
            Samples.utilization_percent: 97.0,
        }
    ]


def test_gzip_is_told_by_content_and_windows_line_ends_are_no_part_of_values(
    tmp_path: Path,
) -> None:
    path = tmp_path / "smi.csv"
    path.write_bytes(gzip.compress(f"{ROW}\r\n".encode()))

    assert read_samples(path, FIELDS).rows[0][Samples.power_w] == 359.58


def test_the_start_of_a_gzip_file_that_stops_early_is_kept_and_that_is_said(
    tmp_path: Path,
) -> None:
    # Stamps that differ, so that much of the file is there when its end is not.
    lines = [ROW.replace("31.600", f"{n // 1000:02}.{n % 1000:03}") for n in range(20_000)]
    path = tmp_path / "smi.csv.gz"
    packed = gzip.compress("\n".join(lines).encode())
    path.write_bytes(packed[: len(packed) // 2])

    found = read_samples(path, FIELDS)

    assert 5_000 < len(found.rows) < 15_000
    assert found.parser.rejected == [len(found.rows) + 1]
    assert ("truncated", "warning") in [(d.code, d.severity) for d in found.diagnostics]


@pytest.mark.parametrize("text", ["[N/A]", "Not Supported", "[Unknown Error]", "ERR!"])
def test_a_value_that_is_none_stands_in_no_way_of_telling_columns(
    text: str, tmp_path: Path
) -> None:
    row = f"2026/11/29 14:35:31.600, 0, GPU-e4c4a7b1, P0, 1950, 3201, {text}, 40, {text}, 500, 0x0"
    path = write(tmp_path, row + "\n")

    (found,) = read_samples(path).rows

    assert (found[Samples.sm_clock_mhz], found[Samples.power_instant_w]) == (1950.0, None)


def test_what_powershell_redirects_is_read(tmp_path: Path) -> None:
    path = tmp_path / "smi.csv"
    path.write_bytes(f"{ROW}\n".encode("utf-16"))

    assert len(read_samples(path, FIELDS).rows) == 1


def test_a_value_in_another_unit_is_null_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path, ROW.replace("359.58", "359580 mW") + "\n")

    found = read_samples(path, FIELDS)

    assert found.rows[0][Samples.power_w] is None
    assert found.facts.nulls == {"power.draw": {"359580 mW": 1}}


@pytest.mark.parametrize(
    "text", ["[N/A]", "N/A", "[Unknown Error]", "[GPU requires reset]", "ERR!", "", "9" * 400]
)
def test_what_is_no_number_is_null_and_never_zero(text: str) -> None:
    parser = SmiParser(FIELDS)

    parser.feed(1, f"2026/11/29 14:35:31.600, 0, GPU-e4c4a7b1, 1950, {text}")

    assert parser.values == [(STAMP_NS, 0, "GPU-e4c4a7b1", 1950.0, None)]
    assert parser.nulls == {"power.draw": {text: 1}}


def test_the_old_name_of_the_reasons_is_the_new_one() -> None:
    assert canonical("clocks_throttle_reasons.active") == "clocks_event_reasons.active"


def test_stamps_are_exact_nanoseconds_and_impossible_ones_are_none() -> None:
    assert parse_stamp("2026/11/29 14:35:31.600") == STAMP_NS
    assert parse_stamp("2026/13/29 14:35:31.600") is None
    assert parse_stamp("9999/01/01 00:00:00.000") is None


def test_our_own_query_is_a_known_layout_and_the_driver_has_its_fields(shared: Path) -> None:
    known = supported_fields((shared / "smi" / "help-query-gpu.txt").read_text())

    assert QUERY in LAYOUTS
    assert [name for name in QUERY if name not in known] == []


def test_an_old_driver_is_asked_in_its_own_words() -> None:
    known = supported_fields(
        '"clocks_throttle_reasons.active"\nBitmask.\n\n"timestamp"\nThe time.\n'
    )

    assert known == {
        "clocks_event_reasons.active": "clocks_throttle_reasons.active",
        "timestamp": "timestamp",
    }


def test_columns_in_no_known_order_are_refused_with_the_way_out(tmp_path: Path) -> None:
    path = write(tmp_path, "2026/11/29 14:35:31.600, 1950, 359.58, 61\n")

    with pytest.raises(InputError, match=r"4 columns without a header.*--sample-fields"):
        read_samples(path)


def test_fields_that_contradict_the_header_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "timestamp, power.draw [W]\n2026/11/29 14:35:31.600, 359.58 W\n")

    with pytest.raises(InputError, match=r"its header names timestamp, power\.draw"):
        read_samples(path, ["timestamp", "clocks.sm"])


def test_several_gpus_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    line = "2026/11/29 14:35:31.600, 359.58\n"
    path = write(tmp_path, line + line)

    with pytest.raises(InputError, match="query uuid as well"):
        read_samples(path, ["timestamp", "power.draw"])


@pytest.mark.parametrize("content", [b"", b"{}\n", b"\x1f\x8b\x08broken", b"a, b\n1, 2\n"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)

    with pytest.raises(InputError, match="expected"):
        read_samples(path)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.csv: cannot be read"):
        read_samples(tmp_path / "absent.csv")
