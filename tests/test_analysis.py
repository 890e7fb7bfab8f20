"""From a folder to a summary: what only the whole shows."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.frames import (
    BASE_NS,
    Row,
    a_pass,
    annotation,
    call,
    event,
    gpu_event,
    kernel,
    launch_event,
    op,
    trace_text,
)
from tests.golden import DATA, MODEL
from tests.test_repetition import DECODE as REPEATED
from tests.test_repetition import eager
from whichwall.analyze.analysis import analyze, analyze_to_folder, write_analysis
from whichwall.collect.importer import import_run
from whichwall.schemas.errors import InputError, UsageError
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import VERSION, Manifest, RankFacts
from whichwall.schemas.ops import Ops
from whichwall.schemas.passes import DECODE, PREFILL, Passes
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.run import Run, open_run
from whichwall.schemas.summary import Summary

US = 1000


def a_run(
    out: Path,
    kernels: Sequence[Row] = (),
    calls: Sequence[Row] = (),
    annotations: Sequence[Row] = (),
    passes: Sequence[Row] = (),
    ops: Sequence[Row] = (),
    points: int = 1,
) -> Run:
    """Write a run of small tables."""
    ranks = [
        RankFacts(rank=rank, source="kineto", time_origin="epoch", base_ns=None, resolution_ns=1,
                  point=point)
        for point in range(points)
        for rank in sorted({int(str(row["rank"])) for row in (*kernels, *calls)} or {0})
    ]  # fmt: skip
    manifest = Manifest(
        schema_version=VERSION, id="", name="", created_ns=0, tool_version="0", command="",
        mode="decode", model=MODEL, ranks=ranks,
    )  # fmt: skip
    with RunWriter(out) as writer:
        for table, rows in (
            (Kernels, kernels), (Launches, calls), (Ranges, annotations), (Passes, passes),
            (Ops, ops),
        ):  # fmt: skip
            writer.write(table, list(rows))
        return open_run(writer.finish(manifest))


def traced(name: str, steps: int = 3, **place: object) -> tuple[list[Row], list[Row], list[Row]]:
    """Return kernels, launches and annotations of steps of 1 ms with 0.1 ms of work."""
    starts = [BASE_NS + i * 1000 * US for i in range(steps)]
    offset = sum(int(str(v)) for v in place.values()) * 1000
    return (
        [kernel(s + 100 * US, s + 200 * US, i + 1 + offset, **place) for i, s in enumerate(starts)],
        [
            call(s + 50 * US, s + 60 * US, i + 1 + offset, **_host(place))
            for i, s in enumerate(starts)
        ],
        [annotation(s, s + 90 * US, name.replace("*", str(i)), **_host(place))
         for i, s in enumerate(starts)],
    )  # fmt: skip


def _host(place: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in place.items() if key != "device"}


def codes(summary: Summary) -> list[str]:
    return [d.code for d in summary.diagnostics]


OURS, VLLM = "whichwall::decode#*", "execute_context_0(0)_generation_1(1)"


def test_a_trace_alone_names_launches_only_if_they_outlive_the_cut(tmp_path: Path) -> None:
    summary = analyze(a_run(tmp_path / "run", *traced(OURS))).summary
    assert summary.verdict.wall == "launches"
    assert "no_clean_timing" in codes(summary)
    group = summary.steps.groups[0]
    assert (group.phase, group.count, group.busy_ns_median) == (DECODE, 3, 100 * US)
    assert (group.window_ns_median, group.clean_step_ns_median) == (1000 * US, None)


def test_an_engines_trace_alone_names_nothing_and_with_its_clean_time_it_does(
    tmp_path: Path,
) -> None:
    run = a_run(tmp_path / "run", *traced(VLLM))
    assert analyze(run).summary.verdict.wall is None
    timed = analyze(run, clean_step_ms=0.3).summary
    assert (timed.verdict.wall, timed.verdict.shares is None) == ("launches", True)
    assert "no_clean_timing" not in codes(timed)
    (group,) = timed.steps.groups
    assert (group.clean_step_ns_median, group.clean_from) == (300_000, "option")
    assert group.busy_fraction_clean == pytest.approx(1 / 3)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf")])
def test_a_clean_step_that_is_no_time_is_refused(tmp_path: Path, wrong: float) -> None:
    with pytest.raises(UsageError, match="expected milliseconds above 0"):
        analyze(a_run(tmp_path / "run"), clean_step_ms=wrong)


def test_without_steps_the_whole_recording_is_taken_and_that_is_said(tmp_path: Path) -> None:
    kernels, calls, _ = traced(OURS)
    summary = analyze(a_run(tmp_path / "run", kernels, calls)).summary
    assert (summary.steps.found_by, summary.steps.groups) == (None, [])
    assert summary.verdict.wall == "launches"
    assert any("the whole recording is taken as one" in a for a in summary.verdict.annotations)


def test_a_run_on_a_cpu_has_its_timings_and_no_wall(tmp_path: Path) -> None:
    passes = [a_pass(0, 900, PREFILL), *(a_pass(900 + 100 * i, 100) for i in range(5))]
    ops = [op(0, 50, "aten::mm"), op(60, 90, "aten::add")]
    marks = [annotation(0, 50, "whichwall::decode#0"), annotation(55, 95, "whichwall::decode#1")]
    summary = analyze(a_run(tmp_path / "run", passes=passes, ops=ops, annotations=marks)).summary
    assert (summary.verdict.wall, summary.verdict.reason) == (None, "no GPU: this run used the CPU")
    assert summary.devices == []
    assert "no_gpu_activity" in codes(summary)
    assert [(g.phase, g.device, g.count, g.clean_step_ns_median) for g in summary.steps.groups] == [
        (DECODE, None, 2, 100), (PREFILL, None, 0, 900),
    ]  # fmt: skip
    assert (summary.ttft_ns, summary.tpot_ns) == (900, 100)
    assert sum(role.busy_ns for role in summary.cpu_roles) == 80


def test_lost_gpu_records_are_lost_and_not_a_cpu_run(tmp_path: Path) -> None:
    _, calls, marks = traced(OURS)
    summary = analyze(a_run(tmp_path / "run", calls=calls, annotations=marks)).summary
    assert summary.verdict.reason == (
        "no GPU: launches are on record, but the profiler lost all GPU records"
    )
    assert {"no_gpu_activity", "gpu_records_lost"} <= set(codes(summary))


def test_each_device_and_rank_has_its_group_and_the_first_one_speaks(tmp_path: Path) -> None:
    parts = [traced(OURS), traced(OURS, device=1), traced(OURS, rank=1)]
    kernels, calls, marks = ([row for part in parts for row in part[i]] for i in range(3))
    # Two devices of one process share its annotations.
    marks = [row for i, row in enumerate(marks) if not 3 <= i < 6]
    summary = analyze(a_run(tmp_path / "run", kernels, calls, marks)).summary
    assert [(d.rank, d.device, d.busy_ns) for d in summary.devices] == [
        (0, 0, 300 * US), (0, 1, 300 * US), (1, 0, 300 * US),
    ]  # fmt: skip
    assert [(g.rank, g.device, g.count, g.window_ns_median) for g in summary.steps.groups] == [
        (0, 0, 3, 1000 * US), (0, 1, 3, 1000 * US), (1, 0, 3, 1000 * US),
    ]  # fmt: skip
    assert summary.steps.phase == {DECODE: 3}


def test_points_are_judged_in_their_order_and_decode_before_prefill(tmp_path: Path) -> None:
    first, second = traced("whichwall::prefill#*"), traced(OURS, point=1)
    extra = traced(OURS, steps=1)
    later = 10_000 * US
    kernels = [
        row | {Kernels.start_ns: int(str(row[Kernels.start_ns])) + later} for row in extra[0]
    ]
    kernels = [row | {Kernels.correlation: 77} for row in kernels]
    calls = [row | {Launches.start_ns: int(str(row[Launches.start_ns])) + later,
                    Launches.correlation: 77} for row in extra[1]]  # fmt: skip
    marks = [row | {Ranges.start_ns: int(str(row[Ranges.start_ns])) + later} for row in extra[2]]
    run = a_run(
        tmp_path / "run", [*first[0], *kernels, *second[0]], [*first[1], *calls, *second[1]],
        [*first[2], *marks, *second[2]], points=2,
    )  # fmt: skip
    groups = analyze(run).summary.steps.groups
    assert [(g.point, g.phase, g.count) for g in groups] == [
        (0, DECODE, 1), (0, PREFILL, 3), (1, DECODE, 3),
    ]  # fmt: skip


def test_what_was_timed_and_not_traced_follows_what_was(tmp_path: Path) -> None:
    passes = [a_pass(0, 900, PREFILL, tokens=8), *(a_pass(900 + 100 * i, 100) for i in range(5))]
    summary = analyze(a_run(tmp_path / "run", *traced("whichwall::decode#*"), passes)).summary
    assert [
        (g.phase, g.device, g.count, g.busy_ns_median, g.clean_step_ns_median)
        for g in summary.steps.groups
    ] == [(DECODE, 0, 3, 100 * US, 100), (PREFILL, None, 0, None, 900)]
    assert summary.steps.phase == {DECODE: 3}
    assert summary.floors is not None
    assert [(f.phase, f.tokens) for f in summary.floors_by_phase] == [(DECODE, 1), (PREFILL, 8)]


def test_a_phase_before_the_judged_one_that_was_only_timed_does_not_speak(tmp_path: Path) -> None:
    passes = [a_pass(100 * i, 100) for i in range(5)]
    summary = analyze(a_run(tmp_path / "run", *traced("whichwall::prefill#*"), passes)).summary
    assert [(g.phase, g.device) for g in summary.steps.groups] == [(PREFILL, 0), (DECODE, None)]


def test_timings_do_not_stand_in_for_the_steps_of_a_recording_without_any(tmp_path: Path) -> None:
    kernels, calls, _ = traced(OURS)
    passes = [a_pass(100 * i, 100) for i in range(5)]
    assert analyze(a_run(tmp_path / "run", kernels, calls, (), passes)).summary.steps.groups == []


def test_an_annotation_over_several_passes_is_split_and_that_is_said(tmp_path: Path) -> None:
    kernels, calls = eager(3 * REPEATED)
    outer = annotation(0, 10**6, "ProfilerStep#3")
    a_run(tmp_path / "run", kernels, calls, [outer])
    inputs, report = analyze_to_folder(tmp_path / "run")
    summary = inputs.summary
    assert [(g.count, g.kernels_median) for g in summary.steps.groups] == [(3, len(REPEATED))]
    assert summary.steps.found_by == "repetition"
    (said,) = (d for d in summary.diagnostics if d.code == "split_steps")
    assert (said.severity, said.count) == ("info", 1)
    named = "3 that are neither called prefill nor decode, found by repetition"
    assert named in (report / "report.md").read_text()


def test_what_no_file_says_is_null_in_the_summary(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(
        trace_text([launch_event("1.000", "2.000", 1), gpu_event("k", "5.000", "2.000", 1)])
    )
    found = json.loads(analyze(open_run(import_run([path], tmp_path / "run"))).summary.encode())
    unknown = ["model", "floors", "ttft_ns", "tpot_ns", "samples", "tax"]
    assert {key: found[key] for key in unknown} == dict.fromkeys(unknown)
    (device,) = found["devices"]
    assert (device["window_ns"], device["busy_ns"], device["busy_fraction"]) == (2000, 2000, 1.0)
    assert device["gaps"] == {
        "count": 0, "total_ns": 0, "median_ns": None, "p99_ns": None, "by_cause_ns": {},
        "by_cause_count": {},
    }  # fmt: skip


def test_a_kernel_of_no_length_has_no_busy_fraction(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(trace_text([gpu_event("k", "5.000", "0.000", 1)]))
    (device,) = analyze(open_run(import_run([path], tmp_path / "run"))).summary.devices
    assert (device.gpu_activities, device.busy_ns, device.busy_fraction) == (1, 0, None)
    assert device.attributed_share is None


def test_an_empty_run_has_a_report_too(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(trace_text([event("cpu_op", "aten::mm", "1.000", "2.000")]))
    inputs, report = analyze_to_folder(import_run([path], tmp_path / "run"))
    assert inputs.summary.verdict.wall is None
    assert (report / "summary.json").read_bytes() == inputs.summary.encode()


def test_a_report_replaces_an_earlier_one_whole_and_nothing_else(tmp_path: Path) -> None:
    inputs = analyze(open_run(DATA / "golden-v1"))
    out = tmp_path / "report"
    write_analysis(inputs, out)
    (out / "older-chart.svg").write_text("")
    write_analysis(inputs, out)
    assert not (out / "older-chart.svg").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["report"]
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(out)
    for place in (mine, mine / "notes.txt", link):
        with pytest.raises(UsageError, match="exists and is no report"):
            write_analysis(inputs, place)
    assert (mine / "notes.txt").read_text() == "mine"


def flipped(raw: bytes) -> bytes:
    """Return a Parquet file with other bytes in its first pages; the end still reads well."""
    return raw[:4] + bytes(byte ^ 0x5A for byte in raw[4:400]) + raw[400:]


@pytest.mark.parametrize("table", ["kernels", "launches", "ops", "ranges", "passes", "points"])
@pytest.mark.parametrize(
    "damage", [lambda raw: b"", lambda raw: raw[: len(raw) // 2], flipped, None],
    ids=["empty", "cut", "flipped", "missing"],
)  # fmt: skip
def test_a_damaged_or_lost_table_is_named_and_not_taken_for_empty(
    tmp_path: Path, table: str, damage: Callable[[bytes], bytes] | None
) -> None:
    shutil.copytree(DATA / "golden-v1", tmp_path / "run")
    path = tmp_path / "run" / f"{table}.parquet"
    raw = path.read_bytes()
    path.unlink()
    if damage is not None:
        path.write_bytes(damage(raw))
    with pytest.raises(InputError, match=rf"\b{table}\b") as caught:
        analyze(open_run(tmp_path / "run"))
    assert str(tmp_path / "run") in str(caught.value)
