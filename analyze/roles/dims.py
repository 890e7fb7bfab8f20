"""The widths that a trace's shapes are read against: the model's own, else the trace's.

A given model always wins. Without one each width is inferred from the operators that only it
can explain (the table that token ids look up, what is appended to the cache, …), and
`inferred_from` says which. Under tensor parallelism heads, inner widths and the head of one
rank are a whole fraction of the model's; the fraction is read from the weights in the trace.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from whichwall.analyze.roles.kernel_words import ACTIVATIONS
from whichwall.analyze.roles.operators import Operator
from whichwall.analyze.roles.witnesses import (
    Weight,
    appended_keys,
    attended,
    called_heads,
    called_keys,
    count_weights,
    expert_stack,
    projected_heads,
    summed_experts,
    table_of,
)
from whichwall.schemas.model import Model

# Tensor-parallel sizes in use; the smallest that explains most weights is taken.
SHARDS = (1, 2, 4, 8, 16, 32)

# A vocabulary is at least so many times as wide as whatever else hidden is multiplied to.
STANDS_OUT = 2

# Of an operator, so many shapes are told.
SAID = 3

FULL = "full"  # a model's norm of queries and keys, over all heads together

FROM_MODEL = "the model given"
FROM_WEIGHTS = "the widths of the weights"


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
    positions: int | None = None  # rows of the learned position table
    shards: int = 1  # ranks that share each layer
    dense: bool = False  # known to have no experts
    flat_norms: bool = False  # queries and keys are known to be normalised over all heads
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
    whole = _of_model(model)
    if model.assumed:  # its architecture may lay heads out otherwise than the one it is taken for
        seen = infer(operators)
        whole = replace(
            whole,
            kv_heads=seen.kv_heads or whole.kv_heads,
            head_dim=seen.head_dim or whole.head_dim,
            inferred_from={**seen.inferred_from, **whole.inferred_from},
        )
    weights = count_weights(operators)
    return _split(whole, max(SHARDS, key=lambda s: (_explained(_split(whole, s), weights), -s)))


def infer(operators: Mapping[Operator, int]) -> Dims:
    """Return what the shapes alone tell, each width with the operator it was read from."""
    dims = _with_tables(Dims(), operators)
    for step in (_with_heads, _with_experts, _with_inner, _with_shards):
        dims = step(dims, operators)
    return dims


def _of_model(model: Model) -> Dims:
    inner = {model.intermediate, model.expert_intermediate, model.shared_width}
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
        flat_norms=model.qk_norm == FULL,
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
        inferred_from={**whole.inferred_from, "shards": FROM_WEIGHTS},
    )


def _explained(part: Dims, weights: Counter[Weight]) -> int:
    """Count the multiplications whose weight has one of a rank's widths beside hidden."""
    out = {part.query_width, part.kv_width} | part.inner | {2 * w for w in part.inner}
    back = {part.value_width} | part.inner
    return sum(
        count
        for (inputs, outputs), count in weights.items()
        if (inputs == part.hidden and outputs in out) or (outputs == part.hidden and inputs in back)
    )


def _with_tables(dims: Dims, operators: Mapping[Operator, int]) -> Dims:
    """Take vocabulary and hidden width from the tallest token table, else from the head."""
    tables = [(table, op) for op in operators if (table := table_of(op))]
    weights = count_weights(operators)
    if tables:
        (vocab, hidden), op = max(tables, key=lambda found: found[0])
        return replace(dims, hidden=hidden, vocab=vocab, inferred_from={"hidden, vocab": _say(op)})
    hidden, vocab = max(weights, key=lambda weight: weight[1], default=(0, 0))
    others = max((outputs for _, outputs in weights if outputs < vocab), default=hidden)
    if vocab < STANDS_OUT * max(others, hidden, 1):
        return dims
    source = {"hidden, vocab": f"the widest weight [{hidden}, {vocab}]"}
    return replace(dims, hidden=hidden, vocab=vocab, inferred_from=source)


def _with_heads(dims: Dims, operators: Mapping[Operator, int]) -> Dims:
    """Take key heads and head size from the cache, else from attention; then the query heads."""
    keys = _most(operators, appended_keys) or _most(operators, called_keys)
    if keys is None:
        return dims
    (kv_heads, head_dim), from_keys = keys
    latent = _with_latent(dims, operators, kv_heads, head_dim)
    if latent is not None:
        return latent
    taken_in = {inputs for inputs, outputs in count_weights(operators) if outputs == dims.hidden}
    queries = _most(operators, lambda op: projected_heads(op, head_dim, taken_in)) or _most(
        operators, lambda op: called_heads(op, head_dim)
    )
    heads, from_queries = queries or (kv_heads, from_keys)
    source = {"kv_heads, head_dim": _say(from_keys), "heads": _say(from_queries)}
    return replace(
        dims,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        inferred_from={**dims.inferred_from, **source},
    )


def _with_latent(
    dims: Dims, operators: Mapping[Operator, int], kv_heads: int, cached: int
) -> Dims | None:
    """Read latent attention: what is cached is one row for all heads, of none of their sizes.

    None where the heads that are cached are those that attention multiplies.
    """
    told = attended(operators)
    if told is None or kv_heads != 1:
        return None
    seen, op = told
    if seen.heads == 1 or (seen.kv_heads == 1 and seen.head_dim == cached):
        return None
    rows = {keys[1] for o in operators if (keys := appended_keys(o)) and keys[0] == 1}
    weights = count_weights(operators)
    # One product makes the row and its rotated part, another the heads from the row.
    made = {(row, row + turned) for row in rows for turned in rows if row != turned}
    widths = {w for row, both in made if (dims.hidden, both) in weights for w in (row, both)}
    widths &= {w for weight in weights for w in weight}
    if not widths:
        return None
    said = f"{seen.heads} heads of {seen.head_dim} attended from cached rows of {sorted(rows)}"
    return replace(
        dims,
        heads=seen.heads,
        kv_heads=seen.kv_heads,
        head_dim=seen.head_dim,
        value_dim=seen.value_dim,
        latent=frozenset(widths),
        inferred_from={
            **dims.inferred_from,
            "heads, kv_heads, head_dim, value_dim": _say(op),
            "latent": said,
        },
    )


def _with_experts(dims: Dims, operators: Mapping[Operator, int]) -> Dims:
    hidden = dims.hidden
    stack = _most(operators, lambda op: expert_stack(op, hidden)) if hidden else None
    if hidden is None or stack is None:
        return dims
    (experts, width), op = stack
    chosen = _most(operators, lambda op: summed_experts(op, hidden))
    return replace(
        dims,
        experts=experts,
        experts_per_token=chosen[0] if chosen and chosen[0] <= experts else None,
        inner=frozenset({width} | ({width // 2} if width % 2 == 0 else set())),
        inferred_from={**dims.inferred_from, "experts": _say(op)},
    )


def _with_inner(dims: Dims, operators: Mapping[Operator, int]) -> Dims:
    """Take the MLP's width from what hidden goes to and comes back from, beside attention."""
    weights = count_weights(operators)
    back = {inputs for inputs, outputs in weights if outputs == dims.hidden}
    out = {outputs for inputs, outputs in weights if inputs == dims.hidden}
    others = {dims.query_width, dims.vocab, dims.experts, 1}
    widths = {w for w in back if (w in out or 2 * w in out) and w not in others}
    if dims.query_width is None and len(widths) > 1:
        active = {op.shapes[0][-1:] for op in operators if op.shapes and op.word in ACTIVATIONS}
        widths = {w for w in widths if (w,) in active} or widths
    if not widths:
        return dims
    said = f"weights [{dims.hidden}, n] and [n, {dims.hidden}], n in {sorted(widths)}"
    return replace(
        dims, inner=dims.inner | widths, inferred_from={**dims.inferred_from, "inner": said}
    )


def _with_shards(dims: Dims, operators: Mapping[Operator, int]) -> Dims:
    """Find over how many ranks the head is split; all other widths are one rank's already."""
    weights = count_weights(operators)
    found = [s for s in SHARDS if dims.vocab and (dims.hidden, dims.vocab // s) in weights]
    return replace(dims, shards=found[0]) if found else dims


_Told = TypeVar("_Told")


def _most(
    operators: Mapping[Operator, int], read: Callable[[Operator], _Told | None]
) -> tuple[_Told, Operator] | None:
    """Return what the most frequent operator that tells it says, and that operator."""
    for op in sorted(operators, key=lambda o: -operators[o]):
        told = read(op)
        if told is not None:
            return told, op
    return None


def _say(op: Operator) -> str:
    shapes = [list(s) for s in op.shapes if s]
    more = ", …" if len(shapes) > SAID else ""
    return f"{op.word} {shapes[:SAID]}{more}"
