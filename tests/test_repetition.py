"""Passes without annotations: found where the whole pass repeats, never where its layers do."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.conftest import SHARED
from tests.frames import Row, call, kernel, linked, op, table
from whichwall.analyze.boundaries import boundaries
from whichwall.analyze.repetition import begins_of_passes, find_passes
from whichwall.analyze.steps import assign
from whichwall.analyze.trace import read_trace
from whichwall.collect.importer import import_run
from whichwall.schemas.activities import Activities
from whichwall.schemas.marks import Marks
from whichwall.schemas.ops import Ops
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.run import open_run
from whichwall.schemas.steps import Steps

LOOK, PICK = "indexSelectSmallIndex<BFloat16>", "reduce_kernel<ArgMaxOps>"
PROLOGUE = [LOOK, "elementwise_kernel_with_index", "cos_kernel", "sin_kernel"]
LAYER = [
    "rms_norm_kernel", "nvjet_qkv_8x64", "rope_kernel", "reshape_and_cache", "flash_fwd_kernel",
    "nvjet_out_8x64", "rms_norm_kernel", "nvjet_up_8x64", "silu_kernel", "nvjet_down_8x64",
]  # fmt: skip
EPILOGUE = ["rms_norm_kernel", "nvjet_head_8x64", PICK]
LAYERS = 4
DECODE = PROLOGUE + LAYERS * LAYER + EPILOGUE
# A prefill takes other matrix kernels, builds a mask, and needs no second kernel of a split.
PREFILL = (
    ["vectorized_gather_kernel", "triu_kernel"]
    + PROLOGUE[1:]
    + LAYERS * [n.replace("8x64", "128x256") for n in LAYER]
    + EPILOGUE
)
SPLIT = [part for n in DECODE for part in ([n, "splitKreduce_kernel"] if "down" in n else [n])]
PERIOD = 10


def eager(names: Sequence[str], **place: object) -> tuple[list[Row], list[Row]]:
    """Return a kernel and a launch per name, one after the other."""
    host = {key: value for key, value in place.items() if key != "device"}
    kernels, calls = [], []
    for i, name in enumerate(names):
        start = i * PERIOD
        calls.append(call(start, start + 2, i + 1, **host))
        kernels.append(kernel(start + 5, start + 8, i + 1, name=name, **place))
    return kernels, calls


def replayed(*launches: Sequence[str]) -> tuple[list[Row], list[Row]]:
    """Return the kernels of launches that each replay a graph, or launch the one kernel named."""
    kernels, calls, at = [], [], 0
    for i, names in enumerate(launches):
        graph = {"name": "cudaGraphLaunch"} if len(names) > 1 else {}
        calls.append(call(at, at + 2, i + 1, **graph))
        kernels += [
            kernel(at + 5 + j * PERIOD, at + 8 + j * PERIOD, i + 1, name=name)
            for j, name in enumerate(names)
        ]
        at += len(names) * PERIOD
    return kernels, calls


def begins(*passes: Sequence[str]) -> list[int]:
    """Return which kernel each found pass of these begins with."""
    found = begins_of_passes(linked(*eager([name for one in passes for name in one])))
    return [begin // PERIOD for begin in found]


def starts(*passes: Sequence[str]) -> list[int]:
    """Return which kernel each of these begins with."""
    return [0, *accumulate(len(one) for one in passes[:-1])]


@pytest.mark.parametrize(
    "passes",
    [
        [DECODE] * 2,
        [DECODE] * 16,
        [PREFILL, DECODE],
        [PREFILL] + [DECODE] * 8,
        [PREFILL] * 3,
        3 * ([PREFILL] + [DECODE] * 3),
        [PREFILL, DECODE, SPLIT, SPLIT, DECODE, SPLIT],
    ],
    ids=["two", "many", "prefill", "request", "prefills", "requests", "split-K"],
)
def test_passes_begin_where_the_whole_of_them_repeats(passes: list[list[str]]) -> None:
    assert begins(*passes) == starts(*passes)


@pytest.mark.parametrize("one", [DECODE, PREFILL, SPLIT, LAYERS * LAYER[:2] + EPILOGUE])
def test_the_layers_of_a_single_pass_are_no_passes(one: list[str]) -> None:
    assert begins(one) == []


def test_the_layers_of_a_pass_whose_lookup_and_pick_have_no_telling_names_are_no_passes() -> None:
    unnamed = {LOOK: "a_kernel", PICK: "z_kernel"}
    one = [unnamed.get(name, name) for name in DECODE]
    assert begins(one) == []
    assert begins(one, one, one) == starts(one, one, one)


def test_what_only_runs_every_few_passes_does_not_mark_them_as_one() -> None:
    longer = [*DECODE[:-1], "grow_cache_kernel", PICK]
    passes = 4 * [DECODE, DECODE, DECODE, longer]
    assert begins(*passes) == starts(*passes)


@pytest.mark.parametrize("count", [0, 1, 19, 400])
def test_kernels_that_are_all_different_repeat_nothing(count: int) -> None:
    assert begins([chr(0x4E00 + i) for i in range(count)]) == []


def test_one_kernel_over_and_over_is_no_pass() -> None:
    assert begins(["gemm"] * 500) == []


def test_kernels_in_no_order_repeat_nothing() -> None:
    shuffled = np.random.default_rng(0).permutation(40 * LAYER).tolist()
    assert begins(shuffled) == []


@pytest.mark.parametrize("setup", [1, 30, 500])
def test_what_runs_before_the_first_pass_belongs_to_none(setup: int) -> None:
    passes = [PREFILL] + [DECODE] * 5
    found = begins(["normal_kernel"] * setup, *passes)
    assert found == [setup + at for at in starts(*passes)]


def test_a_recording_that_begins_and_ends_inside_passes_has_those_begun_in_it() -> None:
    names = [name for one in 6 * [DECODE] for name in one]
    for cut in (12, 25, 40):
        expected = [len(DECODE) - cut + i * len(DECODE) for i in range(5)]
        assert begins(names[cut:]) == begins(names[cut:-15]) == expected
    assert begins(PREFILL, *(5 * [DECODE]), DECODE[:-20]) == starts(PREFILL, *(6 * [DECODE]))


def test_each_replay_is_a_pass_with_the_launches_around_it() -> None:
    token = ["Memcpy HtoD", "copy_kernel"]
    one = [[token[0]], [token[1]], DECODE[:-1], [PICK]]
    found = begins_of_passes(linked(*replayed(*(4 * one))))
    assert found == [i * (len(DECODE) + 2) * PERIOD for i in range(4)]


def test_bare_replays_are_passes_and_a_single_one_is_none() -> None:
    assert begins_of_passes(linked(*replayed(DECODE))) == []
    found = begins_of_passes(linked(*replayed(*(3 * [DECODE]))))
    assert found == [i * len(DECODE) * PERIOD for i in range(3)]


def test_a_pass_of_a_replay_per_layer_is_one_pass() -> None:
    pieces = [[LOOK], PROLOGUE[1:], *(LAYERS * [LAYER[:4], [LAYER[4]], LAYER[5:]]), EPILOGUE]
    assert begins_of_passes(linked(*replayed(*pieces))) == []
    found = begins_of_passes(linked(*replayed(*(3 * pieces))))
    assert found == [i * len(DECODE) * PERIOD for i in range(3)]


def test_an_eager_prefill_before_replays_is_a_pass_of_its_own() -> None:
    found = begins_of_passes(linked(*replayed(*([name] for name in PREFILL), *(4 * [DECODE]))))
    assert found == [at * PERIOD for at in starts(PREFILL, *(4 * [DECODE]))]


def test_ranks_and_points_have_passes_of_their_own_and_numbers_from_0() -> None:
    parts = [
        eager(4 * DECODE), eager(2 * DECODE, rank=1), eager(DECODE, rank=2),
        eager(3 * DECODE, point=1),
    ]  # fmt: skip
    kernels, calls = ([row for part in parts for row in part[i]] for i in range(2))
    found = find_passes(linked(kernels, calls), table(Ops))
    assert found.select(Marks.point, Marks.rank, Marks.step).rows() == [
        *((0, 0, i) for i in range(4)), (0, 1, 0), (0, 1, 1), *((1, 0, i) for i in range(3)),
    ]  # fmt: skip
    assert found.select(Marks.name, Marks.found_by, Marks.family).unique().rows() == [
        (None, "repetition", None)
    ]


@pytest.mark.parametrize("shared", [False, True], ids=["the same on each", "one pass over both"])
def test_two_devices_of_a_process_have_one_series_of_passes(*, shared: bool) -> None:
    kernels, calls = eager(3 * DECODE)
    half = len(DECODE) // 2
    if shared:
        kernels = [row | {"device": int(i % len(DECODE) >= half)} for i, row in enumerate(kernels)]
    else:
        kernels += [row | {"device": 1, "correlation": 10_000 + i} for i, row in enumerate(kernels)]
        calls += [
            row | {"start_ns": i * PERIOD + 3, "correlation": 10_000 + i}
            for i, row in enumerate(calls)
        ]
    found = begins_of_passes(linked(kernels, calls))
    assert found == [i * len(DECODE) * PERIOD for i in range(3)]


def test_operators_tell_apart_what_kernels_do_not() -> None:
    names = dict.fromkeys((LOOK, PICK, *PROLOGUE), "elementwise_kernel")
    whole = 3 * DECODE
    kernels, calls = eager([names.get(name, name) for name in whole])
    ops = [op(i * PERIOD, i * PERIOD + 3, f"aten::{name}") for i, name in enumerate(whole)]
    found = begins_of_passes(linked(kernels, calls, ops))
    assert found == [i * len(DECODE) * PERIOD for i in range(3)]


needs_traces = pytest.mark.skipif(
    not (SHARED / "traces").is_dir(), reason="no handed traces: ../shared is absent"
)


@needs_traces
@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("h200/request_eager", [1009, *(8 * [1033])]),
        ("h200/capture_and_replay", 3 * [1228]),
        ("h200/tp2_decode_rank0", 4 * [219]),
        ("h200/tp2_decode_rank1", 4 * [219]),
        ("h200/decode_eager", []),
        ("h200/decode_eager_stack", []),
        ("h200/decode_static_eager", []),
        ("h200/decode_cudagraph", []),
        ("h200/decode_batch32", []),
        ("h200/prefill_eager", []),
        ("h200/decode_compile_default", []),
        ("h200/decode_compile_reduce_overhead", []),
        ("roles/gpt2_eager_decode", []),
        ("roles/mixtral-small_sdpa_prefill", []),
        # Six iterations of training, whose annotations the file holds as operators.
        ("public/kineto/resnet50_num_workers_0/worker0.1623143089861.pt.trace", 6 * [1516]),
        # One annotation over five runs of the model: five convolutions, five argmax.
        ("public/TraceLens/h100/google_owlv2-large-patch14-ensemble__1016001", 5 * [1033]),
    ],
)
def test_real_recordings_have_the_passes_that_were_run(
    tmp_path: Path, file: str, expected: list[int]
) -> None:
    path = SHARED / "traces" / f"{file}.json.gz"
    run = open_run(import_run([path], tmp_path / "run"))
    assert read_trace(run).steps[Steps.activities].to_list() == expected


@needs_traces
@pytest.mark.parametrize(
    "file",
    ["moe32_graph__b1_prefill_decode8", "q05_eager__b1_prefill_decode8",
     "q05_graph__b1_piecewise_prefill256_decode4", "q05_graph__b1_prefill_decode8",
     "q05_graph__b1_vllm_default_opts", "q05_graph__b8_sampling_decode4"],
)  # fmt: skip
def test_an_engines_passes_are_found_without_its_annotations_activity_by_activity(
    tmp_path: Path, file: str
) -> None:
    path = SHARED / "traces" / "vllm" / f"{file}.json.gz"
    run = open_run(import_run([path], tmp_path / "run"))
    trace = read_trace(run)
    unmarked = trace.activities.with_columns(pl.lit(None, pl.Int64).alias(Activities.step))
    found = boundaries(unmarked, table(Ranges), trace.ops).marks
    assert assign(unmarked, found)[Activities.step].equals(trace.activities[Activities.step])
    assert found.height == trace.steps.height
