"""The models that roles are recorded of: architectures at realistic width, cut to a few layers."""

from typing import Any

ROPE = {"rope_type": "default", "rope_theta": 10000.0}

Config = dict[str, Any]


def llama_like(
    model_type: str, hidden: int, inner: int, heads: int, kv_heads: int, **more: object
) -> Config:
    """Return a config in the spelling that most architectures share."""
    return {
        "model_type": model_type,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "num_hidden_layers": 4,
        "vocab_size": 32000,
        "max_position_embeddings": 4096,
        "rope_parameters": ROPE,
        **more,
    }


FIRST: dict[str, Config] = {
    "qwen3": llama_like("qwen3", 1024, 3072, 16, 8, head_dim=128, tie_word_embeddings=True),
    "llama": llama_like(
        "llama", 2048, 8192, 32, 8, head_dim=64, tie_word_embeddings=True, vocab_size=128256
    ),
    "mistral": llama_like("mistral", 4096, 14336, 32, 8, sliding_window=128),
    "phi3": llama_like("phi3", 3072, 8192, 32, 32, sliding_window=2047, pad_token_id=0),
    "phi": llama_like(
        "phi", 2560, 10240, 32, 32,
        rope_parameters={**ROPE, "partial_rotary_factor": 0.4}, partial_rotary_factor=0.4,
    ),
    "gemma3": llama_like(
        "gemma3_text", 1152, 6912, 4, 1, head_dim=256, sliding_window=128, vocab_size=262144,
        query_pre_attn_scalar=256, sliding_window_pattern=2,
        layer_types=["sliding_attention", "full_attention"] * 2,
        rope_parameters={"sliding_attention": ROPE, "full_attention": ROPE},
    ),
    "starcoder2": llama_like("starcoder2", 3072, 12288, 24, 2, vocab_size=49152),
    "olmo2": llama_like("olmo2", 2048, 8192, 16, 16, vocab_size=100352, pad_token_id=0),
    "stablelm": llama_like(
        "stablelm", 2048, 5632, 32, 32,
        rope_parameters={**ROPE, "partial_rotary_factor": 0.25}, partial_rotary_factor=0.25,
    ),
    "granite": llama_like(
        "granite", 2048, 8192, 32, 8, embedding_multiplier=12.0, residual_multiplier=0.22,
        attention_multiplier=0.015625, logits_scaling=8.0, vocab_size=49152,
    ),
    "cohere": llama_like("cohere", 4096, 11264, 32, 8, logit_scale=0.0625, pad_token_id=0),
    "opt": {
        "model_type": "opt", "hidden_size": 2048, "ffn_dim": 8192, "num_attention_heads": 32,
        "num_hidden_layers": 4, "vocab_size": 50272, "max_position_embeddings": 2048,
        "word_embed_proj_dim": 2048, "do_layer_norm_before": True, "activation_function": "relu",
    },
    "gpt_neox": {
        "model_type": "gpt_neox", "hidden_size": 2048, "intermediate_size": 8192,
        "num_attention_heads": 16, "num_hidden_layers": 4, "vocab_size": 50304,
        "max_position_embeddings": 2048, "use_parallel_residual": True,
        "rope_parameters": {**ROPE, "partial_rotary_factor": 0.25}, "rotary_pct": 0.25,
    },
    "falcon": {
        "model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71,
        "num_hidden_layers": 3, "vocab_size": 65024, "multi_query": True, "parallel_attn": True,
        "new_decoder_architecture": False, "bias": False, "alibi": False,
        "rope_parameters": ROPE, "max_position_embeddings": 2048,
        # Its own spelling of these two is not read by everything that reads a config.
        "intermediate_size": 18176, "num_key_value_heads": 1,
    },
    "gpt_bigcode": {
        "model_type": "gpt_bigcode", "n_embd": 2048, "n_head": 16, "n_layer": 4, "n_inner": 8192,
        "n_positions": 2048, "vocab_size": 49152, "multi_query": True,
    },
    "qwen3_moe": llama_like(
        "qwen3_moe", 2048, 6144, 32, 4, head_dim=128, num_experts=64, num_experts_per_tok=8,
        moe_intermediate_size=768, decoder_sparse_step=1, norm_topk_prob=True, mlp_only_layers=[],
    ),
    "olmoe": llama_like(
        "olmoe", 2048, 1024, 16, 16, num_experts=64, num_experts_per_tok=8, pad_token_id=0
    ),
    "deepseek_v2": llama_like(
        "deepseek_v2", 2048, 10944, 16, 16, num_hidden_layers=3, kv_lora_rank=512,
        q_lora_rank=None, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
        head_dim=64, moe_intermediate_size=1408, n_routed_experts=64, n_shared_experts=2,
        num_experts_per_tok=6, first_k_dense_replace=1, topk_method="greedy", n_group=1,
        topk_group=1, routed_scaling_factor=1.0,
    ),
    "gpt_oss": llama_like(
        "gpt_oss", 2880, 2880, 64, 8, head_dim=64, num_local_experts=16, num_experts_per_tok=4,
        sliding_window=128, layer_types=["sliding_attention", "full_attention"] * 2,
    ),
}  # fmt: skip

# Recorded after the rules had been written with all models above in hand: their first score is what
# a model that nobody looked at can expect.
LATER: dict[str, Config] = {
    "arcee": llama_like("arcee", 2560, 18432, 20, 4, head_dim=128),
    "smollm3": llama_like("smollm3", 2048, 11008, 16, 4, vocab_size=128256, pad_token_id=0),
    "nemotron": llama_like("nemotron", 3072, 9216, 24, 8, head_dim=128, partial_rotary_factor=0.5),
    "glm4": llama_like("glm4", 4096, 13696, 32, 2, head_dim=128, pad_token_id=0),
    "ernie4_5": llama_like("ernie4_5", 1024, 3072, 16, 2, head_dim=128, use_bias=False),
    "exaone4": llama_like(
        "exaone4", 2048, 4096, 32, 8, sliding_window=128,
        layer_types=["sliding_attention", "full_attention"] * 2,
    ),
    "seed_oss": llama_like("seed_oss", 2560, 8192, 40, 8, head_dim=128),
    "helium": llama_like("helium", 2560, 7040, 20, 20, head_dim=128),
    "persimmon": llama_like("persimmon", 2048, 8192, 32, 32),
    "apertus": llama_like("apertus", 2048, 8192, 32, 8),
    "hunyuan": llama_like("hunyuan_v1_dense", 2048, 6144, 16, 4, head_dim=128),
    "cohere2": llama_like(
        "cohere2", 2048, 8192, 16, 4, sliding_window=128, pad_token_id=0, logit_scale=0.25,
        layer_types=["sliding_attention", "full_attention"] * 2,
    ),
    "olmo3": llama_like(
        "olmo3", 2048, 8192, 16, 16, sliding_window=128, pad_token_id=0, vocab_size=100352,
        layer_types=["sliding_attention", "full_attention"] * 2,
    ),
    "mpt": {
        "model_type": "mpt", "d_model": 2048, "n_heads": 16, "n_layers": 4, "vocab_size": 50432,
        "expansion_ratio": 4, "max_seq_len": 2048,
        # Spelled as others do too, for what reads a config.
        "hidden_size": 2048, "num_attention_heads": 16, "num_hidden_layers": 4, "n_inner": 8192,
    },
    "bloom": {
        "model_type": "bloom", "hidden_size": 2048, "n_head": 16, "n_layer": 4,
        "vocab_size": 100352, "n_inner": 8192,
    },
    "gptj": {
        "model_type": "gptj", "n_embd": 2048, "n_head": 16, "n_layer": 4, "n_positions": 2048,
        "rotary_dim": 64, "vocab_size": 50400,
    },
    "codegen": {
        "model_type": "codegen", "n_embd": 2048, "n_head": 16, "n_layer": 4, "n_positions": 2048,
        "rotary_dim": 64, "vocab_size": 51200,
    },
    "qwen2_moe": llama_like(
        "qwen2_moe", 2048, 5632, 16, 16, num_experts=32, num_experts_per_tok=4,
        moe_intermediate_size=1408, shared_expert_intermediate_size=5632, decoder_sparse_step=1,
        mlp_only_layers=[],
    ),
    "granitemoe": llama_like(
        "granitemoe", 1536, 512, 24, 8, num_local_experts=32, num_experts_per_tok=8,
        pad_token_id=0,
    ),
    "phimoe": llama_like(
        "phimoe", 2048, 3200, 16, 4, num_local_experts=16, num_experts_per_tok=2,
        attention_bias=True, lm_head_bias=True,
    ),
    "deepseek_v3": llama_like(
        "deepseek_v3", 2048, 8192, 16, 16, num_hidden_layers=3, kv_lora_rank=512, q_lora_rank=1536,
        qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, head_dim=64,
        moe_intermediate_size=1024, n_routed_experts=32, n_shared_experts=1,
        num_experts_per_tok=4, first_k_dense_replace=1, n_group=4, topk_group=2,
        routed_scaling_factor=2.5, norm_topk_prob=True,
    ),
    "glm4_moe": llama_like(
        "glm4_moe", 2048, 8192, 32, 4, head_dim=128, moe_intermediate_size=1024,
        n_routed_experts=32, n_shared_experts=1, num_experts_per_tok=4, first_k_dense_replace=1,
        n_group=1, topk_group=1, use_qk_norm=True, attention_bias=True,
        rope_parameters={**ROPE, "partial_rotary_factor": 0.5},
    ),
}  # fmt: skip

MODELS = {**FIRST, **LATER}
