"""Propose stages where not one tensor but how several go together tells the place."""

from whichwall.analyze.roles.dims import Dims
from whichwall.analyze.roles.operators import INTEGER_TYPES, Operator, Shape
from whichwall.analyze.roles.rules import ADDS, CORE, LEANING, MASKS, NORMS, Levels, S, levels
from whichwall.analyze.roles.tensor_kinds import TRUTH, Kind, repeats_heads
from whichwall.analyze.roles.witnesses import is_append

FULL_PRECISION = "float"  # as recorded

REPEAT = levels((S.CACHE,))
APPEND = levels((S.CACHE,), (), (S.ROPE,))
TURN_HALVES = levels((S.ROPE,), (), (S.CACHE,))
LOOKUP = levels((S.EMBED,))

BY_WEIGHT = levels((S.QK_NORM,))
BY_ANGLE = levels((S.ROPE,))
BY_NUMBER = levels((S.SCALE, S.SCORES, S.ATTEND), (S.SOFTMAX,), (S.ROPE, S.QKV))
TO_ANGLES = levels((S.TURN,), (), (S.EXPERTS,))  # positions, to be multiplied by frequencies
OF_TRUTHS = levels((S.MASK,), (S.LAYER_MASK, S.EXPERTS, S.SAMPLE)) | {S.POSITION: LEANING}
TO_ROUTER = levels((S.ROUTE,), (), (S.EXPERTS,)) | dict.fromkeys(NORMS, LEANING)
CAST_HEADS = levels((S.QK_NORM, S.ROPE, S.SCORES), (S.SOFTMAX,), (*CORE, S.CACHE))
WIDENED_HEADS = CAST_HEADS | {S.ROPE: LEANING}  # more often for a norm that follows
PACKED_HEADS = levels(CORE, (S.CACHE, S.SCORES, S.QK_NORM), (S.ROPE,))
BIAS_OF_SCORES = levels((S.SCORES,), (S.SOFTMAX,), MASKS)

SUM_OF_TWO = levels((*ADDS, S.SHARED), (S.EMBED, S.EXPERTS))
SUM_OF_HEADS = levels((S.ROPE,), (), (S.QK_NORM, *CORE))
KEYS_BY_NUMBER = levels((S.SCALE, S.SCORES), (S.ATTEND,), MASKS)
PLACES = levels((S.EMBED,), (S.POSITION, S.MASK), (S.CACHE, S.LAYER_MASK, S.TURN))
QKV_BIAS = levels((S.QKV,), (S.QK_NORM,))
BIAS = levels((), (*NORMS, S.OUT, S.DOWN), (S.QKV, S.EMBED))
SCALED = levels((S.EMBED, *ADDS, S.SCALE), NORMS, (S.QKV, S.EXPERTS, S.OUT))
SCALED_HEADS = levels((S.SCALE,), (S.QK_NORM, S.ROPE), CORE)
SINK = levels((S.SOFTMAX,))
OF_HEADS = levels((S.QK_NORM,))
# Not cast, hidden states are laid anew: what attention or experts made, seldom what is normed.
KEPT_HIDDEN = levels((S.EXPERTS, *CORE), (S.EMBED,), (*ADDS, S.OUT, *NORMS))
BY_TEMPERATURE = levels((S.SAMPLE,), (), (S.HEAD,))


def together(op: Operator, dims: Dims, kind: Kind) -> Levels | None:
    """Return the stages that the tensors of an operator agree on, its largest read as `kind`.

    None where together they say no more than that one.
    """
    if op.word in ("cat", "concat") and len(op.shapes) > 1:
        return _joined(op, dims)
    if op.word in ("copy", "clone", "to_copy", "expand"):
        return _copied(op, dims, kind)
    if op.word == "mul":
        return _multiplied(op, dims, kind)
    if op.word == "norm" and dims.head_dim != dims.hidden and (dims.head_dim,) in op.shapes:
        return OF_HEADS
    if op.word == "div" and kind == Kind.VOCAB and any(s[1:] == (1,) for s in op.shapes):
        return BY_TEMPERATURE
    if op.word == "add" and kind in (Kind.HIDDEN, Kind.ALL_HEADS):
        return _added(op, kind)
    if op.word == "add" and kind == Kind.WHOLE:
        return PLACES if _shifts_positions(op, dims) else None
    if op.word == "sum" and op.types[0] == TRUTH:
        return OF_TRUTHS
    return None


def lookup(op: Operator, dims: Dims) -> Levels | None:
    """Return the embedding for rows looked up in a table of the vocabulary or of positions."""
    if not op.shapes or len(op.shapes[0]) != 2 or op.types[0] in INTEGER_TYPES:
        return None
    rows, width = op.shapes[0]
    tables = {dims.vocab, dims.vocab // dims.shards if dims.vocab else None, dims.positions}
    if rows in tables and width == dims.hidden:
        return LOOKUP
    return LOOKUP if op.word == "embedding" else None


def _joined(op: Operator, dims: Dims) -> Levels | None:
    if any(len(s) not in (1, 4) for s in op.shapes):
        return None
    sizes = [s[3] for s in op.shapes if len(s) == 4]
    if not sizes or not dims.head_dim:
        return None
    if sum(sizes) == dims.head_dim and len({s[:3] for s in op.shapes}) == 1 < len(sizes):
        return TURN_HALVES
    if is_append(op.shapes):
        return APPEND
    if op.shapes[0][1] == dims.heads and sizes[-1] == 1:
        return SINK
    return TURN_HALVES if len(set(sizes)) > 1 else None


def _copied(op: Operator, dims: Dims, kind: Kind) -> Levels | None:
    if repeats_heads(op, dims):
        return REPEAT
    if len(op.types) < 2:
        return None
    if op.types[0] == op.types[1]:
        return _packed(op.shapes[0], dims, kind)
    if TRUTH in op.types[:2] and kind in (Kind.WHOLE, Kind.OTHER):
        return OF_TRUTHS
    if op.types[1] in INTEGER_TYPES and len(op.shapes[0]) == 3:
        return TO_ANGLES
    if kind == Kind.HIDDEN and dims.experts and _widens_rows(op):
        return TO_ROUTER
    if kind in (Kind.HEADS, Kind.ALL_HEADS):
        return WIDENED_HEADS if op.types[0] == FULL_PRECISION else CAST_HEADS
    return None


def _packed(shape: Shape, dims: Dims, kind: Kind) -> Levels | None:
    """Tell what is copied as it is: hidden states, heads [batch, tokens, heads, size], a bias.

    The bias is of scores, [batch × heads, queries, keys]: a product with one begins by copying it.
    """
    if kind == Kind.HEADS and len(shape) == 4 and shape[2] in (dims.heads, dims.kv_heads):
        return PACKED_HEADS
    if kind == Kind.HIDDEN:
        return KEPT_HIDDEN
    flat = kind == Kind.OTHER and len(shape) == 3 and shape[0] > 1
    return BIAS_OF_SCORES if flat and dims.heads and shape[0] % dims.heads == 0 else None


def _widens_rows(op: Operator) -> bool:
    """Tell [rows, hidden] made ready to be multiplied in full precision; norms keep a batch."""
    return len(op.shapes[0]) == 2 and op.types[0] == FULL_PRECISION


def _multiplied(op: Operator, dims: Dims, kind: Kind) -> Levels | None:
    """Tell what a tensor is multiplied by: a norm's parts, an angle, or a number."""
    if _turns_positions(op, dims):
        return TO_ANGLES
    whole = op.shapes[op.main or 0]
    other = next((s for i, s in enumerate(op.shapes) if i != op.main), ())
    if other == () and _are_turned_keys(whole, dims):
        return KEYS_BY_NUMBER
    if kind == Kind.HIDDEN:
        return SCALED if other == () else None
    if kind == Kind.ALL_HEADS:
        return SCALED_HEADS if other == () else None
    if kind != Kind.HEADS:
        return None
    if other == ():
        return BY_NUMBER
    if len(other) == 1 or (other[-1] == 1 and whole[-1] > 1):
        return BY_WEIGHT
    return BY_ANGLE if other[-1] == whole[-1] else None


def _turns_positions(op: Operator, dims: Dims) -> bool:
    """Tell positions [..., n, 1] times frequencies [size / 2] or a part of it."""
    if len(op.shapes) != 2 or dims.head_dim is None:
        return False
    positions, frequencies = op.shapes
    one_each = len(positions) > 1 and positions[-1] == 1
    return one_each and len(frequencies) == 1 and frequencies[0] <= dims.head_dim // 2


def _are_turned_keys(shape: Shape, dims: Dims) -> bool:
    """Tell keys [batch, heads, size, tokens], laid out to be multiplied by queries."""
    return (
        dims.head_dim is not None
        and len(shape) == 4
        and shape[1] in (dims.heads, dims.kv_heads)
        and shape[2] == dims.head_dim
    )


def _shifts_positions(op: Operator, dims: Dims) -> bool:
    """Tell positions [batch, tokens] plus a number: the first rows of their table are reserved."""
    return dims.positions is not None and len(op.shapes[0]) == 2 and op.shapes[1:] == ((),)


def _added(op: Operator, kind: Kind) -> Levels | None:
    """Tell a sum of two streams from a bias."""
    whole = op.shapes[op.main or 0]
    others = [s for i, s in enumerate(op.shapes) if i != op.main]
    if whole in others:
        return SUM_OF_TWO if kind == Kind.HIDDEN else SUM_OF_HEADS
    if any(len(s) == 1 for s in others):
        return BIAS if kind == Kind.HIDDEN else QKV_BIAS
    return None
