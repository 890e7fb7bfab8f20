"""Infer a dense decoder's dimensions from a trace: enough for its floor, or nothing at all."""

from collections import Counter

import polars as pl

from whichwall.analyze.roles.dims import FULL, Dims
from whichwall.analyze.roles.looks import count_operators, dims_of
from whichwall.analyze.roles.operators import Operator
from whichwall.analyze.roles.witnesses import count_weights, weight_of
from whichwall.schemas.activities import Activities
from whichwall.schemas.model import Model
from whichwall.schemas.roles import Roles

NAME = "inferred from the trace's shapes"
MODEL_TYPE = "inferred"
DTYPES = {"c10::BFloat16": "bfloat16", "c10::Half": "float16", "float": "float32"}
# A gated MLP multiplies hidden by two matrices for the one that brings it back.
GATED_RATIO = 1.5


def infer_model(activities: pl.DataFrame, roles: pl.DataFrame) -> Model | None:
    """Return the dimensions that shapes and the count of layers tell.

    None where one is missing, or where the model is not dense and whole: experts, latent
    attention and split layers leave open what a rank holds of the rest.
    """
    # One operator may launch several kernels; it is one product all the same.
    calls = activities.unique(Activities.op, keep="first", maintain_order=True)
    operators = count_operators(calls)
    dims = dims_of(calls, None)
    layers = roles[Roles.layer].max()
    dtype = _dtype(operators)
    if dims.hidden is None or dims.vocab is None or dims.head_dim is None:
        return None
    if dims.heads is None or dims.kv_heads is None or not isinstance(layers, int) or not dtype:
        return None
    if dims.experts or dims.latent or dims.shards != 1 or len(dims.inner) != 1:
        return None
    (inner,) = dims.inner
    return Model(
        name=NAME,
        model_type=MODEL_TYPE,
        hidden=dims.hidden,
        intermediate=inner,
        layers=layers + 1,
        heads=dims.heads,
        kv_heads=dims.kv_heads,
        head_dim=dims.head_dim,
        vocab=dims.vocab,
        tied=True,  # read once in a pass either way; only a count of all weights would differ
        gated_mlp=_is_gated(operators, dims, inner),
        dtype=dtype,
        positions=dims.positions,
        qk_norm=FULL if dims.flat_norms else None,
        assumed=True,
    )


def _dtype(operators: Counter[Operator]) -> str | None:
    """Return the type that most matrix products work in."""
    seen: Counter[str] = Counter()
    for operator, count in operators.items():
        if weight_of(operator) is not None:
            seen.update({DTYPES[t]: count for t in operator.types if t in DTYPES})
    return seen.most_common(1)[0][0] if seen else None


def _is_gated(operators: Counter[Operator], dims: Dims, inner: int) -> bool:
    weights = count_weights(operators)
    into = weights[dims.hidden or 0, inner] + 2 * weights[dims.hidden or 0, 2 * inner]
    return into > GATED_RATIO * weights[inner, dims.hidden or 0]
