"""The widths that a trace's shapes are read against, on one rank.

Under tensor parallelism heads, inner widths and the head of one rank are a whole fraction of the
model's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from whichwall.schemas.model import Model

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
    expert_inner: frozenset[int] = frozenset()  # of `inner`, those inside routed experts
    latent: frozenset[int] = frozenset()  # widths of latent attention between its projections
    value_dim: int | None = None  # head size of values where it is not head_dim
    positions: int | None = None  # rows of the learned position table
    shards: int = 1  # ranks that share each layer
    cached_keys: bool = False  # kv_heads are those of a cache; attention may be given them repeated
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


def of_model(model: Model) -> Dims:
    """Return the widths of a whole model."""
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
        expert_inner=frozenset(w for w in (model.expert_intermediate,) if w),
        latent=frozenset(w for w in latent if w),
        value_dim=model.v_head_dim,
        positions=model.positions,
        flat_norms=model.qk_norm == FULL,
        dense=model.experts is None and not model.assumed,
        inferred_from={"all": FROM_MODEL},
    )


def split(whole: Dims, shards: int) -> Dims:
    """Return one rank's part; key heads fewer than ranks are repeated, never split."""
    if shards == 1:
        return whole
    return replace(
        whole,
        heads=whole.heads // shards if whole.heads else None,
        kv_heads=max(whole.kv_heads // shards, 1) if whole.kv_heads else None,
        inner=_divided(whole.inner, shards),
        expert_inner=_divided(whole.expert_inner, shards),
        shards=shards,
        inferred_from={**whole.inferred_from, "shards": FROM_WEIGHTS},
    )


def _divided(widths: frozenset[int], shards: int) -> frozenset[int]:
    return frozenset(w // shards for w in widths if w % shards == 0)
