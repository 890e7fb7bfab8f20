"""The model's dimensions: what floors, roles and presets need to know of a decoder.

Read from a transformers `config.json` by named fields only; nothing else of it is kept.
"""

import msgspec


class Model(msgspec.Struct, frozen=True, omit_defaults=True):
    """Dimensions of one decoder-only model."""

    name: str
    model_type: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool = False
    gated_mlp: bool = True
    norm: str = "rms"  # "rms" or "layer"
    dtype: str | None = None
    sliding_window: int | None = None
    sliding_layers: int = 0
    positions: int | None = None  # learned position embeddings, else null
    experts: int | None = None
    experts_per_token: int | None = None
    expert_intermediate: int | None = None
    shared_experts: int = 0
    dense_layers: int = 0  # leading layers with a plain MLP in a mixture of experts
    kv_lora_rank: int | None = None  # latent attention
    q_lora_rank: int | None = None
    qk_nope_dim: int | None = None
    qk_rope_dim: int | None = None
    v_head_dim: int | None = None
    parameters: int | None = None  # counted on the real model, where there was one
    weight_bytes: int | None = None
