"""Traces of other origins: devices, threads, spellings and the steps of engines."""

from pathlib import Path

import pytest

from tests.frames import Row, event, trace_text
from tests.wild import Said, healthy, looked_at, op, operators, said, well
from whichwall.analyze.roles.operators import read_operator
from whichwall.schemas.steps import Steps

TWO_DEVICES = Said(4, [100_000] * 2, [150_000] * 2, [{"launch": 50_000}] * 2, {})
BARE = {"External id": 1, "Input Dims": [[4, 4]], "Input type": ["float"]}


def without(row: Row, *keys: str) -> Row:
    args = row["args"]
    assert isinstance(args, dict)
    return row | {"args": {k: v for k, v in args.items() if k not in keys}}


def of_kernels(rows: list[Row], **fields: object) -> list[Row]:
    return [r | fields if r["cat"] == "kernel" else r for r in rows]


def test_devices_of_one_file_are_never_mixed(tmp_path: Path) -> None:
    apart = [*healthy(2), *healthy(2, begin=1000, first=20, device=3, stream=9)]
    at_once = [*healthy(2), *healthy(2, first=20, device=1)]
    assert said(tmp_path, trace_text(apart)) == TWO_DEVICES
    assert said(tmp_path, trace_text(at_once)) == TWO_DEVICES


@pytest.mark.parametrize(
    ("pid", "device"),
    [(2, 2), ("2", 2), (2.0, 2), ("GPU 2", 2), ("cuda:2", 2), ("[TP01-DP00] 2", 2), (-1, -1),
     ("nonsense", None), (None, None), (2**40, None)],
)  # fmt: skip
def test_without_an_argument_the_device_is_the_rows_own_number(
    tmp_path: Path, pid: object, device: int | None
) -> None:
    rows = [without(r, "device", "stream") for r in of_kernels(healthy(), pid=pid, tid="stream 7")]
    inputs = looked_at(tmp_path, trace_text(rows))
    assert [d.device for d in inputs.summary.devices] == [device]
    assert said(tmp_path, trace_text(rows)) == well()


@pytest.mark.parametrize("tid", ["stream 7", "7", 7.0, -7, 2**63, None, "stream"])
def test_any_stream_will_do(tmp_path: Path, tid: object) -> None:
    rows = [without(r, "stream") for r in of_kernels(healthy(), tid=tid)]
    assert said(tmp_path, trace_text(rows)) == well()


@pytest.mark.parametrize("tid", [-1382190336, "1382", 1382.0, "thread 12 (python)", None, ""])
def test_containment_works_on_any_spelling_of_a_thread(tmp_path: Path, tid: object) -> None:
    rows = [
        without(r, "External id") | ({"tid": tid} if r["cat"] != "kernel" else {})
        for r in healthy()
    ]
    assert operators(looked_at(tmp_path, trace_text(rows))) == ["aten::mm"] * 4


def test_threads_of_the_same_moment_are_told_apart(tmp_path: Path) -> None:
    rows = [without(r, "External id") for r in healthy()]
    other = [without(op(100 * i, 9, "aten::other"), "External id") | {"tid": 2} for i in range(4)]
    assert operators(looked_at(tmp_path, trace_text([*other, *rows]))) == ["aten::mm"] * 4


def test_categories_of_2021_are_read_like_todays(tmp_path: Path) -> None:
    old = {"kernel": "Kernel", "cuda_runtime": "Runtime", "cpu_op": "Operator"}
    rows = [r | {"cat": old[str(r["cat"])]} for r in healthy()]
    assert said(tmp_path, trace_text(of_kernels(rows, tid="stream 7"))) == well()
    memory = [r | {"cat": "Memcpy"} if r["cat"] == "Kernel" else r for r in rows]
    assert said(tmp_path, trace_text(memory)) == well()


@pytest.mark.parametrize(
    ("first", "second", "steps"),
    [
        ("ProfilerStep#4", "ProfilerStep#5", [(None, None, None)] * 2),
        ("execute_context_1(200)_generation_0(0)", "execute_context_0(0)_generation_1(1)",
         [("prefill", 1, 200), ("decode", 1, 1)]),
        ("execute_context_2(64)_generation_3(3)", "execute_context_0(0)_generation_5(5)",
         [("mixed", 5, 67), ("decode", 5, 5)]),
        ("execute_96_context_1(sq64sk64sqsq4096sqsk4096)_generation_32(sq32sk55)",
         "execute_32_context_0(sq0sk0)_generation_32(sq32sk55086sqsq32)",
         [("mixed", 33, 96), ("decode", 32, 32)]),
        ("step[EXTEND bs=2 toks=640]", "step[DECODE bs=2 toks=2]",
         [("prefill", 2, 640), ("decode", 2, 2)]),
        ("step[toks=7 bs=7 mode=decode]", "step[prefill toks=9]",
         [("decode", 7, 7), ("prefill", None, 9)]),
        ("execute_context_0(0)_generation_1(1)", f"execute_context_1({'9' * 30})_generation_0(0)",
         [("decode", 1, 1)]),
        ("step[DECODE bs=8]", f"step[DECODE bs={'9' * 30}]",
         [("decode", 8, 8), ("decode", None, None)]),
    ],
)  # fmt: skip
def test_steps_of_engines_have_phase_batch_and_tokens(
    tmp_path: Path, first: str, second: str, steps: list[tuple[object, ...]]
) -> None:
    marks = [event("user_annotation", first, "0.000", "190.000"),
             event("user_annotation", second, "200.000", "190.000")]  # fmt: skip
    inputs = looked_at(tmp_path, trace_text([*marks, *healthy()]))
    assert inputs.steps.select(Steps.phase, Steps.batch, Steps.tokens).rows() == steps


def a_pass(begin: int, first: int) -> list[Row]:
    """Return a pass of twelve kernels, of which only one looks tokens up and one picks them."""
    names = ["indexSelectLargeIndex", *(f"{k}_kernel" for k in ("gemm", "norm", "attn", "add") * 2),
             "gemm_kernel", "norm_kernel", "argmax_kernel"]  # fmt: skip
    rows = healthy(len(names), begin, first)
    for row, name in zip([r for r in rows if r["cat"] == "kernel"], names, strict=True):
        row["name"] = name
    return rows


def test_without_annotations_steps_are_where_the_kernels_repeat(tmp_path: Path) -> None:
    rows = [row for i in range(3) for row in a_pass(1200 * i, 100 * i + 1)]
    inputs = looked_at(tmp_path, trace_text(rows))
    assert inputs.steps.select(Steps.found_by, Steps.activities).rows() == [("repetition", 12)] * 3


def test_python_frames_nested_or_crossing_change_nothing(tmp_path: Path) -> None:
    frames = [
        event("python_function", f"f{i}.py({i}): run", f"{i}.000", f"{400 - 2 * i}.000",
              args={"Python id": i, "Python parent id": i - 1 if i else None})
        for i in range(150)
    ] + [event("python_function", "nn.Module: Linear_0", "10.000", "900.000")]  # fmt: skip
    assert said(tmp_path, trace_text([*frames, *healthy(), *frames[::-1]])) == well()


@pytest.mark.parametrize(
    ("dims", "shapes"),
    [
        ("[[1,2],[2,3],[]]", ((1, 2), (2, 3))),
        ("[[[2,3],[2,3]],[]]", ((2, 3), (2, 3))),
        ("[[1,2],[2,3,[]]]", ((1, 2),)),
        ("[[1,null],[2.5],[true],[-1],[3]]", ((3,),)),
        ("[[[1,[2]]],[4]]", ((4,),)),
        (f"[[{10**400}],[4]]", ((4,),)),
        ("[" * 5000, ()),
        ('{"a":1}', ()),
    ],
)
def test_shapes_that_are_none_are_left_out(dims: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    assert read_operator("aten::mm", dims, None).shapes == shapes
