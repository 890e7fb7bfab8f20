"""Operators whose place their types or several of their sizes tell, each in a small pass."""

import msgspec
import pytest

from tests.decoder import FLOAT, HALF, LIST, LONG, NUMBER, Call, Told, row
from tests.test_role_kinds import (
    CHOSEN,
    DECODE,
    EXPERTS,
    HEADS,
    HIDDEN,
    INNER,
    KV,
    MIXTURE,
    MODEL,
    PREFILL,
    SIZE,
    USUAL,
    Block,
    Part,
    Shape,
    epilogue,
    experts,
    found,
    half,
    matrix,
    norm,
    prologue,
    rope,
    whole_pass,
)
from whichwall.analyze.roles.attribute import attribute
from whichwall.schemas import roles as r
from whichwall.schemas.activities import Activities
from whichwall.schemas.kernels import MEMCPY
from whichwall.schemas.model import Model
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import frame

TRUTH, WIDE_NUMBER = "bool", "double"
shapes = pytest.mark.parametrize("shape", [DECODE, PREFILL], ids=["decode", "prefill"])


def check(blocks: tuple[Block, ...], shape: Shape, model: Model) -> None:
    calls, expected = whole_pass(blocks, shape)
    assert found(calls, model) == expected


@shapes
def test_a_cut_at_zero_inside_the_mlp_is_its_activation(shape: Shape) -> None:
    def cut_off(shape: Shape) -> list[Part]:
        return [
            (matrix(shape, HIDDEN, INNER, bias=True), r.GATE_UP_PROJ),
            (("aten::clamp_min", [[shape.rows, INNER], []], [HALF, NUMBER]), r.ACTIVATION),
            (matrix(shape, INNER, HIDDEN, bias=True), r.DOWN_PROJ),
        ]

    check((*USUAL[:8], cut_off), shape, MODEL)


@shapes
def test_norms_over_all_heads_are_norms_where_experts_are_as_wide_as_queries(shape: Shape) -> None:
    def normed(shape: Shape) -> list[Part]:
        wide = [shape.batch, shape.new, HIDDEN]
        back: Part = (("aten::copy_", [wide, wide], [HALF, FLOAT]), r.NORM)
        *first, last = norm(shape)
        square: Part = (matrix(shape, HIDDEN, HIDDEN), r.QKV_PROJ)
        return [square, *first, back, last, square, *first, back, last, square]

    model = msgspec.structs.replace(
        MIXTURE, kv_heads=HEADS, expert_intermediate=HIDDEN // 2, qk_norm="full"
    )

    def narrow(shape: Shape) -> list[Part]:
        return experts(shape, HIDDEN // 2)

    def attention(shape: Shape) -> list[Part]:
        heads = [shape.batch, HEADS, shape.seen, SIZE]
        queries = [shape.batch, HEADS, shape.new, SIZE]
        return [(half("_flash_attention_forward", queries, heads, heads), r.ATTENTION)]

    def turned(shape: Shape) -> list[Part]:
        return rope(shape)[:5] * 2

    def grown(shape: Shape) -> list[Part]:
        new = [shape.batch, HEADS, shape.new, SIZE]
        old: list[int] = [0] if shape.new > 1 else [shape.batch, HEADS, shape.seen - 1, SIZE]
        return [(("aten::cat", [[old, new], []], [LIST, NUMBER]), r.KV_CACHE)] * 2

    check((norm, normed, turned, grown, attention, *USUAL[5:8], narrow), shape, model)


@shapes
def test_rows_widened_ahead_of_the_router_are_its_own(shape: Shape) -> None:
    def widened(shape: Shape) -> list[Part]:
        def wide(rows: int) -> Part:
            return ("aten::copy_", [[rows, HIDDEN], [rows, HIDDEN]], [FLOAT, HALF]), r.ROUTER

        return [wide(shape.rows), wide(EXPERTS), *experts(shape)]

    check((*USUAL[:8], widened), shape, MIXTURE)


def test_as_many_choices_of_experts_as_the_hidden_width_stay_with_the_experts() -> None:
    shape = Shape(new=HIDDEN // CHOSEN)

    def chosen(shape: Shape) -> list[Part]:
        own = experts(shape)
        weights: Part = (("aten::index", [[HIDDEN], [HIDDEN]], [HALF, LONG]), r.EXPERTS)
        return [*own[:5], weights, *own[5:]]

    check((*USUAL[:8], chosen), shape, MIXTURE)


def test_truths_are_a_masks_and_shifted_positions_the_embeddings() -> None:
    tokens = [1, 40]
    positions = msgspec.structs.replace(MODEL, positions=1026)
    before: list[Part] = [
        (("aten::copy_", [tokens, tokens, []], [TRUTH, FLOAT, NUMBER]), r.MASK),
        (("aten::copy_", [tokens, tokens, []], [LONG, TRUTH, NUMBER]), r.MASK),
        (("aten::sum", [tokens, []], [TRUTH, "ScalarList"]), r.MASK),
        (("aten::eq", [[], []], [LONG, NUMBER]), r.MASK),
        (("aten::_local_scalar_dense", [[]], [TRUTH]), r.MASK),
        (("aten::add", [tokens, [], []], [LONG, LONG, NUMBER]), r.EMBEDDING),
        (half("index_select", [1026, HIDDEN], [], [40]), r.EMBEDDING),
        (half("add", [1, 40, HIDDEN], [1, 40, HIDDEN]), r.EMBEDDING),
    ]

    def learned(shape: Shape) -> list[Part]:
        return [*prologue(shape), *before]

    calls, expected = whole_pass(USUAL, PREFILL, before=learned)
    assert found(calls, positions) == expected


def test_a_pair_of_angles_made_at_once_is_the_rotations() -> None:
    half_size = [1, 1, SIZE // 2]
    polar: Part = (("aten::polar", [half_size, half_size, [0]], [FLOAT, FLOAT, "complex"]), r.ROPE)

    def turned(shape: Shape) -> list[Part]:
        return [*prologue(shape), polar]

    calls, expected = whole_pass(USUAL, DECODE, before=turned)
    assert found(calls, MODEL) == expected


@shapes
def test_attention_of_one_call_that_runs_step_by_step_is_told_apart(shape: Shape) -> None:
    queries, keys = [1, HEADS, shape.new, SIZE], [1, KV, shape.seen, SIZE]
    scores, mask = [1, HEADS, shape.new, shape.seen], [1, 1, shape.new, shape.seen]
    turned = [1, KV, SIZE, shape.seen]

    def steps(shape: Shape) -> list[Part]:
        return [
            (("aten::fill_", [[], []], [HALF, NUMBER]), r.MASK),
            (("aten::where", [mask, [], []], [TRUTH, HALF, HALF]), r.MASK),
            (("aten::copy_", [queries, queries], [FLOAT, HALF]), r.ATTENTION),
            (("aten::copy_", [keys, keys], [FLOAT, HALF]), r.ATTENTION),
            (("aten::copy_", [keys, keys], [FLOAT, HALF]), r.ATTENTION),
            (("aten::mul", [queries, []], [FLOAT, WIDE_NUMBER]), r.ATTENTION),
            (("aten::mul", [turned, []], [FLOAT, WIDE_NUMBER]), r.ATTENTION),
            (half("bmm", [HEADS, shape.new, SIZE], [HEADS, SIZE, shape.seen]), r.ATTENTION),
            (("aten::add_", [scores, mask, []], [FLOAT, HALF, NUMBER]), r.SOFTMAX),
            (("aten::_softmax", [scores, [], []], [FLOAT, NUMBER, NUMBER]), r.SOFTMAX),
            (("aten::isneginf", [scores], [FLOAT]), r.SOFTMAX),
            (("aten::all", [scores, [], []], [TRUTH, NUMBER, NUMBER]), r.SOFTMAX),
            (("aten::fill_", [[], []], [FLOAT, NUMBER]), r.SOFTMAX),
            (("aten::where", [scores, [], scores], [TRUTH, FLOAT, FLOAT]), r.SOFTMAX),
            (half("bmm", [HEADS, shape.new, shape.seen], [HEADS, shape.seen, SIZE]), r.ATTENTION),
        ]

    check((*USUAL[:4], steps, *USUAL[5:]), shape, MODEL)


def copied(calls: list[Call], at: int, crossing: str) -> list[Told]:
    """Return the roles of calls, of which one is a copy across the bus."""
    across = {Activities.kind: MEMCPY, Activities.name: f"Memcpy {crossing} (Pageable -> Device)"}
    rows = [row(i, call, **(across if i == at else {})) for i, call in enumerate(calls)]
    return attribute(frame(Activities, rows), MODEL).select(Roles.role, Roles.layer).rows()


@pytest.mark.parametrize(("size", "role"), [(1, r.KV_CACHE), (5, r.MEMORY)])
def test_one_number_that_crosses_the_bus_belongs_where_it_is_used(size: int, role: str) -> None:
    index: Call = ("aten::copy_", [[size], [size], []], [LONG, LONG, NUMBER])
    picked = half("index", [1, KV, 1, SIZE], [])

    def one_product(shape: Shape) -> list[Part]:
        whole = (matrix(shape, HIDDEN, (HEADS + 2 * KV) * SIZE), r.QKV_PROJ)
        return [whole, (index, role), (picked, r.KV_CACHE)]

    calls, expected = whole_pass((norm, one_product, *USUAL[2:]), DECODE)
    at = calls.index(index)
    second = calls.index(index, at + 1)
    del calls[second], expected[second]
    assert copied(calls, at, "HtoD") == expected


def test_the_token_that_the_host_waits_for_is_sampled() -> None:
    read: Call = ("aten::_local_scalar_dense", [[]], [LONG])

    def waits(shape: Shape) -> list[Part]:
        return [*epilogue(shape), (read, r.SAMPLING)]

    calls, expected = whole_pass(USUAL, DECODE, after=waits)
    assert copied(calls, len(calls) - 1, "DtoH") == expected
