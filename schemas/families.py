"""What a config.json leaves unsaid: facts of each architecture that only its code states.

One entry per `model_type`. `defaults` are config fields that the architecture's config class
fills in where the file is silent; `facts` are fields of `Model` that its modelling code fixes;
`switches` are config fields which, if true, turn such facts on. Read from the configuration and
modelling code of transformers 5; tests build each one and compare the count of parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_QKVO = {"qkv_bias": True, "o_bias": True}
_ALL_BIASES = {**_QKVO, "mlp_bias": True}
_LAYER_NORM = {"norm": "layer", "norm_bias": True}
_ATTENTION_BIAS: Mapping[str, Mapping[str, object]] = {"attention_bias": _QKVO}
_TIED = {"tie_word_embeddings": True}


@dataclass(frozen=True)
class Family:
    """One architecture; what is not said here is as in Llama."""

    defaults: Mapping[str, object] = field(default_factory=dict)
    facts: Mapping[str, object] = field(default_factory=dict)
    switches: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    positions: tuple[str, int] | None = None  # config field of the learned table, rows beyond it


LLAMA = Family(switches={**_ATTENTION_BIAS, "mlp_bias": {"mlp_bias": True}})

_QWEN2_DEFAULTS = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}
_GEMMA3 = Family(
    defaults={
        **_TIED,
        "vocab_size": 262208,
        "head_dim": 256,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "sliding_window": 4096,
        "sliding_window_pattern": 6,
    },
    facts={"norms_per_layer": 4, "qk_norm": "head"},
    switches=_ATTENTION_BIAS,
)
_COHERE = Family(
    defaults=_TIED,
    facts={"norm": "layer", "norms_per_layer": 1},
    switches={**_ATTENTION_BIAS, "use_qk_norm": {"qk_norm": "full"}},
)

FAMILIES: dict[str, Family] = {
    "llama": LLAMA,
    "mistral": Family(defaults={"num_key_value_heads": 8}),
    "mixtral": Family(defaults={"num_key_value_heads": 8}),
    "granite": LLAMA,
    "seed_oss": Family(
        defaults={"attention_bias": True, "attention_out_bias": False, "head_dim": 128},
        switches={
            "attention_bias": {"qkv_bias": True},
            "attention_out_bias": {"o_bias": True},
            "mlp_bias": {"mlp_bias": True},
        },
    ),
    "smollm3": Family(
        defaults={**_TIED, "use_sliding_window": False, "num_key_value_heads": 4},
        switches=LLAMA.switches,
    ),
    "qwen2": Family(defaults=_QWEN2_DEFAULTS, facts={"qkv_bias": True}),
    "qwen2_moe": Family(
        defaults={**_QWEN2_DEFAULTS, "qkv_bias": True},
        facts={"shared_gate": True},
        switches={"qkv_bias": {"qkv_bias": True}},
    ),
    "qwen3": Family(
        defaults={**_QWEN2_DEFAULTS, "head_dim": 128},
        facts={"qk_norm": "head"},
        switches=_ATTENTION_BIAS,
    ),
    "qwen3_moe": Family(
        defaults={"use_sliding_window": False},
        facts={"qk_norm": "head"},
        switches=_ATTENTION_BIAS,
    ),
    "gemma": Family(defaults={**_TIED, "head_dim": 256}, switches=_ATTENTION_BIAS),
    "gemma2": Family(
        defaults={**_TIED, "head_dim": 256, "sliding_window": 4096, "sliding_window_pattern": 2},
        facts={"norms_per_layer": 4},
        switches=_ATTENTION_BIAS,
    ),
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "phi": Family(
        facts={
            **_ALL_BIASES,
            **_LAYER_NORM,
            "head_bias": True,
            "gated_mlp": False,
            "norms_per_layer": 1,
        },
        switches={"qk_layernorm": {"qk_norm": "head"}},
    ),
    "phi3": Family(),
    "gpt2": Family(
        defaults=_TIED,
        facts={**_ALL_BIASES, **_LAYER_NORM, "gated_mlp": False},
        positions=("n_positions", 0),
    ),
    "opt": Family(
        defaults={**_TIED, "enable_bias": True, "do_layer_norm_before": True},
        facts={**_LAYER_NORM, "gated_mlp": False, "final_norm": False},
        switches={"enable_bias": _ALL_BIASES, "do_layer_norm_before": {"final_norm": True}},
        positions=("max_position_embeddings", 2),
    ),
    "gpt_neox": Family(
        defaults={"attention_bias": True},
        facts={**_LAYER_NORM, "mlp_bias": True, "gated_mlp": False},
        switches=_ATTENTION_BIAS,
    ),
    "starcoder2": Family(
        defaults={**_TIED, "use_bias": True},
        facts={**_LAYER_NORM, "gated_mlp": False},
        switches={"use_bias": _ALL_BIASES},
    ),
    "nemotron": Family(
        facts={**_LAYER_NORM, "gated_mlp": False},
        switches=LLAMA.switches,
    ),
    "olmo2": Family(facts={"qk_norm": "full"}, switches=_ATTENTION_BIAS),
    "olmo3": Family(
        defaults={"sliding_window": 4096, "sliding_window_pattern": 4},
        facts={"qk_norm": "full"},
        switches=_ATTENTION_BIAS,
    ),
    "olmoe": Family(facts={"qk_norm": "full"}, switches=_ATTENTION_BIAS),
    "cohere": _COHERE,
    "cohere2": Family(
        defaults={**_TIED, "sliding_window": 4096, "sliding_window_pattern": 4},
        facts=_COHERE.facts,
        switches=_ATTENTION_BIAS,
    ),
    "glm4": Family(
        defaults={"attention_bias": True, "head_dim": 128},
        facts={"norms_per_layer": 4},
        switches={"attention_bias": {"qkv_bias": True}},
    ),
    "glm4_moe": Family(
        defaults={"first_k_dense_replace": 1, "n_shared_experts": 1},
        switches={"attention_bias": {"qkv_bias": True}, "use_qk_norm": {"qk_norm": "head"}},
    ),
    "deepseek_v2": Family(
        defaults={"first_k_dense_replace": 0, "n_shared_experts": 2},
        switches=LLAMA.switches,
    ),
    "deepseek_v3": Family(
        defaults={"first_k_dense_replace": 3, "n_shared_experts": 1},
        switches=_ATTENTION_BIAS,
    ),
    "gpt_oss": Family(
        defaults={
            "attention_bias": True,
            "head_dim": 64,
            "sliding_window": 128,
            "sliding_window_pattern": 2,
        },
        facts={"expert_bias": True, "attention_sinks": True},
        switches=_ATTENTION_BIAS,
    ),
}
