"""Propose stages for matrix multiplications, by the sizes of what they multiply."""

from collections.abc import Sequence

from whichwall.analyze.roles.dims import Dims
from whichwall.analyze.roles.operators import Shape
from whichwall.analyze.roles.rules import RARE, TYPICAL, Levels, S, levels
from whichwall.analyze.roles.stages import Stage

# Heads are padded to a round number of columns for speed and for splitting over ranks.
HEAD_PADDING = 512

UNSEEN = levels(
    (),
    (S.QKV, S.OUT, S.GATE_UP, S.DOWN, S.HEAD),
    (S.SCORES, S.VALUES, S.EXPERTS, S.ROUTE, S.TURN),
)
UNSEEN_BATCH = levels((), (S.SCORES, S.VALUES), (S.TURN, S.EXPERTS))


def weight_levels(weight: tuple[int, int] | None, dims: Dims) -> Levels:
    """Return the stages of a product with a weight of (inputs, outputs); None: sizes unseen."""
    if weight is None:
        return UNSEEN
    inputs, outputs = weight
    if inputs == 1:
        return levels((S.TURN,), (), (S.EXPERTS,))  # an outer product: positions × frequencies
    if dims.hidden is None:
        return UNSEEN
    fitting = _fitting(inputs, outputs, dims)
    if fitting:
        return dict.fromkeys(fitting, TYPICAL)
    if inputs == dims.hidden:
        return levels((), (S.QKV, S.GATE_UP), (S.ROUTE, S.OUT))
    if outputs == dims.hidden:
        return levels((), (S.OUT, S.DOWN), (S.QKV,))
    return levels((), (), (S.QKV, S.OUT, S.GATE_UP, S.DOWN, S.EXPERTS, S.HEAD))


def _fitting(inputs: int, outputs: int, dims: Dims) -> set[Stage]:
    """Return the stages whose weight has exactly these sizes."""
    found: set[Stage] = set()
    inner = dims.inner | {2 * w for w in dims.inner}
    if inputs == dims.hidden:
        if outputs in _query_key_value(dims):
            found.add(S.QKV)
        if outputs in inner:
            found |= {S.GATE_UP, S.EXPERTS} if dims.experts else {S.GATE_UP}
        if outputs in (dims.experts, 1):
            found.add(S.ROUTE)
        if _is_vocab(outputs, dims):
            found.add(S.HEAD)
    if outputs == dims.hidden:
        if inputs == dims.value_width:
            found.add(S.OUT)
        if inputs in dims.inner:
            found |= {S.DOWN, S.EXPERTS} if dims.experts else {S.DOWN}
    if inputs in dims.latent:
        found.add(S.QKV)
    return found


def _query_key_value(dims: Dims) -> set[int]:
    """Return the widths of queries, keys and values, one by one and in the fusions in use."""
    query, key = dims.query_width, dims.kv_width
    found = set(dims.latent) | {sum(dims.latent)} - {0}
    if query and key:
        found |= {query, key, 2 * key, query + key, query + 2 * key}
        found |= {2 * query, 2 * query + 2 * key}  # queries with a gate for each
    return found


def _is_vocab(outputs: int, dims: Dims) -> bool:
    if not dims.vocab:
        return False
    part = dims.vocab // dims.shards
    return any(v <= outputs < v + HEAD_PADDING for v in (dims.vocab, part))


def batch_levels(shapes: Sequence[Shape], dims: Dims) -> Levels:
    """Return the stages of a batched product [n, a, k] × [n, k, b]."""
    if len(shapes) != 2:
        return UNSEEN_BATCH
    left, right = shapes
    if left[2] == 1:
        return levels((S.TURN,), (), (S.VALUES,))  # frequencies × positions; or one key only
    if dims.experts == right[0] and dims.hidden in right[1:]:
        return levels((S.EXPERTS,))
    if left[2] != dims.head_dim and right[2] != dims.head_dim:
        shared = _fitting(right[1], right[2], dims)  # one weight, repeated for the batch
        if shared:
            return dict.fromkeys(shared, TYPICAL)
    if dims.head_dim is None:
        return UNSEEN_BATCH
    over_heads = left[2] == dims.head_dim
    to_heads = right[2] in (dims.head_dim, dims.value_dim)
    found: dict[Stage, float] = {}
    if over_heads:
        found[S.SCORES] = TYPICAL
    if to_heads:
        found[S.VALUES] = TYPICAL
    if not found:
        return levels((), (S.SCORES, S.VALUES, S.QKV), (S.EXPERTS, S.TURN))
    return {S.SCORES: RARE, S.VALUES: RARE, **found} if len(found) == 1 else found
