"""Variants of links and lost records: a link that cannot be right is none, a loss is never idle."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.frames import Row, event, trace_text
from tests.wild import Said, healthy, kernel, launch, looked_at, operators, said, well

LAUNCHES = [
    "cudaLaunchKernel_v7000", "cudaLaunchKernelExC", "cudaLaunchKernelExC_ptsz", "cuLaunchKernel",
    "cuLaunchKernelEx", "cudaLaunchCooperativeKernel", "hipLaunchKernel", "hipExtLaunchKernel",
    "hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "__hipLaunchKernel", "cudaGraphLaunch",
    "hipGraphLaunch", "cudaGraphLaunch_v10000", "musaLaunchKernel", "urEnqueueKernelLaunch",
    "zeCommandListAppendLaunchKernel",
]  # fmt: skip
CALLS = {"xpu_runtime", "xpu_driver", "musa_runtime", "mtia_runtime", "privateuse1_runtime",
         "privateuse1_driver", "hip_runtime", "cuda_driver", "Runtime"}  # fmt: skip


def changed(rows: list[Row], change: Callable[[Row, int], Row | None]) -> bytes:
    """Return a trace's text of rows, each as a function makes it from the row and its triple."""
    made = [change(row, i // 3) for i, row in enumerate(rows)]
    return trace_text([row for row in made if row is not None])


def with_args(row: Row, **args: object) -> Row:
    old = row["args"]
    assert isinstance(old, dict)
    return row | {"args": old | args}


def lacking(rows: list[Row], *lost: int) -> list[Row]:
    return [r for i, r in enumerate(rows) if not (r["cat"] == "kernel" and i // 3 in lost)]


@pytest.mark.parametrize("name", LAUNCHES)
def test_any_vendors_launch_is_linked_and_missed_when_it_left_nothing(
    tmp_path: Path, name: str
) -> None:
    def renamed(row: Row, _: int) -> Row:
        return row | {"name": name} if row["cat"] == "cuda_runtime" else row

    assert said(tmp_path, changed(healthy(), renamed)) == well()
    lost = said(tmp_path, changed(lacking(healthy(), 1), lambda r, _: renamed(r, 0)))
    assert lost.codes == {"gpu_records_lost": 1}


@pytest.mark.parametrize("category", sorted(CALLS))
def test_calls_are_calls_by_whatever_vendors_name(tmp_path: Path, category: str) -> None:
    text = changed(
        healthy(), lambda r, _: r | {"cat": category} if r["cat"] == "cuda_runtime" else r
    )
    assert said(tmp_path, text) == well()


@pytest.mark.parametrize("broken", [0, None, 2**63 + 5, "0x1f", "soon", 1.5])
@pytest.mark.parametrize("which", [(1,), (3,), (0, 1, 2, 3)])
def test_a_kernel_without_a_usable_link_is_unlinked_and_its_launch_not_called_lost(
    tmp_path: Path, broken: object, which: tuple[int, ...]
) -> None:
    text = changed(
        healthy(),
        lambda r, n: with_args(r, correlation=broken) if r["cat"] == "kernel" and n in which else r,
    )
    gaps = 50_000 * len([n for n in which if n])
    causes = {"launch": 150_000 - gaps, "unknown": gaps}
    expected = replace(
        well(unlinked_kernels=len(which)), gaps_ns={k: v for k, v in causes.items() if v}
    )
    assert said(tmp_path, text) == expected


@pytest.mark.parametrize("spelling", [str, float, lambda n: n + 2**32, lambda n: f" {n} "])
def test_a_correlation_is_the_same_number_however_it_is_spelled(
    tmp_path: Path, spelling: Callable[[int], object]
) -> None:
    def spelled(row: Row, n: int) -> Row:
        return with_args(row, correlation=spelling(n + 1)) if row["cat"] != "cpu_op" else row

    assert said(tmp_path, changed(healthy(), spelled)) == well()


@pytest.mark.parametrize("args", [None, {}, {"correlation": 0}])
def test_launches_that_name_no_record_are_not_lost_where_there_are_records(
    tmp_path: Path, args: dict[str, int] | None
) -> None:
    text = changed(healthy(), lambda r, _: r | {"args": args} if r["cat"] == "cuda_runtime" else r)
    unknown = replace(well(unlinked_kernels=4), gaps_ns={"unknown": 150_000})
    assert said(tmp_path, text) == unknown
    bare = changed(
        lacking(healthy(), 0, 1, 2, 3),
        lambda r, _: r | {"args": args} if r["cat"] == "cuda_runtime" else r,
    )
    assert said(tmp_path, bare).codes["gpu_records_lost"] == 4


def test_kernels_that_share_an_ordinary_launch_stand_for_the_launches_without_one(
    tmp_path: Path,
) -> None:
    text = changed(
        healthy(), lambda r, _: with_args(r, correlation=1) if r["cat"] == "kernel" else r
    )
    assert said(tmp_path, text).codes == {}


@pytest.mark.parametrize(
    ("lost", "codes"),
    [
        ([0], {"gpu_records_lost": 1}),
        ([3, 4, 9], {"gpu_records_lost": 3}),
        (range(10), {"gpu_records_lost": 10}),
        (range(20, 30), {"buffer_cap": 10}),
        (range(21, 30), {"gpu_records_lost": 9}),
        ([0, *range(18, 30)], {"gpu_records_lost": 13}),
        (range(30), {"gpu_records_lost": 30, "no_gpu_activity": None}),
    ],
)
@pytest.mark.parametrize("name", ["cudaLaunchKernel", "cuLaunchKernelEx", "hipGraphLaunch"])
def test_lost_records_are_counted_wherever_they_are_missing(
    tmp_path: Path, lost: list[int], codes: dict[str, int], name: str
) -> None:
    rows = [r | {"name": name} if r["cat"] == "cuda_runtime" else r for r in healthy(30)]
    assert said(tmp_path, trace_text(lacking(rows, *lost))).codes == codes


def test_each_rank_loses_its_own_records(tmp_path: Path) -> None:
    texts = [trace_text(lacking(healthy(), *lost), distributedInfo={"rank": rank})
             for rank, lost in enumerate([(), (1, 2), (0,)])]  # fmt: skip
    assert said(tmp_path, *texts).codes == {"gpu_records_lost": 3}


@pytest.mark.parametrize(
    ("prefix", "call"),
    [("cuda", "cudaLaunchKernel"), ("hip", "hipLaunchKernel"), ("cu", "cuLaunchKernelEx")],
)
@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("ended", [True, False])
def test_what_a_capture_records_is_not_lost_even_where_the_recording_cuts_it(
    tmp_path: Path, prefix: str, call: str, begun: bool, ended: bool
) -> None:
    begin = [launch(0, 90, f"{prefix}StreamBeginCapture")] if begun else []
    end = [launch(20, 92, f"{prefix}StreamEndCapture_v10000")] if ended else []
    capture = [*begin, launch(10, 91, call), *end]
    if not begun and not ended:
        capture = []
    # Without its end, a capture holds all that follows; so it stands at the end of the recording.
    rows = [*capture, *healthy(begin=100)] if ended else [*healthy(), *later(capture)]
    assert said(tmp_path, trace_text(rows)) == well()


def later(rows: list[Row]) -> list[Row]:
    return [r | {"ts": f"{float(str(r['ts'])) + 5000:.3f}"} for r in rows]


@pytest.mark.parametrize("carrier", ["outer", "inner"])
def test_of_nested_calls_for_one_launch_the_other_is_not_lost(tmp_path: Path, carrier: str) -> None:
    outer = launch(1000, 50, "urEnqueueKernelLaunch") | {"dur": "9.000"}
    inner = launch(1002, 51, "zeCommandListAppendLaunchKernel")
    work = kernel(1100, 50 if carrier == "outer" else 51)
    assert said(tmp_path, trace_text([*healthy(), outer, inner, work])).codes == {}


@pytest.mark.parametrize("share", [1, 3, 4])
def test_external_ids_are_distrusted_only_where_nearly_all_repeat_the_correlation(
    tmp_path: Path, share: int
) -> None:
    def repeating(row: Row, n: int) -> Row:
        if row["cat"] == "cpu_op":
            return with_args(row, **{"External id": 100 + n}) | {"name": f"aten::op{n}"}
        own = n + 1 if n < share else 100 + n
        return with_args(row, **{"External id": own}) if row["cat"] == "kernel" else row

    inputs = looked_at(tmp_path, changed(healthy(), repeating))
    codes = {d.code for d in inputs.summary.diagnostics}
    assert ("untrusted_external_id" in codes) == (share == 4)
    assert operators(inputs) == [f"aten::op{n}" for n in range(4)]


def test_rows_that_are_no_gpu_work_change_no_number(tmp_path: Path) -> None:
    gpu = {"device": 0, "stream": 7, "correlation": 9}
    rows = [
        event(cat, name, "60.000", "40.000", pid=0, tid=7, args=gpu)
        for cat, name in [
            ("cuda_sync", "Stream Sync"), ("cuda_event", "cudaEventRecord"),
            ("gpu_user_annotation", "ProfilerStep#1"), ("hardware_counters", ""),
            ("cpu_op", "triton_poi_fused_0"), ("collective_comm", "allreduce"), ("ac2g", "ac2g"),
        ]
    ]  # fmt: skip
    rows += [kernel(60, 5) | {"ph": ph} for ph in ("B", "E", "i", "s", "f", "C", "b", "e", "N")]
    assert said(tmp_path, trace_text([*healthy(), *rows])) == well()


@pytest.mark.parametrize(
    ("pieces", "profiled"),
    [([(60, "24.000")], 0), ([(60, "25.000")], 50_000), ([(60, "13.000"), (80, "12.000")], 50_000),
     ([(60, "13.000")] * 2, 0), ([(0, "400.000")], 150_000), ([(70, "-3.000")], 0)],
)  # fmt: skip
def test_a_gap_is_the_profilers_where_its_records_cover_half_of_it(
    tmp_path: Path, pieces: list[tuple[int, str]], profiled: int
) -> None:
    rows = [event("overhead", "Activity Buffer Request", f"{at}.000", dur, pid=-1, tid=0)
            for at, dur in pieces]  # fmt: skip
    found = said(tmp_path, trace_text([*healthy(), *rows]))
    causes = {"launch": 150_000 - profiled, "profiler": profiled}
    assert found.gaps_ns == {k: v for k, v in causes.items() if v}
    assert found.codes == ({"profiler_overhead": profiled // 50_000} if profiled else {})


@pytest.mark.parametrize(
    ("name", "cause"),
    [("cudaDeviceSynchronize", "sync"), ("cuCtxSynchronize", "sync"), ("cudaMemcpy", "sync"),
     ("hipStreamSynchronize", "sync"), ("hipMemcpyWithStream", "sync"), ("hipMemcpy", "sync"),
     ("musaDeviceSynchronize", "sync"), ("zeEventHostSynchronize", "sync"),
     ("urQueueFinish", "sync"), ("cudaMemcpyAsync", "launch"), ("cudaStreamWaitEvent", "launch"),
     ("cudaMalloc", "launch")],
)  # fmt: skip
def test_a_gap_under_a_call_that_waits_is_the_hosts_waiting(
    tmp_path: Path, name: str, cause: str
) -> None:
    waits = event("cuda_runtime", name, "62.000", "40.000", args={"correlation": 77})
    found = said(tmp_path, trace_text([*healthy(2), waits]))
    assert found == replace(well(2), gaps_ns={cause: 50_000})


def test_kernels_that_overlap_are_all_kept(tmp_path: Path) -> None:
    rows = [*healthy(1), launch(9, 8), kernel(58, 8, 10), launch(10, 9), kernel(20, 9, 5, stream=8)]
    assert said(tmp_path, trace_text(rows)) == Said(
        3, 58_000, 58_000, {}, {"overlapping_kernels": 2}
    )
