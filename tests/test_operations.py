"""What a pass computes and reads, against the real models and against formulas."""

import inspect
from typing import Any

import pytest

from whichwall.analyze.operations import (
    Operation,
    Pass,
    attended_pairs,
    expected_experts,
    operations,
)
from whichwall.schemas import roles
from whichwall.schemas.errors import InputError
from whichwall.schemas.model import Model, model_from_config
from whichwall.schemas.presets import preset_model

# Gigabytes that a decode step of one sequence reads in bfloat16, without its cache.
DECODE_GB = {
    "qwen2.5-0.5b": 0.988,
    "qwen2.5-1.5b": 3.087,
    "qwen2.5-7b": 14.141,
    "qwen3-0.6b": 1.192,
    "qwen3-8b": 15.137,
    "qwen3-30b-a3b": 6.084,
    "llama-3.1-8b": 15.010,
    "llama-3.2-1b": 2.472,
    "mistral-7b-v0.1": 14.221,
    "gemma-2-2b": 5.229,
    "gemma-3-1b": 2.000,
    "phi-3-mini-4k": 7.445,
    "gpt2": 0.247,
    "opt-125m": 0.247,
    "mixtral-8x7b": 25.498,
    "deepseek-v2-lite": 4.903,
}
CACHE = {roles.ATTENTION, roles.KV_CACHE}

SMALL: dict[str, object] = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
}
LATENT: dict[str, object] = {
    **SMALL,
    "num_key_value_heads": 4,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 24,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 48,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
    "n_group": 2,
    "topk_group": 1,
}
GPT2: dict[str, object] = {
    "vocab_size": 512,
    "n_positions": 128,
    "n_embd": 64,
    "n_layer": 4,
    "n_head": 4,
}
EXPERTS: dict[str, object] = {
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 48,
}

# Windows are shorter than the prompt, so that they show.
COUNTED: list[dict[str, object]] = [
    {**SMALL, "model_type": "llama", "head_dim": 24},
    {**SMALL, "model_type": "qwen2", "tie_word_embeddings": True},
    {**SMALL, "model_type": "qwen3"},
    {**SMALL, "model_type": "mistral", "sliding_window": 12},
    {**SMALL, "model_type": "phi3", "sliding_window": 11},
    {**SMALL, "model_type": "gemma2", "sliding_window": 12},
    {**SMALL, "model_type": "gemma3_text", "sliding_window": 12, "sliding_window_pattern": 3},
    {**SMALL, "model_type": "cohere"},
    {**GPT2, "model_type": "gpt2"},
    {
        **{k: v for k, v in SMALL.items() if k not in ("intermediate_size", "num_key_value_heads")},
        "model_type": "opt",
        "ffn_dim": 96,
        "word_embed_proj_dim": 32,
    },
    {**SMALL, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2},
    {**SMALL, **EXPERTS, "model_type": "qwen3_moe", "decoder_sparse_step": 2},
    {**SMALL, **EXPERTS, "model_type": "qwen2_moe", "shared_expert_intermediate_size": 80},
    {**SMALL, "model_type": "gpt_oss", "num_local_experts": 8, "num_experts_per_tok": 2},
    {**LATENT, "model_type": "deepseek_v2", "q_lora_rank": None},
    {**LATENT, "model_type": "deepseek_v3", "q_lora_rank": 40},
]


def small_model(**changes: object) -> Model:
    """Return two layers of a Llama with round dimensions."""
    fields = {**SMALL, "num_hidden_layers": 2, "model_type": "llama", **changes}
    return model_from_config(fields, "small")


@pytest.mark.parametrize("config", COUNTED, ids=lambda config: config["model_type"])
def test_flops_are_those_that_torch_counts_in_the_real_model(config: dict[str, object]) -> None:
    torch = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    flop_counter = pytest.importorskip("torch.utils.flop_counter")
    eager = {"attn_implementation": "eager"}
    if {"num_experts", "num_local_experts", "n_routed_experts"} & set(config):
        eager["experts_implementation"] = "eager"  # grouped products are not counted
    built = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(**config), **eager
    ).eval()
    # transformers 5.24 renamed what 5.17 knows as past_key_values.
    cache = "cache" if "cache" in inspect.signature(built.forward).parameters else "past_key_values"
    batch, prompt = 2, 20
    ids = torch.ones((batch, prompt), dtype=torch.int64)

    def count(**inputs: object) -> tuple[int, Any]:
        with torch.no_grad(), flop_counter.FlopCounterMode(display=False) as counter:
            out = built(use_cache=True, logits_to_keep=1, **inputs)
        # transformers 5.17 writes rotary angles as a matrix product; they count as none.
        modules = counter.get_flop_counts().items()
        angles = sum(sum(by_op.values()) for name, by_op in modules if "rotary_emb" in name)
        return counter.get_total_flops() - angles, getattr(out, cache)

    prefill, filled = count(input_ids=ids)
    decode, _ = count(input_ids=ids[:, :1], **{cache: filled})

    def ours(tokens: int, context: int) -> int:
        model = model_from_config(config, "small")
        found = operations(model, batch, tokens, context, 2, 2, pairs="rectangle")
        return sum(o.flops * o.count for o in found)

    assert (ours(prompt, 0), ours(1, prompt)) == (prefill, decode)


@pytest.mark.parametrize("name", DECODE_GB)
def test_decode_reads_the_weights_that_the_model_uses(name: str) -> None:
    found = operations(preset_model(name), 1, 1, 0, 2, 2)
    read = sum(o.bytes * o.count for o in found if o.role not in CACHE)

    assert read / 1e9 == pytest.approx(DECODE_GB[name], abs=0.0006)


def test_operations_of_a_small_model_are_listed_whole() -> None:
    model = small_model(num_key_value_heads=2)

    assert operations(model, 3, 1, 10, 2, 2) == [
        Operation("embed_tokens", "embedding", 0, 3 * 64 * 2, 1),
        Operation("norm", "norm", 0, 64 * 2, 4),
        Operation("final_norm", "norm", 0, 64 * 2, 1),
        Operation("q_proj", "qkv_proj", 2 * 3 * 64 * 64, 64 * 64 * 2, 2),
        Operation("k_proj", "qkv_proj", 2 * 3 * 64 * 32, 64 * 32 * 2, 2),
        Operation("v_proj", "qkv_proj", 2 * 3 * 64 * 32, 64 * 32 * 2, 2),
        Operation("cache_append", "kv_cache", 0, 3 * 2 * 32 * 2, 2),
        Operation("attention", "attention", 4 * 3 * 4 * 16 * 11, 3 * 10 * 2 * 32 * 2, 2),
        Operation("o_proj", "o_proj", 2 * 3 * 64 * 64, 64 * 64 * 2, 2),
        Operation("gate_proj", "gate_up_proj", 2 * 3 * 64 * 96, 64 * 96 * 2, 2),
        Operation("up_proj", "gate_up_proj", 2 * 3 * 64 * 96, 64 * 96 * 2, 2),
        Operation("down_proj", "down_proj", 2 * 3 * 64 * 96, 64 * 96 * 2, 2),
        Operation("lm_head", "lm_head", 2 * 3 * 64 * 512, 64 * 512 * 2, 1),
    ]


def test_logits_are_computed_for_one_token_of_each_sequence_unless_said_otherwise() -> None:
    def head(logits_tokens: int | None) -> int:
        found = operations(small_model(), 3, 5, 0, 2, 2, logits_tokens=logits_tokens)
        return next(o.flops for o in found if o.role == roles.LM_HEAD)

    assert (head(None), head(15)) == (2 * 3 * 64 * 512, 2 * 15 * 64 * 512)


def test_a_sliding_layer_reads_and_keeps_no_more_than_its_window() -> None:
    model = small_model(model_type="gemma2", sliding_window=8, num_hidden_layers=2)

    found = {o.name: o for o in operations(model, 1, 1, 100, 2, 2)}

    per_token = 2 * 2 * 256 * 2
    assert found["attention"].bytes == 100 * per_token
    assert found["sliding_attention"].bytes == 7 * per_token
    assert found["sliding_attention"].flops == 4 * 4 * 256 * 8
    assert found["sliding_cache_append"].bytes == per_token


@pytest.mark.parametrize("window", [None, 1, 2, 5, 8, 100])
@pytest.mark.parametrize("context", [0, 1, 4, 20])
def test_causal_pairs_are_those_of_a_mask_written_out(context: int, window: int | None) -> None:
    new = 6
    shape = Pass(1, new, context, 2, 2, 1)
    mask = [
        (query, key)
        for query in range(context, context + new)
        for key in range(query + 1)
        if window is None or query - key < window
    ]

    assert attended_pairs(shape, window) == len(mask)


@pytest.mark.parametrize(
    ("experts", "chosen", "expected"),
    [
        (128, 8, {1: 8.0, 4: 29.1, 8: 51.6, 16: 82.4, 32: 111.8, 64: 125.9}),
        (8, 2, {1: 2.0, 4: 5.5, 8: 7.2, 16: 7.9, 64: 8.0}),
        (64, 6, {1: 6.0, 4: 20.8, 32: 61.3}),
        (4, 4, {1: 4.0, 64: 4.0}),
    ],
)
def test_expected_experts_follow_the_closed_form(
    experts: int, chosen: int, expected: dict[int, float]
) -> None:
    found = {rows: round(expected_experts(experts, chosen, rows), 1) for rows in expected}

    assert found == expected


def test_one_token_reads_exactly_the_experts_it_chooses() -> None:
    found = {o.name: o for o in operations(preset_model("mixtral-8x7b"), 1, 1, 0, 2, 2)}

    assert found["expert_up_proj"].bytes == 2 * 4096 * 14336 * 2
    assert found["expert_up_proj"].flops == 2 * 2 * 4096 * 14336


def test_absorbed_latent_attention_does_not_expand_the_context() -> None:
    model = preset_model("deepseek-v2-lite")

    def found(latent: Any) -> dict[str, Operation]:
        return {o.name: o for o in operations(model, 1, 1, 1000, 2, 2, latent=latent)}

    expanded, absorbed = found("expanded"), found("absorbed")

    assert expanded["kv_b_proj"].flops == 2 * 1001 * 512 * 16 * 256
    assert absorbed["kv_b_proj"].flops == 2 * 512 * 16 * 256
    assert expanded["attention"].flops == 2 * 16 * 1001 * (192 + 128)
    assert absorbed["attention"].flops == 2 * 16 * 1001 * 1088
    assert absorbed["attention"].bytes == expanded["attention"].bytes == 1000 * 576 * 2


@pytest.mark.parametrize(("batch", "tokens", "context"), [(0, 1, 0), (1, 0, 0), (1, 1, -1)])
def test_a_pass_without_tokens_is_refused(batch: int, tokens: int, context: int) -> None:
    with pytest.raises(InputError, match="expected at least one sequence with one new token"):
        operations(small_model(), batch, tokens, context, 2, 2)
