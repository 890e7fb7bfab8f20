"""What a tensor can be, told by its shape against the model's widths."""

from enum import StrEnum, auto
from itertools import pairwise
from math import prod

from whichwall.analyze.roles.dims import Dims
from whichwall.analyze.roles.operators import INTEGER_TYPES, Operator, Shape


class Kind(StrEnum):
    """What a tensor stands for in a decoder."""

    HIDDEN = auto()  # the residual stream: [..., hidden]
    HIDDEN_VECTOR = auto()  # a norm's weight, a bias: [hidden]
    ROW_NUMBER = auto()  # one number per token: [..., 1]
    INNER = auto()  # inside the MLP
    VOCAB = auto()  # logits
    HEADS = auto()  # queries, keys or values by head
    HALF_HEADS = auto()  # a part of each head, as the rotation splits it
    HEAD_NUMBER = auto()  # one number per head and token
    HEAD_VECTOR = auto()  # the weight of a norm over a head: [head_dim]
    ALL_HEADS = auto()  # all heads laid flat, where that is not the hidden width
    REPEATED = auto()  # keys or values repeated for groups of queries
    SCORES = auto()  # queries × keys
    MASK = auto()  # one for all heads
    ANGLES = auto()  # what the rotation is built from, or cos and sin: no heads
    EXPERT = auto()  # a number per expert
    ROUTED = auto()  # a number per expert chosen, or per group of experts
    SPREAD = auto()  # hidden of each chosen expert, before they are summed
    WHOLE = auto()  # whole numbers: positions, ids, indices
    SCALAR = auto()
    OTHER = auto()  # a shape that fits nothing


# Of an operator whose shapes are not known, the tensor is seldom one of these.
SELDOM = frozenset(
    {Kind.EXPERT, Kind.ROUTED, Kind.SPREAD, Kind.ALL_HEADS, Kind.HEAD_NUMBER, Kind.HEAD_VECTOR}
    | {Kind.ROW_NUMBER, Kind.WHOLE, Kind.MASK, Kind.OTHER}
)

TRUTH = "bool"  # as recorded

# A reading that needs a coincidence of sizes is kept, at this cost.
COINCIDENCE = 0.5
Kinds = tuple[tuple[Kind, float], ...]


def main_kinds(op: Operator, dims: Dims) -> Kinds:
    """Return what an operator's largest tensor can be, each with the cost of reading it so."""
    if op.main is None:
        return ()
    shape, type_ = op.shapes[op.main], op.types[op.main]
    if op.word == "where" and type_ == TRUTH:  # what is chosen counts, not by what
        alike = zip(op.shapes, op.types, strict=True)
        type_ = next((t for s, t in alike if s == shape and t != TRUTH), type_)
    return tensor_kinds(shape, type_, dims)


def tensor_kinds(shape: Shape, type_: str, dims: Dims) -> Kinds:
    """Return what a tensor can be, the likeliest first."""
    if not shape:
        return ((Kind.SCALAR, 0.0),)
    if len(shape) != 4 and type_ in INTEGER_TYPES:
        marks_experts = type_ == TRUTH and len(shape) > 1 and shape[-1] == dims.experts
        return ((Kind.EXPERT, 0.0), (Kind.WHOLE, COINCIDENCE))[not marks_experts :]
    readers = {1: _vector, 4: _by_head, 5: _five_sizes}
    found = readers.get(len(shape), _rows)(shape, dims)
    if not found:
        return ((Kind.OTHER, 0.0),)
    if all(cost > 0 for _, cost in found):
        return (*found, (Kind.OTHER, COINCIDENCE))
    return found


def _vector(shape: Shape, dims: Dims) -> Kinds:
    (size,) = shape
    found: list[tuple[Kind, float]] = []
    if size == dims.hidden:
        found.append((Kind.HIDDEN_VECTOR, 0.0))
    if size == dims.query_width or size == dims.kv_width:
        found.append((Kind.ALL_HEADS, COINCIDENCE))
    if size == dims.head_dim:
        found.append((Kind.HEAD_VECTOR, 0.0))
    if dims.head_dim and size in (dims.head_dim // 2, dims.head_dim // 4):
        found.append((Kind.ANGLES, COINCIDENCE))
    if size in dims.inner:
        found.append((Kind.INNER, 0.0))
    if size == dims.experts:
        found.append((Kind.EXPERT, 0.0))
    return tuple(found)


def _rows(shape: Shape, dims: Dims) -> Kinds:
    """Read [tokens, width], [batch, tokens, width], and heads laid out as [tokens, heads, size]."""
    last = shape[-1]
    found: list[tuple[Kind, float]] = []
    if last == dims.hidden:
        found += _hidden(shape, dims)
    if last in dims.inner or (last % 2 == 0 and last // 2 in dims.inner):
        found.append((Kind.INNER, 0.0))
    if dims.vocab and last in (dims.vocab, dims.vocab // dims.shards):
        found.append((Kind.VOCAB, 0.0))
    if len(shape) == 3 and shape[1] in _head_counts(dims) and last == dims.head_dim:
        found.append((Kind.HEADS, 0.0 if shape[1] > 1 else COINCIDENCE))
    widths = {dims.query_width, dims.kv_width, dims.value_width, *dims.latent}
    if last in widths:
        found.append((Kind.ALL_HEADS, COINCIDENCE if found and not dims.flat_norms else 0.0))
    if dims.experts and dims.experts in (last, prod(shape[1:])):
        found.append((Kind.EXPERT, 0.0))
    if dims.experts and len(shape) == 2:
        found += _routed(last, dims.experts, dims.experts_per_token)
    angles = _angles(shape, dims)
    if angles is not None:
        found.append((Kind.ANGLES, angles))
    if last == 1:
        found.append((Kind.ROW_NUMBER, 0.0))
    return tuple(found)


def _routed(last: int, experts: int, chosen: int | None) -> Kinds:
    """Read a number for each expert chosen, or for each of the groups that experts are in."""
    if last == chosen:
        return ((Kind.ROUTED, 0.0),)
    return ((Kind.ROUTED, COINCIDENCE),) if last < experts and experts % last == 0 else ()


def _hidden(shape: Shape, dims: Dims) -> list[tuple[Kind, float]]:
    """Read [batch, tokens, hidden], or [tokens, experts chosen, hidden] by its middle size."""
    if len(shape) != 3 or shape[1] != dims.experts_per_token:
        return [(Kind.HIDDEN, 0.0)]
    if shape[0] == 1:
        return [(Kind.HIDDEN, 0.0), (Kind.SPREAD, COINCIDENCE)]
    return [(Kind.SPREAD, 0.0), (Kind.HIDDEN, COINCIDENCE)]


def _five_sizes(shape: Shape, dims: Dims) -> Kinds:
    """Read keys with room for the queries of their group, and heads split into pairs to turn."""
    if shape[4] == dims.head_dim and shape[1] == dims.kv_heads:
        return ((Kind.REPEATED, 0.0),)
    return ((Kind.HALF_HEADS, 0.0),) if shape[3] * shape[4] == dims.head_dim else ()


def _angles(shape: Shape, dims: Dims) -> float | None:
    """Return the cost of reading frequencies [1, size/2, 1] or angles [batch, n, size].

    The size is that of a head, half of it, or that of the part of each head that is turned.
    """
    if dims.head_dim is None:
        return None
    whole = (dims.head_dim, dims.head_dim // 2)
    size = shape[1] if len(shape) == 3 and shape[-1] == 1 else shape[-1]
    if size in whole:
        return 0.0
    if len(shape) == 2:
        return None
    return COINCIDENCE if 1 < size < dims.head_dim and size % 2 == 0 else None


def is_frequencies(shape: Shape, dims: Dims) -> bool:
    """Tell frequencies [batch, size/2, 1], one for each pair of a head's numbers."""
    if dims.head_dim is None or len(shape) != 3:
        return False
    return shape[1:] == (dims.head_dim // 2, 1)


def _head_counts(dims: Dims) -> set[int]:
    return {n for n in (dims.heads, dims.kv_heads) if n}


def _by_head(shape: Shape, dims: Dims) -> Kinds:
    """Read four sizes: heads and tokens in either order, or scores, or a mask."""
    counts, size = _head_counts(dims), dims.head_dim
    one, two, last = shape[1], shape[2], shape[3]
    found: list[tuple[Kind, float]] = []
    if not size or not counts:
        return ()
    by_head = one in counts or two in counts
    if by_head and last in (size, dims.value_dim):
        found.append((Kind.HEADS, 0.0))
    elif by_head and last < size and last > 1:
        found.append((Kind.HALF_HEADS, 0.0))
    if by_head and last == 1:
        found.append((Kind.HEAD_NUMBER, 0.0))
    if one == 1 and 1 < last <= size:
        of_one_head = () if found else ((Kind.HALF_HEADS, COINCIDENCE),)
        found += [(Kind.ANGLES, COINCIDENCE if found else 0.0), *of_one_head]
    if one == dims.heads:
        found.append((Kind.SCORES, COINCIDENCE if found else 0.0))
    if one == 1:
        found.append((Kind.MASK, COINCIDENCE if found else 0.0))
    return tuple(found)


def repeats_heads(op: Operator, dims: Dims) -> bool:
    """Tell whether an operator reads fewer heads than it writes: keys repeated for queries."""
    if dims.heads == dims.kv_heads:
        return False
    heads = [s[1] for s in op.shapes if len(s) == 4 and s[3] == dims.head_dim]
    return any(pair == (dims.kv_heads, dims.heads) for pair in pairwise(heads))
