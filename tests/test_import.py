import gzip
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frames import BASE_NS, Row, event, gpu_event, launch_event, native, trace_text
from tests.properties import PROPERTY, SHORT_PROPERTY
from whichwall.collect.importer import import_run
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import InputError, UsageError
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import Manifest
from whichwall.schemas.ops import Ops
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.run import Run, open_run

EVENTS = [
    event("cpu_op", "aten::mm", "1.000", "20.000", args={"External id": 1, "Input Dims": [[1, 2]]}),
    launch_event("2.000", "3.000", 1),
    gpu_event("gemm", "6.000", "2.500", 1),
    event("cpu_op", "aten::add", "30.000", "4.000", args={"External id": 2}),
    gpu_event("add", "34.000", "1.500", 2),
]
GPU_ROWS = [("add", BASE_NS + 34_000, 1500, 2), ("gemm", BASE_NS + 6_000, 2500, 1)]


def imported(text: bytes, folder: Path, name: str = "t.json") -> Run:
    path = folder / name
    path.write_bytes(text)
    return open_run(import_run([path], folder / "run", overwrite=True))


def gpu_rows(run: Run) -> list[tuple[object, ...]]:
    columns = [Kernels.name, Kernels.start_ns, Kernels.dur_ns, Kernels.correlation]
    return sorted(run.kernels.select(columns).collect().rows())


def said(manifest: Manifest) -> dict[str, int | None]:
    return {d.code: d.count for d in manifest.diagnostics}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("import")


@PROPERTY
@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from([0, 1, 3]))
def test_a_broken_event_of_the_host_costs_no_gpu_row(
    folder: Path, seed: int, many: int, broken: int
) -> None:
    random_bytes = random.Random(seed)
    text = bytearray(trace_text(EVENTS))
    raw = native(EVENTS[broken]).strip().encode()
    begin = text.index(raw)
    for _ in range(many):
        text[random_bytes.randrange(begin, begin + len(raw))] = random_bytes.randrange(256)
    kept = gpu_rows(imported(bytes(text), folder))
    # By chance the event may have become a GPU row itself.
    assert [row for row in kept if row in GPU_ROWS] == GPU_ROWS


@SHORT_PROPERTY
@given(st.floats(0, 1), st.booleans())
def test_a_cut_file_is_read_as_far_as_it_goes_or_refused(
    folder: Path, share: float, packed: bool
) -> None:
    text = trace_text(EVENTS)
    text = gzip.compress(text) if packed else text
    try:
        run = imported(text[: int(share * len(text))], folder)
    except InputError:
        return
    assert set(gpu_rows(run)) <= set(GPU_ROWS)
    assert share == 1 or "truncated" in said(run.manifest)


def test_each_category_has_its_table_and_the_rest_is_counted(tmp_path: Path) -> None:
    gpu = {"device": 0, "stream": 7, "correlation": 9}
    rows: list[Row] = [
        event("kernel", "k", 1.5, 1, args=gpu),
        event("gpu_memcpy", "c", 2, 1, args=gpu | {"bytes": 64}),
        event("gpu_memset", "s", 3, 1, args=gpu),
        event("cuda_runtime", "cudaLaunchKernel", 1, 1, args={"correlation": 9}),
        event("cuda_driver", "cuLaunchKernel", 1, 1, args={"correlation": 10}),
        event(
            "cpu_op", "aten::mm", 1, 5, args={"Input Dims": [[1, 2], []], "Input type": ["f", ""]}
        ),
        event("user_annotation", "ProfilerStep#1", 0, 9),
        event("gpu_user_annotation", "ProfilerStep#1", 1, 5, pid=0, tid=7),
        event("python_function", "nn.Module: Linear_0", 1, 5),
        event("python_function", "linear.py(1): forward", 1, 5),
        event("overhead", "Activity Buffer Request", 4, 2, pid=-1, tid=0),
        event("Trace", "PyTorch Profiler (0)", 0, 20, pid="Spans", tid="PyTorch Profiler"),
        event("cuda_sync", "Stream Sync", 2, 5, pid=0, tid=7, args=gpu),
        event("ac2g", "ac2g", 1, 0, ph="s"),
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
    ]
    run = imported(trace_text(rows), tmp_path)
    assert run.kernels.select(Kernels.kind, Kernels.size_bytes).collect().rows() == [
        ("kernel", None), ("memcpy", 64), ("memset", None),
    ]  # fmt: skip
    assert run.launches.select(Launches.api, Launches.correlation).collect().rows() == [
        ("runtime", 9), ("driver", 10),
    ]  # fmt: skip
    assert run.ops.select(Ops.name, Ops.input_dims, Ops.input_types).collect().rows() == [
        ("aten::mm", "[[1, 2], []]", '["f", ""]'),
    ]  # fmt: skip
    columns = [Ranges.kind, Ranges.name, Ranges.tid, Ranges.stream]
    assert run.ranges.select(columns).collect().rows() == [
        ("annotation", "ProfilerStep#1", 1, None), ("module", "nn.Module: Linear_0", 1, None),
        ("gpu_annotation", "ProfilerStep#1", None, 7),
    ]  # fmt: skip
    assert run.overheads.select(Overheads.start_ns, Overheads.dur_ns).collect().rows() == [
        (BASE_NS + 4000, 2000),
    ]  # fmt: skip
    (rank,) = run.manifest.ranks
    assert (rank.events, rank.python_frames_dropped, rank.devices) == (len(rows), 1, [0])
    assert (rank.recording_start_ns, rank.recording_end_ns) == (BASE_NS, BASE_NS + 20_000)
    assert (rank.has_shapes, rank.resolution_ns, rank.time_origin) == (True, 1, "epoch")


def test_an_event_without_a_readable_time_is_left_out_and_counted(tmp_path: Path) -> None:
    rows = [*EVENTS, event("kernel", "when", "soon", 1), event("kernel", "long", 1, None)]
    run = imported(trace_text(rows), tmp_path)
    assert gpu_rows(run) == GPU_ROWS
    assert said(run.manifest) == {"dropped_events": 2}


def test_times_without_a_base_are_of_unknown_origin_and_kept_as_they_are(tmp_path: Path) -> None:
    run = imported(trace_text(EVENTS).replace(b"baseTimeNanoseconds", b"base"), tmp_path)
    assert gpu_rows(run)[0] == ("add", 34_000, 1500, 2)
    assert said(run.manifest) == {"unknown_time_origin": None}
    assert run.manifest.ranks[0].time_origin == "unknown"


def test_whole_microseconds_since_the_epoch_need_no_base(tmp_path: Path) -> None:
    rows = [gpu_event("k", BASE_NS // 1000 + 5, 2, 1)]
    run = imported(trace_text(rows).replace(b"baseTimeNanoseconds", b"base"), tmp_path)
    assert gpu_rows(run) == [("k", BASE_NS + 5000, 2000, 1)]
    assert said(run.manifest) == {"integer_microseconds": None}
    assert (run.manifest.ranks[0].time_origin, run.manifest.ranks[0].resolution_ns) == (
        "epoch",
        1000,
    )


@pytest.mark.parametrize(
    ("names", "ranks", "codes"),
    [
        (["a.rank1.json", "a.rank0.json"], [1, 0], {}),
        (["rank_07.json"], [7], {}),
        (["one.json"], [0], {}),
        (["one.json", "two.json"], [0, 1], {"missing_rank": 2}),
        (["one.json", "two_rank0.json"], [1, 0], {"missing_rank": 1}),
    ],
)
def test_a_rank_is_that_of_the_files_name_or_its_place(
    tmp_path: Path, names: list[str], ranks: list[int], codes: dict[str, int | None]
) -> None:
    files = []
    for i, name in enumerate(names):
        files.append(tmp_path / name)
        files[-1].write_bytes(trace_text([gpu_event(f"from {name}", f"{i + 1}.000", "0.500", 1)]))
    run = open_run(import_run(files, tmp_path / "run"))
    found = run.kernels.select(Kernels.rank, Kernels.name).collect().rows()
    assert sorted(found) == sorted(
        (rank, f"from {name}") for rank, name in zip(ranks, names, strict=True)
    )
    assert said(run.manifest) == codes
    assert run.manifest.command == " ".join(["whichwall", "import", *names])


def test_two_files_of_one_rank_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    files = [tmp_path / "a" / "rank0.json", tmp_path / "b" / "rank0.json"]
    for path in files:
        path.parent.mkdir()
        path.write_bytes(trace_text(EVENTS))
    with pytest.raises(UsageError, match=r"rank0\.json, rank0\.json: all say rank 0"):
        import_run(files, tmp_path / "run")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: No such file"):
        import_run([tmp_path / "none.json"], tmp_path / "run")
    with pytest.raises(InputError, match="Is a directory"):
        import_run([tmp_path], tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", [b'[{"name": "a"}, {"name": "b"}]', b'{"traceEvents": [{}, {}]}'])
def test_objects_that_are_no_events_are_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(InputError, match=r"t\.json: holds 2 objects and no event with a phase"):
        imported(text, tmp_path)


def test_a_second_file_that_is_no_trace_leaves_no_half_run(tmp_path: Path) -> None:
    good, bad = tmp_path / "rank0.json", tmp_path / "rank1.json"
    good.write_bytes(trace_text(EVENTS))
    bad.write_bytes(b"{}")
    with pytest.raises(InputError, match=r"rank1\.json: no traceEvents found"):
        import_run([good, bad], tmp_path / "run")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rank0.json", "rank1.json"]


def test_what_was_mended_is_counted_once(tmp_path: Path) -> None:
    text = trace_text([*EVENTS, event("cpu_op", "a\x01b", "1.000", "WRONG")])
    text = text.replace(b'"WRONG"', b"N/A").replace(b"\\u0001", b"\x01")
    run = imported(text, tmp_path)
    # The control byte and the N/A are mended; without a duration the row is left out.
    assert [d for d in run.manifest.diagnostics if d.code == "repaired_json"] == [
        Diagnostic(
            "repaired_json", "info", 2, "t.json: places of broken JSON were mended or passed over"
        )
    ]
    assert said(run.manifest)["dropped_events"] == 1
