"""Models by name: what `transformers` needs to build each offline, with random weights.

`AutoConfig.for_model(**preset(name))` gives the real model's shapes. The numeric type is the
run's choice and no part of a preset, and nor are token ids: no tokenizer is needed.
"""

import copy
import difflib
from typing import Any

from whichwall.schemas.errors import UsageError
from whichwall.schemas.model import Model, model_from_config


def _rope(theta: float, **scaling: object) -> dict[str, object]:
    """Return rotary parameters as transformers 5 spells them."""
    return {"rope_type": "default", "rope_theta": theta, **scaling}


_QWEN25: dict[str, object] = {
    "model_type": "qwen2",
    "vocab_size": 151936,
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-6,
    "rope_parameters": _rope(1000000.0),
    "use_sliding_window": False,
}
_QWEN3: dict[str, object] = {
    "model_type": "qwen3",
    "vocab_size": 151936,
    "head_dim": 128,
    "num_key_value_heads": 8,
    "max_position_embeddings": 40960,
    "rms_norm_eps": 1e-6,
    "rope_parameters": _rope(1000000.0),
    "attention_bias": False,
    "use_sliding_window": False,
}
_LLAMA3: dict[str, object] = {
    "model_type": "llama",
    "vocab_size": 128256,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "attention_bias": False,
    "mlp_bias": False,
}
_LLAMA3_ROPE: dict[str, object] = {
    "rope_type": "llama3",
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}

_GEMMA3_ROPE: dict[str, object] = {
    "full_attention": _rope(1000000.0),
    "sliding_attention": _rope(10000.0),
}
_DEEPSEEK_ROPE: dict[str, object] = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 40.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 0.707,
    "mscale_all_dim": 0.707,
    "original_max_position_embeddings": 4096,
}

PRESETS: dict[str, dict[str, object]] = {
    # Not a real model: small enough for a CPU to run a pass in milliseconds.
    "tiny": {
        **_QWEN25, "vocab_size": 4096, "hidden_size": 128, "intermediate_size": 384,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    "qwen2.5-0.5b": {
        **_QWEN25, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
        "num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True,
    },
    "qwen2.5-1.5b": {
        **_QWEN25, "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
        "num_attention_heads": 12, "num_key_value_heads": 2, "tie_word_embeddings": True,
    },
    "qwen2.5-7b": {
        **_QWEN25, "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "tie_word_embeddings": False,
    },
    "qwen3-0.6b": {
        **_QWEN3, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
        "num_attention_heads": 16, "tie_word_embeddings": True,
    },
    "qwen3-8b": {
        **_QWEN3, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
        "num_attention_heads": 32, "tie_word_embeddings": False,
    },
    "qwen3-30b-a3b": {
        **_QWEN3, "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
        "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4,
        "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
        "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [],
        "tie_word_embeddings": False,
    },
    "llama-3.1-8b": {
        **_LLAMA3, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "rope_parameters": {**_rope(500000.0, factor=8.0), **_LLAMA3_ROPE},
        "tie_word_embeddings": False,
    },
    "llama-3.2-1b": {
        **_LLAMA3, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
        "head_dim": 64, "rope_parameters": {**_rope(500000.0, factor=32.0), **_LLAMA3_ROPE},
        "tie_word_embeddings": True,
    },
    "mistral-7b-v0.1": {
        "model_type": "mistral", "vocab_size": 32000, "hidden_size": 4096,
        "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "max_position_embeddings": 32768, "rms_norm_eps": 1e-5,
        "rope_parameters": _rope(10000.0), "sliding_window": 4096, "tie_word_embeddings": False,
    },
    "gemma-2-2b": {
        "model_type": "gemma2", "vocab_size": 256000, "hidden_size": 2304,
        "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-6, "rope_parameters": _rope(10000.0), "sliding_window": 4096,
        "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0, "hidden_activation": "gelu_pytorch_tanh",
        "tie_word_embeddings": True,
    },
    "gemma-3-1b": {
        "model_type": "gemma3_text", "vocab_size": 262144, "hidden_size": 1152,
        "intermediate_size": 6912, "num_hidden_layers": 26, "num_attention_heads": 4,
        "num_key_value_heads": 1, "head_dim": 256, "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-6, "rope_parameters": _GEMMA3_ROPE, "sliding_window": 512,
        "sliding_window_pattern": 6, "query_pre_attn_scalar": 256,
        "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": True,
    },
    "phi-3-mini-4k": {
        "model_type": "phi3", "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
        "max_position_embeddings": 4096, "original_max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5, "rope_parameters": _rope(10000.0, partial_rotary_factor=1.0),
        "sliding_window": 2047, "tie_word_embeddings": False,
    },
    "gpt2": {
        "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768,
        "n_layer": 12, "n_head": 12, "activation_function": "gelu_new",
        "tie_word_embeddings": True,
    },
    "opt-125m": {
        "model_type": "opt", "vocab_size": 50272, "hidden_size": 768, "ffn_dim": 3072,
        "num_hidden_layers": 12, "num_attention_heads": 12, "max_position_embeddings": 2048,
        "word_embed_proj_dim": 768, "do_layer_norm_before": True, "activation_function": "relu",
        "tie_word_embeddings": True,
    },
    "mixtral-8x7b": {
        "model_type": "mixtral", "vocab_size": 32000, "hidden_size": 4096,
        "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-5,
        "rope_parameters": _rope(1000000.0), "sliding_window": None, "tie_word_embeddings": False,
    },
    "deepseek-v2-lite": {
        "model_type": "deepseek_v2", "vocab_size": 102400, "hidden_size": 2048,
        "intermediate_size": 10944, "num_hidden_layers": 27, "num_attention_heads": 16,
        "num_key_value_heads": 16, "kv_lora_rank": 512, "q_lora_rank": None,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
        "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
        "topk_method": "greedy", "norm_topk_prob": False, "routed_scaling_factor": 1.0,
        "max_position_embeddings": 163840, "rms_norm_eps": 1e-6,
        "rope_parameters": _DEEPSEEK_ROPE, "tie_word_embeddings": False,
    },
}  # fmt: skip


def preset(name: str) -> dict[str, Any]:
    """Return the config fields of a named model, `model_type` among them.

    Raises:
        UsageError: no such preset; the message names close ones.
    """
    fields = PRESETS.get(name.lower())
    if fields is None:
        close = difflib.get_close_matches(name.lower(), PRESETS, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(close)}" if close else f"known: {', '.join(PRESETS)}"
        raise UsageError(
            f"no model preset {name!r}; {hint}; any other is read from its config.json"
        )
    return copy.deepcopy(fields)  # transformers changes nested dicts in place


def preset_model(name: str) -> Model:
    """Return the dimensions of a named model.

    Raises:
        UsageError: no such preset.
    """
    return model_from_config(preset(name), name.lower(), f"preset {name}")
