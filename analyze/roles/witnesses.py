"""What single operators tell of the model: weights, token tables, heads, experts.

Each function reads one operator and returns None where it tells nothing of the kind.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from math import prod
from typing import NamedTuple

from whichwall.analyze.roles.kernel_words import BATCHED_MATMULS, LOOKUPS, MATMULS, fused_word
from whichwall.analyze.roles.operators import INTEGER_TYPES, Operator, Shape

GENERATED = "triton_"
Weight = tuple[int, int]  # inputs, outputs


def weight_of(op: Operator) -> Weight | None:
    """Return the sizes of the weight that a matrix multiplication reads."""
    if op.word not in MATMULS:
        return None
    if op.word == "linear":  # its weight is stored the other way round
        stored = [s for s in op.shapes[1:2] if len(s) == 2]
        return (stored[0][1], stored[0][0]) if stored else None
    matrices = [s for s in op.shapes if len(s) == 2]
    for left, right in pairwise(matrices):
        if left[1] == right[0]:
            return right[0], right[1]
    return None


def multiplied_rows(op: Operator) -> int | None:
    """Return how many rows a product with a weight multiplies: the tokens, or some of them."""
    weight = weight_of(op)
    if weight is None:
        return None
    return next((prod(s[:-1]) for s in op.shapes if len(s) > 1 and s[-1] == weight[0]), None)


def count_weights(operators: Mapping[Operator, int]) -> Counter[Weight]:
    """Count matrix multiplications by the sizes of their weight."""
    counts: Counter[Weight] = Counter()
    for op, count in operators.items():
        weight = weight_of(op)
        if weight:
            counts[weight] += count
    return counts


def table_of(op: Operator) -> Weight | None:
    """Return (rows, width) of the float table that integers look rows up in."""
    if op.word not in LOOKUPS or not op.shapes or len(op.shapes[0]) != 2:
        return None
    if op.types[0] in INTEGER_TYPES or not any(t in INTEGER_TYPES for t in op.types[1:]):
        return None
    return op.shapes[0][0], op.shapes[0][1]


def appended_keys(op: Operator) -> tuple[int, int] | None:
    """Return (heads, size) of the keys or values that are put into a cache."""
    first: Shape = op.shapes[0] if op.shapes else ()
    if op.word == "cat" and is_append(op.shapes):
        return op.shapes[-1][1], op.shapes[-1][3]
    if op.word == "index_copy" and len(first) == 4:
        return first[1], first[3]
    if fused_word(op.word) == "write_cache" and len(first) == 3:
        return first[1], first[2]
    return None


def called_keys(op: Operator) -> tuple[int, int] | None:
    """Return (heads, size) of the keys that fused attention is called with.

    They are [batch, heads, tokens, size] beside queries alike, and [..., heads, size], paged or
    not, beside queries of tokens laid flat.
    """
    if not _attends(op) or len(op.shapes) < 2:
        return None
    queries, keys = op.shapes[:2]
    if len(queries) == len(keys) == 4:
        return keys[1], keys[3]
    return (keys[-2], keys[-1]) if len(queries) == 3 and len(keys) in (3, 4) else None


def _attends(op: Operator) -> bool:
    """Tell a call of attention from a generated kernel that is only named after what it feeds."""
    return fused_word(op.word) == "attend" and not op.word.startswith(GENERATED)


def attended(operators: Mapping[Operator, int]) -> tuple["Attended", Operator] | None:
    """Return what attention itself multiplies: sizes of the heads of keys and of values.

    From a call of fused attention [batch, heads, tokens, size], else from the two batched products
    around a softmax over [batch, heads, queries, keys].
    """
    for op in sorted(operators, key=lambda o: -operators[o]):
        if _attends(op) and [len(s) for s in op.shapes[:3]] == [4, 4, 4]:
            queries, keys, values = op.shapes[:3]
            return Attended(queries[1], keys[1], keys[3], values[3]), op
    scores = {op.shapes[0]: op for op in operators if op.word == "softmax" and op.shapes}
    products = [op.shapes[:2] for op in operators if op.word in BATCHED_MATMULS]
    for scored, op in scores.items():
        if len(scored) != 4:
            continue
        batch, heads, queries_, keys_ = scored
        sizes = [
            right[2]
            for left, right in products
            if left == (batch * heads, queries_, keys_) and right[1] == keys_
        ]
        head_dims = [
            left[2]
            for left, right in products
            if left[:2] == (batch * heads, queries_) and right[2] == keys_
        ]
        if sizes and head_dims:
            return Attended(heads, heads, head_dims[0], sizes[0]), op
    return None


class Attended(NamedTuple):
    """Heads that attention multiplies."""

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int


def projected_heads(
    op: Operator, head_dim: int, outputs: set[int], among: set[int] | None = None
) -> int | None:
    """Return the heads of a tensor which, laid flat, is what an output projection takes in.

    Of `among` alone, where that is given.
    """
    for shape in op.shapes:
        if len(shape) == 4 and shape[3] == head_dim:
            for heads in shape[1:3]:
                told = among is None or heads in among
                if heads > 1 and told and heads * head_dim in outputs:
                    return heads
    return None


def called_sizes(op: Operator, head_dim: int) -> Shape:
    """Return sizes of which one is the query heads: of scores, or of a call in either layout."""
    first: Shape = op.shapes[0] if op.shapes else ()
    if op.word == "softmax" and len(first) == 4:
        return first[1:2]
    if _attends(op) and first[-1:] == (head_dim,) and len(first) in (3, 4):
        return first[1:-1]
    return ()


def called_heads(op: Operator, head_dim: int) -> int | None:
    """Return the heads of scores under a softmax, or of queries in a call of fused attention."""
    first: Shape = op.shapes[0] if op.shapes else ()
    if op.word == "softmax" and len(first) == 4:
        return first[1]
    if _attends(op) and first[-1:] == (head_dim,) and len(first) in (3, 4):
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


def expert_stack(op: Operator, hidden: int) -> tuple[int, int] | None:
    """Return (experts, width) of a batch of weights, one an expert, to or from `hidden`."""
    if fused_word(op.word) != "grouped_mm":
        return None
    for shape in op.shapes:
        if len(shape) == 3 and hidden in shape[1:]:
            return shape[0], next((w for w in shape[1:] if w != hidden), hidden)
    return None


def summed_experts(op: Operator, hidden: int, rows: set[int]) -> int | None:
    """Return how many experts' outputs are summed for a token: [tokens, chosen, hidden].

    Tokens and choices together are as many as the `rows` that the experts multiplied.
    """
    first: Shape = op.shapes[0] if op.shapes else ()
    if op.word != "sum" or len(first) != 3 or first[2] != hidden:
        return None
    return first[1] if first[0] * first[1] in rows else None
