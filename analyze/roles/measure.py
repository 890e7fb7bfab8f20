"""Measure the widths of a recording: the model's own, else what only they can explain.

A given model always wins; over how many ranks it is split is read from the weights in the trace.
Without one each width is inferred from the operators that only it can explain (the table that
token ids look up, what is appended to the cache, …), and `inferred_from` says which.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from whichwall.analyze.roles.dims import Dims, of_model, split
from whichwall.analyze.roles.kernel_words import ACTIVATIONS
from whichwall.analyze.roles.operators import Operator
from whichwall.analyze.roles.witnesses import (
    Weight,
    appended_keys,
    attended,
    called_heads,
    called_keys,
    called_sizes,
    count_weights,
    expert_stack,
    multiplied_rows,
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


def measure(operators: Mapping[Operator, int], model: Model | None) -> Dims:
    """Return the widths of the model given, or those that the counted operators show."""
    if model is None:
        return infer(operators)
    whole = of_model(model)
    # An unknown architecture may lay heads out otherwise than the one it is taken for.
    seen = infer(operators) if model.assumed else Dims()
    parts = [_with_seen_heads(split(whole, shards), seen) for shards in SHARDS]
    weights = count_weights(operators)
    return max(parts, key=lambda part: (_explained(part, weights), -part.shards))


def infer(operators: Mapping[Operator, int]) -> Dims:
    """Return what the shapes alone tell, each width with the operator it was read from."""
    dims = _with_tables(Dims(), operators)
    for step in (_with_heads, _with_experts, _with_inner, _with_shards):
        dims = step(dims, operators)
    return dims


def _with_seen_heads(part: Dims, seen: Dims) -> Dims:
    return replace(
        part,
        kv_heads=seen.kv_heads or part.kv_heads,
        head_dim=seen.head_dim or part.head_dim,
        inferred_from={**seen.inferred_from, **part.inferred_from},
    )


def _explained(part: Dims, weights: Counter[Weight]) -> int:
    """Count the multiplications whose weight has one of a rank's widths beside hidden."""
    out = {part.query_width, part.kv_width} | part.inner | {2 * w for w in part.inner}
    back = {part.value_width} | part.inner
    return sum(
        count
        for (inputs, outputs), count in weights.items()
        if (inputs == part.hidden and outputs in out)
        or (outputs == part.hidden and inputs in back)
        or (inputs in part.latent and outputs == part.query_width)
    )


def _with_tables(dims: Dims, operators: Mapping[Operator, int]) -> Dims:
    """Take vocabulary and hidden width from the token table, else from the head.

    It is the table that the head has the sizes of, else the tallest; another is that of
    positions, unless it has as many rows as a pass has tokens: then some are picked of these.
    """
    tables = {table: op for op in operators if (table := table_of(op))}
    weights = count_weights(operators)
    if tables:
        back = {inputs for inputs, _ in weights}  # what comes out of the head goes nowhere
        heads = {(out, inputs) for inputs, out in weights if out not in back}
        vocab, width = max(tables, key=lambda table: (table in heads, table))
        source = {"hidden, vocab": _say(tables[vocab, width])}
        tokens = {rows for op in operators if (rows := multiplied_rows(op))}
        more = {table: op for table, op in tables.items() if table[0] not in (vocab, *tokens)}
        # A narrower token table is multiplied to the width of the one that is added to it.
        hidden = next((wide for _, wide in more if (width, wide) in weights), width)
        dims = replace(dims, hidden=hidden, vocab=vocab, inferred_from=source)
        return _with_positions(dims, more)
    hidden, vocab = max(weights, key=lambda weight: weight[1], default=(0, 0))
    others = max((outputs for _, outputs in weights if outputs < vocab), default=hidden)
    if vocab < STANDS_OUT * max(others, hidden, 1):
        return dims
    source = {"hidden, vocab": f"the widest weight [{hidden}, {vocab}]"}
    return replace(dims, hidden=hidden, vocab=vocab, inferred_from=source)


def _with_positions(dims: Dims, tables: Mapping[Weight, Operator]) -> Dims:
    """Take positions from the tallest of the tables that hold neither vocabulary nor tokens."""
    rows = max((rows for rows, width in tables if width == dims.hidden), default=None)
    if rows is None or dims.hidden is None:
        return dims
    source = {"positions": _say(tables[rows, dims.hidden])}
    return replace(dims, positions=rows, inferred_from={**dims.inferred_from, **source})


def _with_heads(dims: Dims, operators: Mapping[Operator, int]) -> Dims:
    """Take key heads and head size from the cache, else from attention; then the query heads."""
    cached = _most(operators, appended_keys)
    keys = cached or _most(operators, called_keys)
    if keys is None:
        return dims
    (kv_heads, head_dim), from_keys = keys
    latent = _with_latent(dims, operators, kv_heads, head_dim)
    if latent is not None:
        return latent
    taken_in = {inputs for inputs, outputs in count_weights(operators) if outputs == dims.hidden}
    called = {size for op in operators for size in called_sizes(op, head_dim)}
    queries = (
        _most(operators, lambda op: projected_heads(op, head_dim, taken_in, called))
        or _most(operators, lambda op: projected_heads(op, head_dim, taken_in))
        or _most(operators, lambda op: called_heads(op, head_dim))
    )
    heads, from_queries = queries or (kv_heads, from_keys)
    source = {"kv_heads, head_dim": _say(from_keys), "heads": _say(from_queries)}
    return replace(
        dims,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        cached_keys=cached is not None,
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
    (experts, _), op = stack
    stacks = {found for o in operators if (found := expert_stack(o, hidden))}
    inner = _inner_of_experts({width for count, width in stacks if count == experts})
    rows = {o.shapes[0][0] for o in operators if expert_stack(o, hidden) and o.shapes[0]}
    chosen = _most(operators, lambda op: summed_experts(op, hidden, rows))
    source = {"experts": _say(op)} | ({"experts_per_token": _say(chosen[1])} if chosen else {})
    return replace(
        dims,
        experts=experts,
        experts_per_token=chosen[0] if chosen and chosen[0] <= experts else None,
        inner=inner,
        expert_inner=inner,
        inferred_from={**dims.inferred_from, **source},
    )


def _inner_of_experts(widths: set[int]) -> frozenset[int]:
    """Return what goes back to hidden; one width alone may be that, or twice it on the way in."""
    single = {width for width in widths if 2 * width in widths}
    return frozenset(single or widths | {width // 2 for width in widths if width % 2 == 0})


def _with_inner(dims: Dims, operators: Mapping[Operator, int]) -> Dims:
    """Take the MLP's width from what hidden goes to and comes back from, beside attention."""
    weights = count_weights(operators)
    back = {inputs for inputs, outputs in weights if outputs == dims.hidden}
    out = {outputs for inputs, outputs in weights if inputs == dims.hidden}
    others = {dims.query_width, dims.value_width, dims.vocab, dims.experts, 1}
    if dims.kv_width == dims.hidden:  # keys alone go out and seem to come back
        others.add(dims.kv_width)
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
