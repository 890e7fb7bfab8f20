"""Record traces with ranges that say which roles are right, for many architectures.

    python benchmarks/role_traces.py OUT [--device cuda|cpu] [--tiny] [--only NAME …]

Each model is cut to a few layers of realistic width, with random weights. For each, a decode and
a prefill of 256 tokens are recorded under the ranges of `whichwall collect --check-roles`, and
imported as a run: OUT/NAME_ATTENTION_PHASE. `whichwall analyze` then says of each how much of it
has an accepted role. An architecture that fails is said and passed over.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from whichwall.collect.device import Device, choose_device, choose_dtype
from whichwall.collect.importer import import_run
from whichwall.collect.models import Source, build
from whichwall.collect.options import DECODE, DUMMY, PREFILL
from whichwall.collect.role_check import record_roles
from whichwall.collect.workload import random_prompt
from whichwall.schemas.errors import WhichwallError

CONTEXT, NEW_TOKENS = 256, 8
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


MODELS: dict[str, Config] = {
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

# Unfused attention as well, where it differs: groups of heads, a window, biases, fused qkv.
EAGER = ("qwen3", "gemma3", "opt", "gpt_neox", "falcon", "deepseek_v2", "olmo2", "gpt_oss")
ONLY_EAGER = ("gpt_oss",)  # its learned sinks are in no fused kernel
CASES = [
    *((name, "sdpa") for name in MODELS if name not in ONLY_EAGER),
    *((name, "eager") for name in EAGER),
]


def narrowed(config: Config) -> Config:
    """Return a config with its widths cut for a quick trial on a CPU."""
    head = 16
    heads = "num_attention_heads" if "num_attention_heads" in config else "n_head"
    hidden = "hidden_size" if "hidden_size" in config else "n_embd"
    most = 4 if config["model_type"] != "falcon" else 5
    small = {**config, heads: most, hidden: most * head, "vocab_size": 320}
    widths = {
        "intermediate_size": 96, "ffn_dim": 96, "n_inner": 96, "word_embed_proj_dim": most * head,
        "num_key_value_heads": min(2, config.get("num_key_value_heads", 2)), "head_dim": head,
        "moe_intermediate_size": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 16, "v_head_dim": 16, "num_hidden_layers": 2, "n_layer": 2,
        "num_experts": 8, "n_routed_experts": 8, "num_local_experts": 8,
        "num_experts_per_tok": 2, "query_pre_attn_scalar": 16, "sliding_window": 32,
        "layer_types": ["sliding_attention", "full_attention"],
    }  # fmt: skip
    small |= {key: value for key, value in widths.items() if config.get(key) is not None}
    if config.get("num_key_value_heads") == config.get("num_attention_heads"):
        small["num_key_value_heads"] = most
    if config.get("multi_query"):
        small |= {"num_key_value_heads": 1, "intermediate_size": 4 * most * head}
    return {key: value for key, value in small.items() if key in config}


def record(name: str, attention: str, config: Config, device: Device, out: Path) -> None:
    """Record both phases of one model, each into a run."""
    dtype = choose_dtype("auto", device)
    built = build(Source(name, config, DUMMY), device, dtype, attention)
    prompt = random_prompt(1, CONTEXT, built.facts.vocab, device.torch)
    with tempfile.TemporaryDirectory() as folder:
        described = Path(folder) / f"{name}.config.json"
        described.write_text(json.dumps(config))
        for phase in (DECODE, PREFILL):
            trace = Path(folder) / f"{name}_{attention}_{phase}.json"
            with torch.no_grad():
                record_roles(built.module, device, phase, prompt, NEW_TOKENS, trace)
            run = out / trace.stem
            import_run([trace], run, model=described, overwrite=True)


def main() -> None:
    """Parse the command line and record each model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="auto", help="auto, cuda or cpu")
    parser.add_argument("--tiny", action="store_true", help="narrow models, for a trial")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="these architectures only")
    options = parser.parse_args()
    device = choose_device(options.device)
    begin, failed = time.monotonic(), 0
    cases = [case for case in CASES if not options.only or case[0] in options.only]
    for number, (name, attention) in enumerate(cases, 1):
        config = narrowed(MODELS[name]) if options.tiny else MODELS[name]
        try:
            record(name, attention, config, device, options.out)
            said = "done"
        except (WhichwallError, RuntimeError, ValueError, TypeError, AttributeError) as error:
            said, failed = f"FAILED: {type(error).__name__}: {error}", failed + 1
        if device.is_gpu:
            torch.cuda.empty_cache()
        print(
            f"{time.monotonic() - begin:6.1f} s  {number}/{len(cases)} {name} {attention}: {said}",
            flush=True,
        )
    print(f"{len(cases) - failed} of {len(cases)} models recorded in {options.out}")


if __name__ == "__main__":
    main()
