"""The widths that a trace's shapes are read against: the model's own, else the trace's.

A given model always wins. Without one each width is inferred from the operators that only it
can explain (the table that token ids look up, the heads that attention is called with …), and
`inferred_from` says which. Under tensor parallelism heads, inner widths and the head of one
rank are a whole fraction of the model's; the fraction is read from the weights in the trace.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from whichwall.analyze.kernel_words import ACTIVATIONS, LOOKUPS, MATMULS, fused_word
from whichwall.analyze.operators import INTEGER_TYPES, Operator, Shape
from whichwall.schemas.model import Model

# Tensor-parallel sizes in use; the smallest that explains most weights is taken.
SHARDS = (1, 2, 4, 8, 16, 32)

FROM_MODEL = "the model given"


@dataclass(frozen=True)
class Dims:
    """Widths on one rank; None where neither the model nor the trace tells."""

    hidden: int | None = None
    vocab: int | None = None  # whole, also where the head is split over ranks
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    inner: frozenset[int] = frozenset()  # widths inside the MLP, of experts and shared ones too
    experts: int | None = None
    experts_per_token: int | None = None
    latent: frozenset[int] = frozenset()  # widths of latent attention between its projections
    value_dim: int | None = None  # head size of values where it is not head_dim
    positions: int | None = None
    shards: int = 1
    dense: bool = False  # known to have no experts
    inferred_from: Mapping[str, str] = field(default_factory=dict)

    @property
    def query_width(self) -> int | None:
        """All query heads of this rank together."""
        return self.heads * self.head_dim if self.heads and self.head_dim else None

    @property
    def value_width(self) -> int | None:
        """What the output projection takes in: all heads' values together."""
        per_head = self.value_dim or self.head_dim
        return self.heads * per_head if self.heads and per_head else None

    @property
    def kv_width(self) -> int | None:
        """All key heads of this rank together."""
        return self.kv_heads * self.head_dim if self.kv_heads and self.head_dim else None


def measure(operators: Mapping[Operator, int], model: Model | None) -> Dims:
    """Return the widths of the model given, or those that the counted operators show."""
    if model is None:
        return infer(operators)
    whole = _from_model(model)
    if model.assumed:  # its architecture may lay heads out otherwise than the one it is taken for
        seen = infer(operators)
        whole = replace(
            whole,
            kv_heads=seen.kv_heads or whole.kv_heads,
            head_dim=seen.head_dim or whole.head_dim,
            inner=seen.inner | whole.inner,
            inferred_from={**seen.inferred_from, **whole.inferred_from},
        )
    weights = _weights(operators)

    def explained(shards: int) -> int:
        part = _split(whole, shards)
        widths = {part.query_width, part.kv_width, *part.inner} - {None}
        widths |= {2 * w for w in part.inner}
        return sum(
            count
            for (inputs, outputs), count in weights.items()
            if (inputs == whole.hidden and outputs in widths)
            or (outputs == whole.hidden and inputs in widths)
        )

    return _split(whole, max(SHARDS, key=lambda s: (explained(s), -s)))


def infer(operators: Mapping[Operator, int]) -> Dims:
    """Return what the shapes alone tell, each width with the operator it was read from."""
    hidden, vocab, found = _lookup(operators)
    dims = Dims(hidden=hidden, vocab=vocab, inferred_from=found)
    for step in (_heads, _experts, _inner, _head_shards):
        dims = step(dims, operators)
    return dims


def _from_model(model: Model) -> Dims:
    inner = {model.intermediate, model.expert_intermediate, model.shared_width or None}
    latent = {model.q_lora_rank, model.kv_lora_rank}
    if model.kv_lora_rank and model.qk_rope_dim:
        latent |= {model.kv_lora_rank + model.qk_rope_dim}
    return Dims(
        hidden=model.hidden,
        vocab=model.vocab,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=model.head_dim,
        inner=frozenset(w for w in inner if w),
        experts=model.experts,
        experts_per_token=model.experts_per_token,
        latent=frozenset(w for w in latent if w),
        value_dim=model.v_head_dim,
        positions=model.positions,
        dense=model.experts is None and not model.assumed,
        inferred_from={"all": FROM_MODEL},
    )


def _split(whole: Dims, shards: int) -> Dims:
    """Return one rank's part; key heads fewer than ranks are repeated, never split."""
    if shards == 1:
        return whole
    return replace(
        whole,
        heads=whole.heads // shards if whole.heads else None,
        kv_heads=max(whole.kv_heads // shards, 1) if whole.kv_heads else None,
        inner=frozenset(w // shards for w in whole.inner if w % shards == 0),
        shards=shards,
        inferred_from={**whole.inferred_from, "shards": "widths of the weights in the trace"},
    )


def _weights(operators: Mapping[Operator, int]) -> Counter[tuple[int, int]]:
    """Count matrix multiplications by the sizes of their weight, inputs first."""
    counts: Counter[tuple[int, int]] = Counter()
    for op, count in operators.items():
        weight = weight_of(op)
        if weight:
            counts[weight] += count
    return counts


def weight_of(op: Operator) -> tuple[int, int] | None:
    """Return (inputs, outputs) of the weight that a matrix multiplication reads, if it is one."""
    if op.word not in MATMULS:
        return None
    if op.word == "linear":  # its weight is stored the other way round
        two = [s for s in op.shapes[1:2] if len(s) == 2]
        return (two[0][1], two[0][0]) if two else None
    matrices = [s for s in op.shapes if len(s) == 2]
    for left, right in zip(matrices, matrices[1:], strict=False):
        if left[1] == right[0]:
            return right[0], right[1]
    return None


def _lookup(operators: Mapping[Operator, int]) -> tuple[int | None, int | None, dict[str, str]]:
    """Find the token table: the tallest float matrix that integers look rows up in."""
    tables = [
        (op.shapes[0], op)
        for op in operators
        if op.word in LOOKUPS and len(op.shapes[:1]) and len(op.shapes[0]) == 2
        and op.types[0] not in INTEGER_TYPES and any(t in INTEGER_TYPES for t in op.types[1:])
    ]  # fmt: skip
    weights = _weights(operators)
    if tables:
        (rows, width), op = max(tables, key=lambda t: t[0][0])
        return width, rows, {"hidden, vocab": _say(op)}
    if not weights:
        return None, None, {}
    inputs, outputs = max(weights, key=lambda w: w[1])
    return inputs, outputs, {"hidden, vocab": f"the widest weight [{inputs}, {outputs}]"}


def _heads(dims: Dims, operators: Mapping[Operator, int]) -> Dims:
    """Find head size and key heads in the cache or where attention is called, then the heads."""
    keys = _first(operators, _appended_keys) or _first(operators, _called_keys)
    if keys is None:
        return dims
    (kv_heads, head_dim), from_keys = keys
    found = replace(dims, kv_heads=kv_heads, head_dim=head_dim)
    back = {inputs for inputs, outputs in _weights(operators) if outputs == dims.hidden}
    queries = _first(operators, lambda op: _put_out(op, head_dim, back)) or _first(
        operators, lambda op: _called_queries(op, head_dim)
    )
    heads, from_queries = queries or (kv_heads, from_keys)
    source = {"kv_heads, head_dim": _say(from_keys), "heads": _say(from_queries)}
    return replace(found, heads=heads, inferred_from={**dims.inferred_from, **source})


_Found = TypeVar("_Found")


def _first(
    operators: Mapping[Operator, int], read: Callable[[Operator], _Found | None]
) -> tuple[_Found, Operator] | None:
    """Return what the most frequent operator that tells it says, and that operator."""
    for op in sorted(operators, key=lambda o: -operators[o]):
        said = read(op)
        if said is not None:
            return said, op
    return None


def _appended_keys(op: Operator) -> tuple[int, int] | None:
    """Read (heads, size) from new keys [batch, heads, tokens, size] put behind those before."""
    if op.word == "cat" and is_append(op.shapes):
        new = op.shapes[-1]
        return new[1], new[3]
    if op.word == "index_copy" and op.shapes and len(op.shapes[0]) == 4:
        return op.shapes[0][1], op.shapes[0][3]
    if fused_word(op.word) == "write_cache" and op.shapes and len(op.shapes[0]) == 3:
        return op.shapes[0][1], op.shapes[0][2]
    return None


def _called_keys(op: Operator) -> tuple[int, int] | None:
    if fused_word(op.word) != "attend" or len(op.shapes) < 2 or len(op.shapes[1]) != 4:
        return None
    keys = op.shapes[1]
    return keys[1], keys[3]


def _put_out(op: Operator, head_dim: int, back: set[int]) -> int | None:
    """Read the heads of a tensor by head which, laid flat, is what an output projection takes."""
    for shape in op.shapes:
        if len(shape) == 4 and shape[3] == head_dim:
            for heads in shape[1:3]:
                if heads > 1 and heads * head_dim in back:
                    return heads
    return None


def _called_queries(op: Operator, head_dim: int) -> int | None:
    first = op.shapes[0] if op.shapes else ()
    if op.word == "softmax" and len(first) == 4:
        return first[1]
    if fused_word(op.word) == "attend" and first[-1:] == (head_dim,) and len(first) in (3, 4):
        return first[1]
    return None


def is_append(shapes: tuple[Shape, ...]) -> bool:
    """Tell whether tensors joined are a cache and what is new: alike but for the tokens."""
    whole = [s for s in shapes if s != (0,)]
    return (
        len(shapes) > 1
        and bool(whole)
        and all(len(s) == 4 for s in whole)
        and len({s[:2] + s[3:] for s in whole}) == 1
        and (len(whole) < len(shapes) or whole[0] != whole[1])
    )


def _experts(dims: Dims, operators: Mapping[Operator, int]) -> Dims:
    """Find experts in a batch of weights, one for each, that one call multiplies by."""
    for op in operators:
        stacks = [s for s in op.shapes if len(s) == 3 and dims.hidden in s[1:]]
        if fused_word(op.word) == "grouped_mm" and stacks:
            experts, *matrix = stacks[0]
            other = next((w for w in matrix if w != dims.hidden), matrix[1])
            return replace(
                dims,
                experts=experts,
                experts_per_token=_chosen(dims, experts, operators),
                inner=frozenset({other, *([other // 2] if other % 2 == 0 else [])}),
                inferred_from={**dims.inferred_from, "experts": _say(op)},
            )
    return dims


def _chosen(dims: Dims, experts: int, operators: Mapping[Operator, int]) -> int | None:
    """Find how many experts a token goes to, where their outputs are summed."""
    for op in operators:
        first = op.shapes[0] if op.shapes else ()
        if op.word == "sum" and len(first) == 3 and first[2] == dims.hidden:
            return first[1] if first[1] <= experts else None
    return None


def _inner(dims: Dims, operators: Mapping[Operator, int]) -> Dims:
    """Find the MLP's width: what hidden goes to and comes back from, attention's left out."""
    weights = _weights(operators)
    back = {w[0] for w in weights if w[1] == dims.hidden}
    out = {w[1] for w in weights if w[0] == dims.hidden}
    taken = {dims.query_width, dims.vocab, dims.experts, 1}
    active = _last_sizes(operators, lambda op: op.word in ACTIVATIONS)
    widths = {w for w in back if (w in out or 2 * w in out) and w not in taken}
    if dims.query_width is None and len(widths) > 1:
        widths &= active or widths
    if not widths or dims.inner:
        return dims
    return replace(
        dims,
        inner=frozenset(widths),
        inferred_from={
            **dims.inferred_from,
            "inner": f"weights [{dims.hidden}, n] and [n, {dims.hidden}], n in {sorted(widths)}",
        },
    )


def _head_shards(dims: Dims, operators: Mapping[Operator, int]) -> Dims:
    """Find over how many ranks the vocabulary is split, if it is."""
    weights = _weights(operators)
    found = [s for s in SHARDS if dims.vocab and (dims.hidden, dims.vocab // s) in weights]
    return replace(dims, shards=found[0]) if found else dims


def _last_sizes(operators: Iterable[Operator], wanted: Callable[[Operator], bool]) -> set[int]:
    return {s[-1] for op in operators if wanted(op) for s in op.shapes[:1] if s}


def _say(op: Operator) -> str:
    return f"{op.word} {[list(s) for s in op.shapes if s]}"
