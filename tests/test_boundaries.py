"""Annotated passes stay as they are; an annotation over several passes is split."""

import polars as pl
import pytest

from tests.frames import Row, annotation, call, kernel, linked, table
from tests.test_repetition import DECODE, PERIOD, eager
from whichwall.analyze.boundaries import Boundaries, boundaries
from whichwall.schemas.marks import Marks
from whichwall.schemas.ops import Ops
from whichwall.schemas.ranges import Ranges

PASS = len(DECODE) * PERIOD
VLLM, SGLANG = "execute_context_0(0)_generation_1(1)", "step[DECODE bs=1 toks=1]"


def found(passes: int, *annotations: Row) -> Boundaries:
    """Return the boundaries of so many equal passes under these annotations."""
    kernels, calls = eager(passes * DECODE)
    return boundaries(linked(kernels, calls), table(Ranges, *annotations), table(Ops))


def seen(of: Boundaries) -> list[tuple[object, ...]]:
    return of.marks.select(Marks.step, Marks.name, Marks.found_by, Marks.begin_ns).rows()


def test_annotations_of_one_pass_each_stay_as_they_are() -> None:
    names = [f"ProfilerStep#{i}" for i in range(3)]
    marked = [annotation(i * PASS, i * PASS + 50, name) for i, name in enumerate(names)]
    of = found(3, *marked)
    assert seen(of) == [(i, name, "annotation", i * PASS) for i, name in enumerate(names)]
    assert of.split == 0


def test_an_annotation_of_several_passes_is_split_and_its_first_pass_begins_with_it() -> None:
    of = found(5, annotation(-7, PASS, "ProfilerStep#4"), annotation(3 * PASS, 5 * PASS, VLLM))
    assert seen(of) == [
        (0, None, "repetition", -7),
        (1, None, "repetition", PASS),
        (2, None, "repetition", 2 * PASS),
        (3, VLLM, "annotation", 3 * PASS),
    ]
    assert of.split == 1


@pytest.mark.parametrize("name", [VLLM, SGLANG])
def test_an_engines_annotation_is_one_pass_whatever_it_holds(name: str) -> None:
    of = found(4, annotation(0, 4 * PASS, name))
    assert (seen(of), of.split) == ([(0, name, "annotation", 0)], 0)


def test_the_passes_of_an_annotation_that_names_its_phase_are_of_that_phase() -> None:
    of = found(2, annotation(0, 2 * PASS, "whichwall::decode#0"))
    assert of.marks.select(Marks.family, Marks.phase, Marks.name).rows() == [
        ("whichwall", "decode", None), ("whichwall", "decode", None),
    ]  # fmt: skip


def test_without_a_known_annotation_passes_are_found_by_repetition() -> None:
    of = found(2, annotation(0, 2 * PASS, "step#0"))
    assert (seen(of), of.split) == (
        [(0, None, "repetition", 0), (1, None, "repetition", PASS)], 0,
    )  # fmt: skip


def test_a_rank_with_annotations_does_not_speak_for_one_without() -> None:
    parts = [eager(DECODE), eager(2 * DECODE, rank=1)]
    kernels, calls = ([row for part in parts for row in part[i]] for i in range(2))
    marked = table(Ranges, annotation(0, 50, "ProfilerStep#0"))
    of = boundaries(linked(kernels, calls), marked, table(Ops))
    assert of.marks.select(Marks.rank, Marks.step, Marks.found_by).rows() == [
        (0, 0, "annotation"), (1, 0, "repetition"), (1, 1, "repetition"),
    ]  # fmt: skip


def test_marks_without_gpu_work_are_kept() -> None:
    of = boundaries(linked([]), table(Ranges, annotation(0, 5, "ProfilerStep#0")), table(Ops))
    assert seen(of) == [(0, "ProfilerStep#0", "annotation", 0)]


def test_no_annotation_and_nothing_that_repeats_is_no_pass() -> None:
    activities = linked([kernel(5, 8, 1)], [call(0, 2, 1)])
    of = boundaries(activities, table(Ranges), table(Ops))
    assert isinstance(of.marks, pl.DataFrame)
    assert (of.marks.height, of.split) == (0, 0)
