import json
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.golden import DATA, TRACE, make, summary_path
from whichwall.analyze.analysis import analyze, analyze_to_folder
from whichwall.schemas.folder import file_facts, file_name
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.manifest import FILE, VERSION, read_manifest
from whichwall.schemas.run import RUN_TABLES, open_run

GOLDEN = sorted(path for path in DATA.glob("golden-v*") if path.is_dir())


@pytest.mark.parametrize("golden", GOLDEN, ids=[path.name for path in GOLDEN])
def test_a_run_of_an_earlier_version_gives_its_stored_summary_byte_for_byte(golden: Path) -> None:
    assert analyze(open_run(golden)).summary.encode() == summary_path(golden).read_bytes()


@pytest.mark.parametrize("golden", GOLDEN, ids=[path.name for path in GOLDEN])
def test_a_golden_run_is_as_it_was_written(golden: Path) -> None:
    manifest = read_manifest(golden)
    assert golden.name == f"golden-v{manifest.schema_version}"
    on_disk = {path.name for path in golden.iterdir()}
    assert on_disk == {FILE, *manifest.files}
    for name, facts in manifest.files.items():
        assert file_facts(golden / name, facts.rows) == facts
    run = open_run(golden)
    for table in RUN_TABLES:
        stated = manifest.files.get(file_name(table))  # a table younger than the run has no file
        assert run.scan(table).collect().height == (stated.rows if stated else 0)


def test_each_schema_version_has_its_golden_run() -> None:
    assert [path.name for path in GOLDEN] == [f"golden-v{n}" for n in range(1, VERSION + 1)]


def test_the_writer_of_today_leaves_the_same_tables_as_the_newest_golden_run(
    tmp_path: Path,
) -> None:
    made, golden = open_run(make(tmp_path / GOLDEN[-1].name)), open_run(GOLDEN[-1])
    for table in RUN_TABLES:
        assert made.scan(table).collect().equals(golden.scan(table).collect()), table.NAME
    assert analyze(made).summary.encode() == analyze(golden).summary.encode()


def test_a_run_gives_the_same_summary_wherever_it_lies(tmp_path: Path) -> None:
    summaries = []
    for place in (tmp_path / "a" / "run", tmp_path / "some where" / "else" / "renamed"):
        shutil.copytree(GOLDEN[-1], place)
        _, report = analyze_to_folder(place)
        summaries.append((report / "summary.json").read_bytes())
    assert summaries[0] == summaries[1] == summary_path(GOLDEN[-1]).read_bytes()
    # Analyzed again, in place: the earlier report is no part of the run.
    _, report = analyze_to_folder(tmp_path / "a" / "run")
    assert (report / "summary.json").read_bytes() == summaries[0]


def test_the_golden_trace_is_read_to_the_nanosecond() -> None:
    text = TRACE.read_text()
    events: list[dict[str, Any]] = json.loads(text, parse_float=str)["traceEvents"]
    base = int(re.findall(r'"baseTimeNanoseconds": (\d+)', text)[0])
    gpu = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    expected = sorted(
        (base + int(e["ts"].replace(".", "")), int(e["dur"].replace(".", "")), e["name"])
        for e in gpu
    )
    kernels = open_run(GOLDEN[-1]).kernels.select(Kernels.start_ns, Kernels.dur_ns, Kernels.name)
    assert sorted(kernels.collect().rows()) == expected
    assert len(expected) == 96


def test_what_a_summary_says_is_what_the_design_names() -> None:
    found = json.loads(summary_path(GOLDEN[-1]).read_bytes())
    assert found["schema_version"] == 1
    assert {
        "schema_version", "run", "verdict", "devices", "steps", "floors", "ttft_ns", "tpot_ns",
        "samples", "tax", "diagnostics",
    } <= set(found)  # fmt: skip
    assert set(found["verdict"]) >= {
        "wall", "shares", "annotations", "confirm_with", "predicted_step_ms", "reason",
    }  # fmt: skip
    assert set(found["devices"][0]) >= {
        "rank", "device", "gpu_activities", "kernels", "window_ns", "busy_ns",
        "busy_without_communication_ns", "busy_fraction", "duration_sum_ns", "kernel_median_ns",
        "gaps", "roles", "attributed_share",
    }  # fmt: skip
    assert set(found["devices"][0]["gaps"]) >= {
        "count", "total_ns", "median_ns", "p99_ns", "by_cause_ns",
    }  # fmt: skip
    assert set(found["steps"]) >= {"found_by", "phase", "groups"}
    assert set(found["steps"]["groups"][0]) >= {
        "rank", "device", "point", "phase", "count", "window_ns_median", "busy_ns_median",
        "busy_fraction_traced", "busy_fraction_clean", "clean_step_ns_median",
        "clean_step_ns_p10", "clean_step_ns_p90", "kernels_median", "launches_median",
        "kernel_median_ns", "gap_median_ns", "tokens_per_s", "achieved_gbps", "achieved_tflops",
        "times_floor", "roles",
    }  # fmt: skip
    assert set(found["samples"]) >= {
        "sm_clock_mhz_median", "power_w_median", "energy_j_per_token", "throttle",
    }  # fmt: skip


def test_roles_go_row_by_row_with_activities(tmp_path: Path) -> None:
    inputs = analyze(open_run(GOLDEN[-1]))
    keys = ["rank", "device", "start_ns", "dur_ns", "name"]
    assert inputs.roles.select(keys).equals(inputs.activities.select(keys))
    assert inputs.roles.select(pl.all().is_null().any()).select("role", "method").row(0) == (
        False,
        False,
    )
