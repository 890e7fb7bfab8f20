"""Tell by order whether queries and keys are normalised over all heads together.

Where all heads together are as wide as the hidden state, shapes alone cannot tell such a norm
from one of the residual stream. Order can: what one projection made is normalised before the
next one, and no sum of two streams lies between.
"""

from collections.abc import Sequence

import numpy as np

from whichwall.analyze.roles.dims import Dims
from whichwall.analyze.roles.operators import Operator
from whichwall.analyze.roles.order import Numbers
from whichwall.analyze.roles.witnesses import weight_of

STATISTICS = frozenset(
    {"mean", "var_mean", "native_layer_norm", "rms_norm", "fused_rms_norm", "layer_norm"}
)
POINTWISE = frozenset({"copy", "to_copy", "pow", "square", "add", "rsqrt", "mul", "sub", "div"})

# Of such a model's norms at least so many are of queries or keys: of four in a layer, one.
LEAST_SHARE = 0.25

BREAK, PART, NORM, PROJECTION = range(4)


def are_norms_flat(operators: Sequence[Operator | None], order: Numbers, dims: Dims) -> bool:
    """Tell whether enough norms lie between two projections to heads.

    Args:
        operators: the distinct operators of a recording, None where a kernel has none.
        order: index into them of each activity, in order.
        dims: the widths, without which nothing is told.
    """
    if dims.hidden is None or dims.query_width is None:
        return False
    seen = np.array([_kind(op, dims) for op in operators], np.int64)[order]
    seen = seen[seen != PART]
    norms = np.flatnonzero((seen == NORM) & (np.append(seen[1:], BREAK) != NORM))
    if not len(norms):
        return False
    begun = np.flatnonzero((seen == NORM) & (np.insert(seen[:-1], 0, BREAK) != NORM))
    edged = np.concatenate([[BREAK], seen, [BREAK]])
    before, after = edged[begun], edged[norms + 2]
    flat = (before == PROJECTION) & (after == PROJECTION)
    return bool(flat.mean() >= LEAST_SHARE)


def _kind(op: Operator | None, dims: Dims) -> int:
    if op is None or op.main is None:
        return BREAK
    weight = weight_of(op)
    if weight is not None:
        heads = weight[0] == dims.hidden and weight[1] in (dims.query_width, dims.kv_width)
        return PROJECTION if heads else BREAK
    whole = op.shapes[op.main]
    if sum(len(shape) > 1 for shape in op.shapes) == 1 and op.word in STATISTICS:
        return NORM if whole[-1] in (dims.query_width, dims.kv_width) else BREAK
    sums_streams = op.word == "add" and op.shapes.count(whole) > 1
    return PART if op.word in POINTWISE and not sums_streams else BREAK
