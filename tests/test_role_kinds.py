"""The kinds of blocks that decoders are built of: each in a small pass, by model and by shapes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import pytest

from tests.decoder import FLOAT, HALF, LIST, LONG, NUMBER, Call, Told, recording
from whichwall.analyze.roles.attribute import attribute
from whichwall.schemas import roles as r
from whichwall.schemas.model import Model
from whichwall.schemas.roles import Roles

HIDDEN, HEADS, KV, SIZE, INNER, VOCAB, EXPERTS, CHOSEN = 96, 6, 2, 16, 160, 700, 8, 2
LAYERS = 2

MODEL = Model(
    name="toy",
    model_type="toy",
    hidden=HIDDEN,
    intermediate=INNER,
    layers=LAYERS,
    heads=HEADS,
    kv_heads=KV,
    head_dim=SIZE,
    vocab=VOCAB,
)
Part = tuple[Call, str]
Block = Callable[["Shape"], list[Part]]


@dataclass(frozen=True)
class Shape:
    """How many sequences, new tokens and tokens seen."""

    batch: int = 1
    new: int = 1
    seen: int = 40

    @property
    def rows(self) -> int:
        return self.batch * self.new


DECODE, BATCHED = Shape(), Shape(batch=5)
PREFILL, BATCHED_PREFILL = Shape(new=40), Shape(batch=3, new=40)
SHAPES = [DECODE, BATCHED, PREFILL, BATCHED_PREFILL]


def half(word: str, *sizes: list[int]) -> Call:
    return (f"aten::{word}", list(sizes), [HALF] * len(sizes))


def matrix(shape: Shape, inputs: int, outputs: int, *, bias: bool = False) -> Call:
    if bias:
        return half("addmm", [outputs], [shape.rows, inputs], [inputs, outputs])
    return half("mm", [shape.rows, inputs], [inputs, outputs])


def norm(shape: Shape) -> list[Part]:
    wide, narrow = [shape.batch, shape.new, HIDDEN], [shape.batch, shape.new, 1]
    calls = [
        ("aten::copy_", [wide, wide], [FLOAT, HALF]),
        ("aten::pow", [wide, []], [FLOAT, NUMBER]),
        ("aten::mean", [wide, [], []], [FLOAT, "ScalarList", NUMBER]),
        ("aten::rsqrt", [narrow], [FLOAT]),
        ("aten::mul", [wide, narrow], [FLOAT, FLOAT]),
        ("aten::mul", [[HIDDEN], wide], [HALF, HALF]),
    ]
    return [(call, r.NORM) for call in calls]


def fused_norm(shape: Shape) -> list[Part]:
    return [(half("layer_norm", [shape.batch, shape.new, HIDDEN], [], [HIDDEN]), r.NORM)]


def residual(shape: Shape) -> list[Part]:
    wide = [shape.batch, shape.new, HIDDEN]
    return [(half("add", wide, wide), r.RESIDUAL)]


def qkv(shape: Shape) -> list[Part]:
    widths = [HEADS * SIZE, KV * SIZE, KV * SIZE]
    return [(matrix(shape, HIDDEN, width), r.QKV_PROJ) for width in widths]


def biased_qkv(shape: Shape) -> list[Part]:
    widths = [HEADS * SIZE, KV * SIZE, KV * SIZE]
    return [(matrix(shape, HIDDEN, width, bias=True), r.QKV_PROJ) for width in widths]


def fused_qkv(shape: Shape) -> list[Part]:
    return [(matrix(shape, HIDDEN, (HEADS + 2 * KV) * SIZE), r.QKV_PROJ)]


def rope(shape: Shape) -> list[Part]:
    parts: list[Part] = []
    for heads in (HEADS, KV):
        whole, part = [shape.batch, heads, shape.new, SIZE], [shape.batch, heads, shape.new, 8]
        angles = [1, 1, shape.new, SIZE]
        parts += [
            (half("mul", whole, angles), r.ROPE),
            (half("neg", part), r.ROPE),
            (("aten::cat", [[part, part], []], [LIST, NUMBER]), r.ROPE),
            (half("mul", whole, angles), r.ROPE),
            (half("add", whole, whole), r.ROPE),
        ]
    return parts


def append(shape: Shape) -> list[Part]:
    new = [shape.batch, KV, shape.new, SIZE]
    old: list[int] = [0] if shape.new > 1 else [shape.batch, KV, shape.seen - 1, SIZE]
    return [(("aten::cat", [[old, new], []], [LIST, NUMBER]), r.KV_CACHE)] * 2


def fused_attention(shape: Shape) -> list[Part]:
    queries, keys = [shape.batch, HEADS, shape.new, SIZE], [shape.batch, KV, shape.seen, SIZE]
    return [(half("_flash_attention_forward", queries, keys, keys), r.ATTENTION)]


def unfused_attention(shape: Shape) -> list[Part]:
    repeated = [shape.batch, KV, HEADS // KV, shape.seen, SIZE]
    flat = shape.batch * HEADS
    scores = [shape.batch, HEADS, shape.new, shape.seen]
    return [
        (half("copy_", repeated, repeated), r.KV_CACHE),
        (half("copy_", repeated, repeated), r.KV_CACHE),
        (half("bmm", [flat, shape.new, SIZE], [flat, SIZE, shape.seen]), r.ATTENTION),
        (("aten::mul", [scores, []], [HALF, NUMBER]), r.SOFTMAX),
        (half("add", scores, [shape.batch, 1, shape.new, shape.seen]), r.SOFTMAX),
        (("aten::_softmax", [scores, [], []], [FLOAT, NUMBER, NUMBER]), r.SOFTMAX),
        (half("bmm", [flat, shape.new, shape.seen], [flat, shape.seen, SIZE]), r.ATTENTION),
    ]


def out(shape: Shape) -> list[Part]:
    return [(matrix(shape, HEADS * SIZE, HIDDEN), r.O_PROJ)]


def split_out(shape: Shape) -> list[Part]:
    """One product in two kernels: parts, and their sum."""
    return out(shape) * 2


def gated(shape: Shape) -> list[Part]:
    wide = [shape.batch, shape.new, INNER]
    return [
        (matrix(shape, HIDDEN, INNER), r.GATE_UP_PROJ),
        (half("silu", wide), r.ACTIVATION),
        (matrix(shape, HIDDEN, INNER), r.GATE_UP_PROJ),
        (half("mul", wide, wide), r.ACTIVATION),
        (matrix(shape, INNER, HIDDEN), r.DOWN_PROJ),
    ]


def fused_gated(shape: Shape) -> list[Part]:
    wide = [shape.batch, shape.new, INNER]
    return [
        (matrix(shape, HIDDEN, 2 * INNER), r.GATE_UP_PROJ),
        (half("silu", wide), r.ACTIVATION),
        (half("mul", wide, wide), r.ACTIVATION),
        (matrix(shape, INNER, HIDDEN), r.DOWN_PROJ),
    ]


def biased_plain(shape: Shape) -> list[Part]:
    wide = [shape.batch, shape.new, INNER]
    return [
        (matrix(shape, HIDDEN, INNER, bias=True), r.GATE_UP_PROJ),
        (half("gelu", wide), r.ACTIVATION),
        (matrix(shape, INNER, HIDDEN, bias=True), r.DOWN_PROJ),
    ]


def experts(shape: Shape, inner: int = INNER) -> list[Part]:
    rows, routed = shape.rows, shape.rows * CHOSEN
    return [
        (half("mm", [rows, HIDDEN], [HIDDEN, EXPERTS]), r.ROUTER),
        (("aten::_softmax", [[rows, EXPERTS], []], [FLOAT, NUMBER]), r.ROUTER),
        (("aten::topk", [[rows, EXPERTS], []], [FLOAT, NUMBER]), r.ROUTER),
        (("aten::sort", [[routed], []], [LONG, NUMBER]), r.EXPERTS),
        (("aten::index", [[rows, HIDDEN], [routed]], [HALF, LONG]), r.EXPERTS),
        (("aten::histc", [[routed], []], ["int", NUMBER]), r.EXPERTS),
        (("aten::cumsum", [[EXPERTS], []], ["int", NUMBER]), r.EXPERTS),
        (half("_grouped_mm", [routed, HIDDEN], [EXPERTS, HIDDEN, 2 * inner]), r.EXPERTS),
        (half("silu", [routed, inner]), r.EXPERTS),
        (half("mul", [routed, inner], [routed, inner]), r.EXPERTS),
        (half("_grouped_mm", [routed, inner], [EXPERTS, inner, HIDDEN]), r.EXPERTS),
        (half("mul", [routed, HIDDEN], [routed, 1]), r.EXPERTS),
        (half("index", [routed, HIDDEN], [routed]), r.EXPERTS),
        (half("sum", [rows, CHOSEN, HIDDEN], []), r.EXPERTS),
    ]


def shared_experts(shape: Shape) -> list[Part]:
    wide = [shape.batch, shape.new, HIDDEN]
    return [*experts(shape), *gated(shape), (half("add", wide, wide), r.EXPERTS)]


# Latent attention: a row of 48 and a turned part of 8 for all heads; keys of 24, values of 16.
ROW, TURNED, KEY = 48, 8, 24


def latent(shape: Shape) -> list[Part]:
    def heads(count: int, size: int) -> list[int]:
        return [shape.batch, count, shape.new, size]

    def grown(size: int) -> Call:
        old: list[int] = [0] if shape.new > 1 else [shape.batch, 1, shape.seen - 1, size]
        return ("aten::cat", [[old, [shape.batch, 1, shape.new, size]], []], [LIST, NUMBER])

    keys = replace(shape, new=shape.seen)
    seen = [shape.batch, HEADS, shape.seen]
    attended = half("_flash_attention_forward", heads(HEADS, KEY), [*seen, KEY], [*seen, SIZE])
    return [
        (matrix(shape, HIDDEN, HEADS * KEY), r.QKV_PROJ),
        (matrix(shape, HIDDEN, ROW + TURNED), r.QKV_PROJ),
        (half("mul", heads(HEADS, TURNED // 2), [1, 1, shape.new, TURNED // 2]), r.ROPE),
        (half("mul", heads(1, TURNED // 2), [1, 1, shape.new, TURNED // 2]), r.ROPE),
        (grown(ROW), r.KV_CACHE),
        (grown(TURNED), r.KV_CACHE),
        (matrix(keys, ROW, HEADS * (KEY - TURNED + SIZE)), r.QKV_PROJ),
        (attended, r.ATTENTION),
    ]


def windowed(shape: Shape) -> list[Part]:
    """Build one mask for all tokens and one for a window of them."""
    mask = [shape.batch, 1, shape.new, shape.seen]
    lines = [[1, 1, 1, shape.seen], [1, 1, shape.new, 1]]
    parts: list[Part] = []
    for _ in range(2):
        parts += [
            (("aten::le", lines, [LONG, LONG]), r.MASK),
            (("aten::gt", lines, [LONG, LONG]), r.MASK),
            (("aten::bitwise_and", [mask, mask], ["bool", "bool"]), r.MASK),
        ]
    return parts


def prologue(shape: Shape) -> list[Part]:
    ids: Call = ("aten::index_select", [[VOCAB, HIDDEN], [], [shape.rows]], [HALF, NUMBER, LONG])
    return [(ids, r.EMBEDDING)]


def epilogue(shape: Shape) -> list[Part]:
    return [
        *norm(shape),
        (half("mm", [shape.batch, HIDDEN], [HIDDEN, VOCAB]), r.LM_HEAD),
        (half("argmax", [shape.batch, VOCAB]), r.SAMPLING),
    ]


def shared_head(shape: Shape) -> list[Part]:
    """Multiply by the embedding's own table, as a product of one matrix for each sequence."""
    logits = half("bmm", [shape.batch, 1, HIDDEN], [shape.batch, HIDDEN, VOCAB])
    return [*norm(shape), (logits, r.LM_HEAD), (half("argmax", [shape.batch, VOCAB]), r.SAMPLING)]


USUAL: tuple[Block, ...] = (norm, qkv, rope, append, fused_attention, out, residual, norm, gated)
KINDS: dict[str, tuple[Block, ...]] = {
    "fused attention": USUAL,
    "unfused attention": (*USUAL[:4], unfused_attention, *USUAL[5:]),
    "fused norms": (fused_norm, *USUAL[1:7], fused_norm, gated),
    "fused qkv and gate_up": (norm, fused_qkv, *USUAL[2:8], fused_gated),
    "biases": (norm, biased_qkv, *USUAL[2:8], biased_plain),
    "split-K": (*USUAL[:5], split_out, *USUAL[6:]),
    "experts": (*USUAL[:8], experts),
    "shared experts": (*USUAL[:8], shared_experts),
    "latent attention": (norm, latent, *USUAL[5:]),
}
MIXTURE = msgspec.structs.replace(
    MODEL, experts=EXPERTS, experts_per_token=CHOSEN, expert_intermediate=INNER
)
LATENT = msgspec.structs.replace(
    MODEL, kv_heads=HEADS, head_dim=KEY, v_head_dim=SIZE, kv_lora_rank=ROW, qk_rope_dim=TURNED
)
MODELS = {"experts": MIXTURE, "shared experts": MIXTURE, "latent attention": LATENT}


def whole_pass(
    blocks: tuple[Block, ...], shape: Shape, *, before: Block = prologue, after: Block = epilogue
) -> tuple[list[Call], list[Told]]:
    """Return the calls of a pass, and the role and layer of each."""
    parts: list[tuple[Call, Told]] = [(call, (role, None)) for call, role in before(shape)]
    for layer in range(LAYERS):
        for block in (*blocks, residual):
            parts += [(call, (role, layer)) for call, role in block(shape)]
    parts += [(call, (role, None)) for call, role in after(shape)]
    return [call for call, _ in parts], [told for _, told in parts]


def found(calls: list[Call], model: Model | None) -> list[Told]:
    return attribute(recording(calls), model).select(Roles.role, Roles.layer).rows()


with_and_without = pytest.mark.parametrize("given", [True, False], ids=["model", "shapes"])
shapes = pytest.mark.parametrize(
    "shape", SHAPES, ids=["decode", "batched decode", "prefill", "batched prefill"]
)


@with_and_without
@shapes
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_block_has_its_roles_and_layers(kind: str, shape: Shape, given: bool) -> None:
    calls, expected = whole_pass(KINDS[kind], shape)
    assert found(calls, MODELS.get(kind, MODEL) if given else None) == expected


@with_and_without
@shapes
def test_a_head_that_shares_the_table_of_the_embedding_is_the_head(
    shape: Shape, given: bool
) -> None:
    calls, expected = whole_pass(USUAL, shape, after=shared_head)
    assert found(calls, MODEL if given else None) == expected


@with_and_without
@shapes
def test_masks_of_sliding_windows_are_masks(shape: Shape, given: bool) -> None:
    def before(shape: Shape) -> list[Part]:
        return [*prologue(shape), *windowed(shape)]

    calls, expected = whole_pass(USUAL, shape, before=before)
    assert found(calls, MODEL if given else None) == expected


def test_scaling_queries_is_part_of_attention() -> None:
    wide = [1, 1, HIDDEN]
    scale: Part = (("aten::mul", [wide, []], [HALF, NUMBER]), r.ATTENTION)

    def scaled(shape: Shape) -> list[Part]:
        query, *rest = biased_qkv(shape)
        return [query, scale, *rest]

    calls, expected = whole_pass((norm, scaled, *USUAL[2:]), DECODE)
    assert found(calls, MODEL) == expected


def test_cos_and_sin_may_be_built_inside_the_first_layer() -> None:
    built: list[Part] = [
        (("aten::copy_", [[1, 1, 1], [1, 1, 1]], [FLOAT, LONG]), r.ROPE),
        (("aten::bmm", [[1, 8, 1], [1, 1, 1]], [FLOAT, FLOAT]), r.ROPE),
        (("aten::cos", [[1, 1, SIZE]], [FLOAT]), r.ROPE),
    ]
    calls, expected = whole_pass(USUAL, DECODE)
    at = calls.index(qkv(DECODE)[0][0]) + 1
    calls[at:at] = [call for call, _ in built]
    expected[at:at] = [(role, 0) for _, role in built]
    assert found(calls, MODEL) == expected


def test_whole_numbers_made_ready_ahead_of_the_lookup_work_for_no_part_of_the_model() -> None:
    numbers: list[Call] = [
        ("aten::copy_", [[5], [5]], [LONG, "int"]),
        ("aten::add", [[5], [5]], ["int", "int"]),
        ("aten::fill_", [[900], []], ["int", NUMBER]),
    ]
    calls, expected = whole_pass(USUAL, BATCHED)
    assert found([*numbers, *calls], MODEL) == [(r.OTHER, None)] * len(numbers) + expected
