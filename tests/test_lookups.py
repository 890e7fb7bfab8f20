"""What a pass works on is read from the shapes of its token lookup, or not at all."""

import json

import pytest

from tests.frames import Row, op, table
from whichwall.analyze.lookups import with_work
from whichwall.schemas.marks import Marks
from whichwall.schemas.ops import Ops

TYPES = ["c10::BFloat16", "long int", "Scalar"]


def lookup(start: int, end: int, *dims: list[int], types: list[str] | None = None) -> Row:
    """Return the operator that looks up indices (second) in a table (first)."""
    return op(
        start, end, "aten::embedding",
        input_dims=json.dumps([*dims, []]), input_types=json.dumps(types or TYPES),
    )  # fmt: skip


def mark(step: int, begin: int, **more: object) -> Row:
    return {"point": 0, "rank": 0, "step": step, "begin_ns": begin, "found_by": "repetition",
            **more}  # fmt: skip


def work(marks: list[Row], *ops: Row) -> list[tuple[object, ...]]:
    filled = with_work(table(Marks, *marks), table(Ops, *ops))
    return filled.select(Marks.phase, Marks.batch, Marks.tokens).rows()


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([1, 1024], ("prefill", 1, 1024)),
        ([4, 16], ("prefill", 4, 64)),
        ([1, 1], ("decode", 1, 1)),
        ([32, 1], ("decode", 32, 32)),
        ([1], ("decode", 1, 1)),  # laid flat, as engines do
        ([515], (None, None, 515)),
        ([2, 3, 4], (None, None, None)),
        ([], (None, None, None)),
    ],
)
def test_the_indices_of_the_lookup_tell(indices: list[int], expected: tuple[object, ...]) -> None:
    assert work([mark(0, 10)], lookup(5, 20, [1000, 64], indices)) == [expected]


def test_the_first_launch_of_a_pass_may_lie_within_its_lookup() -> None:
    marks = [mark(0, 10), mark(1, 110)]
    ops = [lookup(5, 20, [1000, 64], [1, 7]), lookup(105, 120, [1000, 64], [1, 1])]
    assert work(marks, *ops) == [("prefill", 1, 7), ("decode", 1, 1)]


def test_positions_looked_up_in_a_smaller_table_are_no_second_batch() -> None:
    ops = [lookup(12, 14, [64, 8], [1, 9]), lookup(15, 20, [1000, 8], [2, 9])]
    assert work([mark(0, 10)], *ops) == [("prefill", 2, 18)]


@pytest.mark.parametrize(
    "other",
    [
        lookup(15, 20, [64, 8], [1, 5185]),  # patches of a picture
        lookup(15, 20, [1000, 8], [1, 9]),  # an encoder's and a decoder's tokens
        op(15, 20, "autograd::engine::evaluate_function: MmBackward0"),  # training
    ],
)
def test_lookups_that_do_not_feed_one_decoder_tell_nothing(other: Row) -> None:
    ops = [lookup(12, 14, [1000, 8], [1, 9]), other]
    assert work([mark(0, 10)], *ops) == [(None, None, None)]


def test_what_looks_up_no_integers_in_no_table_tells_nothing() -> None:
    ops = [
        lookup(12, 14, [1000, 8], [1, 9], types=["float", "float", "Scalar"]),
        op(15, 20, "aten::embedding"),
        op(21, 22, "aten::embedding_bag", input_dims="[[9, 9], [1, 9]]"),
    ]
    assert work([mark(0, 10)], *ops) == [(None, None, None)]


def test_an_annotations_word_is_kept() -> None:
    marks = [
        mark(0, 10, found_by="annotation"),
        mark(1, 30, phase="prefill"),  # of an annotation that was split
    ]
    ops = [lookup(12, 14, [1000, 8], [1, 1]), lookup(32, 34, [1000, 8], [1, 1])]
    assert work(marks, *ops) == [(None, None, None), ("prefill", None, None)]


def test_another_ranks_lookups_tell_nothing() -> None:
    ops = [lookup(12, 14, [1000, 8], [1, 1]) | {"rank": 1}]
    assert work([mark(0, 10)], *ops) == [(None, None, None)]
