"""Which stages an operator can belong to, by its word and by what its tensor is.

A rule gives each stage a level: how usual it is, over all decoders, that this stage has this
operator on this tensor. Levels are costs, in units of about the negative logarithm of the
frequency, and are added to the costs of `stages`. A stage that no rule names does not have
the operator.
"""

from collections.abc import Mapping

from whichwall.analyze.roles.kernel_words import ACTIVATIONS, COMPARISONS, PICKS, WRITE_BACK
from whichwall.analyze.roles.stages import Stage
from whichwall.analyze.roles.tensor_kinds import Kind

# Short, for tables.
S, K = Stage, Kind

TYPICAL, POSSIBLE, RARE, ODD = 0.0, 1.0, 2.5, 4.5

Levels = dict[Stage, float]
Rules = Mapping[Kind, Levels]  # by what the tensor is
Stages = tuple[Stage, ...]

NORMS: Stages = (S.NORM_EMBED, S.NORM_IN, S.NORM_OUT, S.NORM_MLP, S.NORM_DOWN, S.NORM_LAST)
ADDS: Stages = (S.ADD_OUT, S.ADD_DOWN)
MASKS: Stages = (S.MASK, S.LAYER_MASK)
LOGITS: Stages = (S.HEAD, S.SAMPLE)
MOE: Stages = (S.ROUTE, S.EXPERTS)
PRODUCTS: Stages = (S.SCORES, S.VALUES)
CORE: Stages = (S.ATTEND, S.VALUES)


def levels(
    typical: Stages = (), possible: Stages = (), rare: Stages = (), odd: Stages = ()
) -> Levels:
    """Return the level of each stage named."""
    grades = ((odd, ODD), (rare, RARE), (possible, POSSIBLE), (typical, TYPICAL))
    return {stage: grade for stages, grade in grades for stage in stages}


# Whole numbers go to a mask where one is built, but are no reason to believe that one is.
LEANING = 0.05
_WHOLE = levels(
    (S.MASK,),
    (S.CACHE, S.LAYER_MASK, S.EXPERTS, S.EMBED, S.HEAD, S.SAMPLE),
    (S.ROUTE, S.TURN),
) | {S.POSITION: LEANING}
_MOVED = _WHOLE | {S.POSITION: TYPICAL, S.MASK: LEANING}  # made ready, not compared
_WHOLE_CHOICE = levels((*MASKS, S.EXPERTS), (S.CACHE, S.ROUTE), (S.SAMPLE, S.POSITION, S.EMBED))
_ANGLES = levels((S.TURN,), (S.ROPE,))
_SCALAR = levels((*MASKS, S.CACHE), (S.POSITION, S.SAMPLE, S.EXPERTS), (S.TURN,))
_SOFT = levels((S.SOFTMAX,), (), (S.SCORES, S.VALUES, S.LAYER_MASK))

# What holds for any pointwise operator on such a tensor.
_POINTWISE: Rules = {
    K.HIDDEN: levels(NORMS, (S.EXPERTS,), (S.EMBED, *ADDS)),
    K.HIDDEN_VECTOR: levels(NORMS),
    K.ROW_NUMBER: levels((*NORMS, S.QK_NORM), (), MOE),
    K.INNER: levels((S.ACT,), (S.EXPERTS,)),
    K.VOCAB: levels(LOGITS),
    K.HEADS: levels((S.ROPE,), (S.QK_NORM,), (*PRODUCTS, S.ATTEND, S.CACHE)),
    K.HALF_HEADS: levels((S.ROPE,), (), (S.CACHE, S.QK_NORM)),
    K.HEAD_NUMBER: levels((S.QK_NORM,), (S.SOFTMAX,)),
    K.HEAD_VECTOR: levels((S.QK_NORM,)),
    K.ALL_HEADS: levels((S.QK_NORM,), (S.ROPE, S.QKV), (*CORE, S.OUT)),
    K.REPEATED: levels((S.CACHE,), (S.ROPE,)),
    K.SCORES: _SOFT,
    K.MASK: levels(MASKS, (), (S.SOFTMAX,)),
    K.ANGLES: _ANGLES,
    K.EXPERT: levels((S.ROUTE,), (S.EXPERTS,)),
    K.ROUTED: levels(MOE),
    K.SPREAD: levels((S.EXPERTS,)),
    K.WHOLE: _WHOLE,
    K.SCALAR: _SCALAR,
}

_ADD: Rules = {
    **_POINTWISE,
    K.HIDDEN: levels(ADDS, (S.EMBED, S.EXPERTS), (*NORMS, S.OUT, S.DOWN)),
    K.INNER: levels((S.ACT,), (S.EXPERTS, S.GATE_UP)),
    K.ALL_HEADS: levels((), (S.QKV, S.ROPE, S.QK_NORM)),
    K.SCALAR: _SCALAR | {S.TURN: LEANING},
}
_MUL: Rules = {
    **_POINTWISE,
    K.HIDDEN: levels(NORMS, (S.EXPERTS, S.EMBED), (*ADDS, S.OUT, S.QKV)),
}
_POWER: Rules = {
    **_POINTWISE,
    K.HIDDEN: levels(NORMS, (), (S.ACT, S.EXPERTS)),
    K.HEADS: levels((S.QK_NORM,), (), (S.SCORES,)),
}
_COPY: Rules = {
    **_POINTWISE,
    K.WHOLE: _MOVED,
    K.HIDDEN: levels(NORMS, (S.EXPERTS, *CORE), (S.EMBED, *ADDS, S.OUT)),
    K.HEADS: levels(CORE, (S.CACHE, S.SCORES), (S.QK_NORM, S.ROPE)),
    K.ALL_HEADS: levels(CORE, (), (S.QK_NORM, S.QKV, S.ROPE)),
    K.HEAD_VECTOR: levels((S.QK_NORM,)),
    K.SCORES: levels((S.SOFTMAX,), (S.VALUES,), (S.SCORES, S.LAYER_MASK)),
}
_JOIN: Rules = {
    K.HEADS: levels((S.CACHE,), (S.ROPE,), CORE),
    K.HALF_HEADS: levels((S.ROPE,), (), (S.CACHE,)),
    K.REPEATED: levels((S.ROPE,), (S.CACHE,)),
    K.ANGLES: _ANGLES,
    K.HIDDEN: levels((S.EXPERTS,), (S.EMBED,), (S.QKV,)),
    K.SPREAD: levels((S.EXPERTS,)),
    K.WHOLE: levels((S.SAMPLE, S.MASK), (S.POSITION, S.EXPERTS)),
    K.ROUTED: levels((S.ROUTE,), (S.EXPERTS,)),
    K.MASK: levels(MASKS),
    K.ALL_HEADS: levels((S.QKV,), (S.CACHE,)),
}
_WRITE: Rules = {
    K.HEADS: levels((S.CACHE,)),
    K.ALL_HEADS: levels((S.CACHE,)),
    K.WHOLE: levels((S.EXPERTS,), (S.POSITION, S.SAMPLE, S.MASK)),
    K.EXPERT: levels(MOE),
    K.HIDDEN: levels((S.EXPERTS,)),
    K.SPREAD: levels((S.EXPERTS,)),
    K.ROUTED: levels(MOE),
    K.VOCAB: levels((S.SAMPLE,)),
    K.MASK: levels(MASKS),
}
_TAKE: Rules = {
    K.HIDDEN: levels((S.EXPERTS, S.HEAD), (S.EMBED,)),
    K.SPREAD: levels((S.EXPERTS,)),
    K.INNER: levels((S.EXPERTS,)),
    K.WHOLE: levels((S.EXPERTS,), (S.MASK, S.SAMPLE)) | {S.POSITION: LEANING},
    K.ANGLES: _ANGLES,
    K.HEADS: levels((S.CACHE,)),
    K.EXPERT: levels(MOE),
    K.ROUTED: levels(MOE),
    K.VOCAB: levels((S.SAMPLE,), (S.HEAD,)),
    K.MASK: levels(MASKS),
    K.OTHER: levels((S.EXPERTS,), (S.POSITION, S.CACHE), (S.SAMPLE, S.QKV, S.ROPE)),
    # No decoder takes parts of a vector as wide: it has one number for each choice of an expert.
    K.HIDDEN_VECTOR: levels((S.EXPERTS,)),
    K.HEAD_VECTOR: levels((S.EXPERTS,)),
}
_LOOKUP: Rules = {**_TAKE, K.HIDDEN: levels((S.EMBED,), (S.EXPERTS,), (S.HEAD,))}
_STATISTIC: Rules = {
    K.HIDDEN: levels(NORMS),
    K.ROW_NUMBER: levels((*NORMS, S.QK_NORM), (), MOE),
    K.HEADS: levels((S.QK_NORM,)),
    K.HEAD_NUMBER: levels((S.QK_NORM,)),
    K.ALL_HEADS: levels((S.QK_NORM,)),
    K.OTHER: levels(NORMS, (S.QK_NORM,)),
}
_NORM: Rules = {
    K.HIDDEN: levels(NORMS),
    K.HEADS: levels((S.QK_NORM,)),
    K.ALL_HEADS: levels((S.QK_NORM,)),
    K.OTHER: levels(NORMS, (S.QK_NORM,)),
}
_SUM: Rules = {
    K.HIDDEN: levels((S.EXPERTS,), (), (*NORMS, *ADDS)),
    K.SPREAD: levels((S.EXPERTS,)),
    K.ROUTED: levels((S.ROUTE,), (S.EXPERTS,)),
    K.EXPERT: levels((S.ROUTE,), (S.EXPERTS,)),
    K.SCORES: levels((S.SOFTMAX,)),
    K.VOCAB: levels((S.SAMPLE,)),
    K.WHOLE: levels((S.EXPERTS,), (S.MASK, S.POSITION, S.SAMPLE)),
    K.MASK: levels(MASKS),
}
# By the farthest position some rotations choose their frequencies.
_FARTHEST = levels((S.EXPERTS, S.TURN), (), (S.MASK, S.POSITION, S.SAMPLE))
_GREATEST: Rules = {**_SUM, K.WHOLE: _FARTHEST}
_ACTIVATE: Rules = {
    K.INNER: levels((S.ACT,), (S.EXPERTS,)),
    K.OTHER: levels((S.ACT,), (S.EXPERTS,), (S.ROUTE,)),
    K.ROW_NUMBER: levels(MOE),
    K.EXPERT: levels((S.ROUTE,)),
    K.ALL_HEADS: levels((*CORE,), (S.QKV,)),
    K.HIDDEN: levels((S.ACT,), (*CORE, S.EXPERTS)),
}
_SQUASH: Rules = {
    K.INNER: levels((S.ACT,), (S.EXPERTS,)),
    K.VOCAB: levels((S.HEAD,), (S.SAMPLE,)),
    K.SCORES: _SOFT,
    K.ROUTED: levels((S.ROUTE,)),
    K.EXPERT: levels((S.ROUTE,)),
}
_SOFTMAX: Rules = {
    K.SCORES: levels((S.SOFTMAX,)),
    K.EXPERT: levels((S.ROUTE,)),
    K.ROUTED: levels((S.ROUTE,)),
    K.VOCAB: levels((S.SAMPLE,)),
    K.OTHER: levels((S.SOFTMAX,), (S.SAMPLE, S.ROUTE)),
}
_ORDER: Rules = {
    K.VOCAB: levels((S.SAMPLE,)),
    K.EXPERT: levels((S.ROUTE,)),
    K.ROUTED: levels((S.ROUTE,)),
    K.WHOLE: levels((S.EXPERTS,), (S.SAMPLE,)),
    K.OTHER: levels((S.ROUTE, S.SAMPLE), (S.EXPERTS,)),
}
_RUNNING: Rules = {
    K.VOCAB: levels((S.SAMPLE,)),
    K.EXPERT: levels((S.EXPERTS,)),
    K.WHOLE: levels((S.POSITION, S.EXPERTS), (S.MASK,)),
    K.OTHER: levels((S.EXPERTS, S.SAMPLE), (S.POSITION, S.MASK)),
}
_COMPARE: Rules = {
    K.MASK: levels(MASKS),
    K.SCORES: levels((S.SOFTMAX,), MASKS),
    K.HEAD_NUMBER: levels((S.SOFTMAX,), (S.LAYER_MASK,)),
    K.WHOLE: _WHOLE_CHOICE,
    K.SCALAR: _SCALAR,
    K.INNER: levels((S.EXPERTS,), (S.ACT,)),
    K.VOCAB: levels((S.SAMPLE,)),
    K.EXPERT: levels(MOE),
    K.ROUTED: levels(MOE),
    K.ROW_NUMBER: levels(MASKS, MOE),
    K.OTHER: levels(MASKS, (S.EXPERTS,), (S.SAMPLE,)),
}
_CHOOSE: Rules = {
    **_COMPARE,
    K.SCALAR: levels(MASKS, (S.CACHE, S.POSITION, S.SAMPLE, S.EXPERTS), (S.TURN,)),
    K.HIDDEN: levels((S.EXPERTS,), (), (S.EMBED,)),
    K.SPREAD: levels((S.EXPERTS,)),
}
# What is cut off at zero inside the MLP is its activation.
_CUT_OFF: Rules = {**_CHOOSE, K.INNER: levels((S.ACT,), (S.EXPERTS,))}
_FILL: Rules = {
    K.SCALAR: levels(MASKS, (S.SAMPLE, S.POSITION), (S.EXPERTS, S.SOFTMAX)),
    K.MASK: levels(MASKS),
    K.WHOLE: levels((S.MASK, S.EXPERTS), (S.SAMPLE,)) | {S.POSITION: LEANING},
    K.EXPERT: levels((S.EXPERTS,), (S.ROUTE,)),
    K.ROUTED: levels(MOE),
    K.ANGLES: levels((S.TURN,), MASKS),
    K.HIDDEN: levels((S.EXPERTS,)),
    K.HEADS: levels((), (S.CACHE,), CORE),  # a cache is filled once, when it is made
    K.SCORES: levels(MASKS, (S.SOFTMAX,)),
    K.VOCAB: levels((S.SAMPLE,)),
    K.OTHER: levels((S.EXPERTS,), MASKS),
}
# A number that the host waits for, to choose how to go on.
_READ_BACK: Rules = {K.SCALAR: levels((S.MASK,), (S.SAMPLE, S.POSITION), (S.EXPERTS,))}
_ROTATE: Rules = {
    K.HEADS: levels((S.ROPE,)),
    K.HALF_HEADS: levels((S.ROPE,)),
    K.ALL_HEADS: levels((S.ROPE,)),
    K.ANGLES: _ANGLES,
    K.HIDDEN: levels((S.ROPE,)),
    K.OTHER: levels((S.ROPE,)),
}


def _always(stages: Levels) -> Rules:
    return dict.fromkeys(Kind, stages)


_DIVIDE: Rules = {K.WHOLE: _WHOLE_CHOICE}

RULES: Mapping[str, Rules] = {
    **dict.fromkeys(("mul", "div", "reciprocal", "exp"), _MUL),
    **dict.fromkeys(("pow", "square"), _POWER),
    **dict.fromkeys(("add", "sub", "rsub"), _ADD),
    **dict.fromkeys(("copy", "clone", "to_copy"), _COPY),
    **dict.fromkeys(("cat", "concat", "concatenate"), _JOIN),
    **dict.fromkeys(("index_copy", "index_put", "index_put_impl", "index_add"), _WRITE),
    **dict.fromkeys(("scatter", "scatter_add", "slice_scatter", "select_scatter"), _WRITE),
    **dict.fromkeys(("index", "take", "nonzero"), _TAKE),
    **dict.fromkeys(("index_select", "gather"), _LOOKUP),
    **dict.fromkeys(("mean", "rsqrt", "sqrt", "var", "var_mean", "std"), _STATISTIC),
    **dict.fromkeys(("sum", "amax", "min"), _SUM),
    "max": _GREATEST,
    **dict.fromkeys(ACTIVATIONS, _ACTIVATE),
    **dict.fromkeys(("tanh", "erf", "abs", "log", "softplus", "expm1"), _SQUASH),
    **dict.fromkeys(("softmax", "safe_softmax"), _SOFTMAX),
    **dict.fromkeys(("topk", "sort", "argsort", "kthvalue"), _ORDER),
    **dict.fromkeys(("cumsum", "cumprod"), _RUNNING),
    **dict.fromkeys(("histc", "bincount", "one_hot"), _always(levels((S.EXPERTS,)))),
    **dict.fromkeys(PICKS, _always(levels((S.SAMPLE,)))),
    **dict.fromkeys(COMPARISONS, _COMPARE),
    **dict.fromkeys(("where", "masked_fill", "clamp"), _CHOOSE),
    **dict.fromkeys(("clamp_min", "minimum", "maximum"), _CUT_OFF),
    "local_scalar_dense": _READ_BACK,
    WRITE_BACK: _always(levels((S.KEEP, S.CACHE))),
    **dict.fromkeys(("tril", "triu"), _always(levels(MASKS))),
    **dict.fromkeys(("fill", "zero", "full", "full_like", "scalar_tensor", "zeros", "ones"), _FILL),
    **dict.fromkeys(("arange", "range"), _always(_WHOLE)),
    **dict.fromkeys(("floor_divide", "remainder", "fmod"), _DIVIDE),
    **dict.fromkeys(("cos", "sin", "polar"), _always(levels((S.TURN,), (), (S.ROPE,)))),
    **dict.fromkeys(("neg", "stack"), _ROTATE),
    "embedding": _always(levels((S.EMBED,))),
    "norm": _NORM,
    "attend": _always(levels((S.ATTEND,))),
    "plan": _always(levels((S.PLAN,))),
    "plan_cache": _always(levels((S.PLAN_CACHE,))),
    "prepare": _always(levels((S.POSITION,))),
    "rotate": _always(levels((S.ROPE,))),
    "write_cache": _always(levels((S.CACHE,))),
    "gate": _always(levels((S.ACT,), (S.EXPERTS,))),
    "grouped_mm": _always(levels((S.EXPERTS,))),
    "dispatch": _always(levels((S.EXPERTS,), (S.ROUTE,))),
    "route": _always(levels((S.ROUTE,))),
    "sample": _always(levels((S.SAMPLE,))),
}
