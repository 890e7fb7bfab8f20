"""What one pass of a model must compute and read, operation by operation.

Bytes are those that have to come from memory or go there whatever the kernels do: each weight
once, the cache once, the rows looked up. Activations may stay on the chip, so they are no part
of a floor. FLOPs are those of matrix products; norms, rotary, softmax and activation functions
count as none. All of it is integer arithmetic.
"""

import math
from dataclasses import dataclass
from typing import Literal

from whichwall.schemas import roles
from whichwall.schemas.errors import InputError
from whichwall.schemas.model import Model
from whichwall.schemas.weights import Weight, cache_numbers, value_dim, weights

# Which (query, key) pairs are computed. "causal": the pairs that count, as fused kernels skip
# the rest; "rectangle": all, as unfused attention does.
Pairs = Literal["causal", "rectangle"]
# Latent attention. "expanded": keys and values of the whole context are built from the cache
# at each pass, as transformers does; "absorbed": the projection moves to queries and outputs.
Latent = Literal["expanded", "absorbed"]


@dataclass(frozen=True)
class Pass:
    """The shape of one pass: `batch` sequences of `tokens` new and `context_tokens` cached."""

    batch: int
    tokens: int
    context_tokens: int
    weight_bytes: int
    cache_bytes: int
    logits_tokens: int  # tokens whose logits are computed, all sequences together
    pairs: Pairs = "causal"
    latent: Latent = "expanded"

    @property
    def rows(self) -> int:
        """Return the new tokens of all sequences."""
        return self.batch * self.tokens


@dataclass(frozen=True)
class Operation:
    """One operation: FLOPs and bytes of a single instance, and how many there are in a pass."""

    name: str
    role: str
    flops: int
    bytes: int
    count: int


def operations(
    model: Model,
    batch: int,
    tokens: int,
    context_tokens: int,
    weight_bytes: int,
    cache_bytes: int,
    *,
    logits_tokens: int | None = None,
    pairs: Pairs = "causal",
    latent: Latent = "expanded",
) -> list[Operation]:
    """List the operations of one pass, in the order in which a token meets their roles.

    `tokens` are new and `context_tokens` cached, per sequence; `weight_bytes` and `cache_bytes`
    are the bytes of one number. Logits are computed for one token of each sequence unless
    `logits_tokens` (all sequences together) says otherwise.

    Raises:
        InputError: no sequence, no token, or a negative context.
    """
    if batch < 1 or tokens < 1 or context_tokens < 0:
        raise InputError(
            f"{model.name}: a pass of {batch} sequences, {tokens} new and {context_tokens} "
            "cached tokens; expected at least one sequence with one new token"
        )
    logits = batch if logits_tokens is None else logits_tokens
    shape = Pass(batch, tokens, context_tokens, weight_bytes, cache_bytes, logits, pairs, latent)
    found = [_weight_operation(model, weight, shape) for weight in weights(model)]
    found += _attention_operations(model, shape)
    return sorted(found, key=lambda operation: roles.ROLES.index(operation.role))


def expected_experts(experts: int, per_token: int, rows: int) -> float:
    """Return how many distinct experts of a layer `rows` tokens are expected to choose.

    E · (1 − (1 − k/E)^rows): each token chooses k of E experts evenly and independently. Real
    routing is skewed, so this is at least what a pass reads.
    """
    if per_token >= experts:
        return float(experts)
    return -experts * math.expm1(rows * math.log1p(-per_token / experts))


def attended_pairs(shape: Pass, window: int | None) -> int:
    """Count the (query, key) pairs of one sequence and head; `window` includes the query."""
    new, old = shape.tokens, shape.context_tokens
    if shape.pairs == "rectangle":
        return new * (_cached(old, window) + new)
    if window is None:
        return new * old + new * (new + 1) // 2
    growing = min(new, max(window - old, 0))  # queries that do not fill the window yet
    return growing * old + growing * (growing + 1) // 2 + (new - growing) * window


def _cached(tokens: int, window: int | None) -> int:
    """Return how many past tokens a cache must hold: a window's own query is not yet in it."""
    return tokens if window is None else min(tokens, window - 1)


def _weight_operation(model: Model, weight: Weight, shape: Pass) -> Operation:
    """Return what a pass does with one kind of weight."""
    matrix, size = weight.inputs * weight.outputs, weight.numbers * shape.weight_bytes
    flops, read = 0, size
    if weight.use == "lookup":
        read = min(shape.rows, weight.inputs) * weight.outputs * shape.weight_bytes
    elif weight.use == "matmul":
        flops = 2 * shape.rows * matrix
    elif weight.use == "head":
        flops = 2 * shape.logits_tokens * matrix
    elif weight.use == "latent":
        flops = 2 * _latent_rows(shape) * matrix
    elif weight.use == "experts":
        chosen = model.experts_per_token or 0
        flops = 2 * shape.rows * chosen * matrix
        read = round(expected_experts(weight.copies, chosen, shape.rows) * size)
    return Operation(weight.name, weight.role, flops, read, weight.count)


def _latent_rows(shape: Pass) -> int:
    """Return the tokens that pass through the up-projection of keys and values."""
    return shape.rows + (shape.batch * shape.context_tokens if shape.latent == "expanded" else 0)


def _attention_operations(model: Model, shape: Pass) -> list[Operation]:
    """Return attention itself and the writing of the cache, for full and for sliding layers."""
    kinds = (
        ("", None, model.layers - model.sliding_layers),
        ("sliding_", model.sliding_window, model.sliding_layers),
    )
    found = []
    entry = shape.batch * cache_numbers(model) * shape.cache_bytes
    for prefix, window, layers in kinds:
        if not layers:
            continue
        pairs = attended_pairs(shape, window)
        flops = 2 * shape.batch * model.heads * pairs * _pair_width(model, shape)
        read = entry * _cached(shape.context_tokens, window)
        written = entry * max(_cached(shape.tokens, window), 1)
        found += [
            Operation(f"{prefix}cache_append", roles.KV_CACHE, 0, written, layers),
            Operation(f"{prefix}attention", roles.ATTENTION, flops, read, layers),
        ]
    return found


def _pair_width(model: Model, shape: Pass) -> int:
    """Return the multiplications of one (query, key) pair in one head: scores and values."""
    if model.kv_lora_rank is not None and shape.latent == "absorbed":
        return 2 * model.kv_lora_rank + (model.qk_rope_dim or 0)
    return model.head_dim + value_dim(model)
