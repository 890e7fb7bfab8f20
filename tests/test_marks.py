import polars as pl
import pytest

from tests.frames import Row, annotation, table
from whichwall.analyze.marks import OURS, PROFILER, SGLANG, VLLM, is_engine, marks
from whichwall.schemas.activities import Activities
from whichwall.schemas.marks import MIXED, Marks
from whichwall.schemas.ranges import GPU_ANNOTATION, Ranges

DECODE, PREFILL = "decode", "prefill"


def names(*rows: Row) -> list[tuple[int, str]]:
    return marks(table(Ranges, *rows)).select(Marks.step, Marks.name).rows()


@pytest.mark.parametrize(
    ("name", "family", "phase", "batch", "tokens"),
    [
        ("whichwall::decode#7", OURS, DECODE, None, None),
        ("whichwall::prefill#0", OURS, PREFILL, None, None),
        ("ProfilerStep#12", PROFILER, None, None, None),
        ("execute_context_1(1024)_generation_0(0)", VLLM, PREFILL, 1, 1024),
        ("execute_context_0(0)_generation_8(8)", VLLM, DECODE, 8, 8),
        ("execute_context_2(512)_generation_3(3)", VLLM, MIXED, 5, 515),
        ("execute_context_1(888_788544)_generation_0(0)", VLLM, PREFILL, 1, 888),
        ("execute_context_0(0)_generation_0(0)", VLLM, None, 0, 0),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk5508)", VLLM, DECODE, 32, 32),
        ("execute_516_context_1(sq512sk512)_generation_4(sq4sk99)", VLLM, MIXED, 5, 516),
        ("execute_new_2_cached_0", VLLM, PREFILL, 2, None),
        ("execute_new_1_cached_3", VLLM, None, 4, None),
        ("step[DECODE bs=8 toks=8]", SGLANG, DECODE, 8, 8),
        ("step[decode bs=8]", SGLANG, DECODE, 8, 8),
        ("step[DECODE bs=32 g_sq=32 g_sqsk=50923 g_sk=50923]", SGLANG, DECODE, 32, 32),
        ("step[EXTEND toks=640 bs=2]", SGLANG, PREFILL, 2, 640),
        ("step[EXTEND bs=1 toks=9 c_sqsk=81 c_sk=9]", SGLANG, PREFILL, 1, 9),
        ("step[SPLIT_PREFILL bs=1]", SGLANG, PREFILL, 1, None),
        ("step[mixed bs=5 ext=512 dec=4]", SGLANG, MIXED, 5, 516),
        ("step[MIXED bs=66 c=2 g=64 c_sq=2048 c_sk=9 g_sq=64 g_sk=9]", SGLANG, MIXED, 66, 2112),
        ("step[TARGET_VERIFY bs=4]", SGLANG, None, 4, None),
        ("step[DRAFT_EXTEND_V2 bs=4]", SGLANG, None, 4, None),
        ("step[IDLE]", SGLANG, None, None, None),
    ],
)
def test_a_known_annotation_says_what_its_pass_is(
    name: str, family: str, phase: str | None, batch: int | None, tokens: int | None
) -> None:
    found = marks(table(Ranges, annotation(5, 9, name))).to_dicts()
    assert found == [
        {
            "point": 0, "rank": 0, "step": 0, "name": name, "found_by": "annotation",
            "family": family, "phase": phase, "batch": batch, "tokens": tokens, "begin_ns": 5,
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["aten::mm", "whichwall::warmup", "whichwall::decode#", "ProfilerStep#", "xProfilerStep#1",
     "execute_model", "stepping", "## Call CompiledFxGraph f1 ##", "nccl:all_reduce", ""],
)  # fmt: skip
def test_any_other_annotation_marks_nothing(name: str) -> None:
    assert names(annotation(0, 9, name)) == []


def test_the_projection_onto_the_gpu_marks_nothing() -> None:
    assert names(annotation(0, 9, "ProfilerStep#1", kind=GPU_ANNOTATION)) == []


def test_of_nested_marks_the_outermost_counts() -> None:
    outer, inner = annotation(0, 100, "execute_context_0(0)_generation_1(1)"), "ProfilerStep#"
    assert names(annotation(10, 20, f"{inner}1"), outer, annotation(30, 100, f"{inner}2"),
                 annotation(0, 50, f"{inner}0"), annotation(100, 110, f"{inner}3")) == [
        (0, "execute_context_0(0)_generation_1(1)"), (1, "ProfilerStep#3"),
    ]  # fmt: skip


def test_a_profilers_step_is_the_engines_pass_that_it_holds() -> None:
    engines = "execute_context_0(0)_generation_2(2)"
    rows = [
        annotation(0, 100, "ProfilerStep#1"), annotation(10, 60, engines),
        annotation(15, 50, "step[DECODE bs=2]"), annotation(100, 200, "ProfilerStep#2"),
    ]  # fmt: skip
    found = marks(table(Ranges, *rows))
    assert found.select(Marks.name, Marks.family, Marks.batch, Marks.begin_ns).rows() == [
        (engines, VLLM, 2, 0), ("ProfilerStep#2", PROFILER, None, 100),
    ]  # fmt: skip


def test_a_profilers_step_that_holds_several_passes_is_each_of_them() -> None:
    rows = [
        annotation(0, 100, "ProfilerStep#1"), annotation(10, 30, "step[EXTEND bs=1 toks=7]"),
        annotation(40, 60, "step[DECODE bs=1]"),
    ]  # fmt: skip
    found = marks(table(Ranges, *rows))
    assert found.select(Marks.phase, Marks.tokens, Marks.begin_ns).rows() == [
        (PREFILL, 7, 0), (DECODE, 1, 40),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kernel", "engine"),
    [
        ("execute_context_0(0)_generation_1(1)", "gemm", True),
        ("step[DECODE bs=1]", "gemm", True),
        ("ProfilerStep#1", "gemm", False),
        ("ProfilerStep#1", "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>", True),
        ("ProfilerStep#1", "_compute_slot_mapping_kernel", True),
    ],
)
def test_an_engine_is_known_by_its_marks_else_by_its_paged_cache(
    name: str, kernel: str, engine: bool
) -> None:
    found = marks(table(Ranges, annotation(5, 9, name)))
    assert is_engine(found, pl.Series(Activities.name, [kernel])) is engine


def test_a_mark_inside_another_annotation_of_no_known_kind_counts() -> None:
    assert names(annotation(0, 100, "train"), annotation(10, 20, "ProfilerStep#1")) == [
        (0, "ProfilerStep#1")
    ]


def test_marks_that_cross_are_both_kept() -> None:
    crossing = [annotation(50, 150, "ProfilerStep#2"), annotation(0, 100, "ProfilerStep#1")]
    assert names(*crossing) == [(0, "ProfilerStep#1"), (1, "ProfilerStep#2")]


def test_a_mark_inside_an_earlier_one_counts_for_nothing_even_after_a_shorter_one() -> None:
    rows = [annotation(0, 100, "ProfilerStep#1"), annotation(10, 20, "ProfilerStep#2"),
            annotation(30, 60, "ProfilerStep#3")]  # fmt: skip
    assert names(*rows) == [(0, "ProfilerStep#1")]


def test_two_marks_of_the_same_stretch_are_one() -> None:
    rows = [annotation(0, 10, "ProfilerStep#1"), annotation(0, 10, "ProfilerStep#1")]
    assert names(*rows) == [(0, "ProfilerStep#1")]


def test_steps_are_numbered_in_order_of_time_on_each_rank() -> None:
    rows = [annotation(start, start + 5, f"ProfilerStep#{start}", rank=rank)
            for rank in (1, 0) for start in (20, 10)]  # fmt: skip
    found = marks(table(Ranges, *rows)).select(Marks.rank, Marks.step, Marks.name).rows()
    assert found == [
        (0, 0, "ProfilerStep#10"), (0, 1, "ProfilerStep#20"),
        (1, 0, "ProfilerStep#10"), (1, 1, "ProfilerStep#20"),
    ]  # fmt: skip
