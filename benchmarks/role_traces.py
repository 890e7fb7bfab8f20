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

import torch
from role_models import MODELS, Config

from whichwall.collect.device import Device, choose_device, choose_dtype
from whichwall.collect.importer import import_run
from whichwall.collect.models import Source, build
from whichwall.collect.options import DECODE, DUMMY, PREFILL
from whichwall.collect.role_check import record_roles
from whichwall.collect.workload import random_prompt
from whichwall.schemas.errors import WhichwallError

CONTEXT, NEW_TOKENS = 256, 8
# Unfused attention as well, where it differs: groups of heads, a window, biases, fused qkv.
EAGER = (
    "qwen3", "gemma3", "opt", "gpt_neox", "falcon", "deepseek_v2", "olmo2", "gpt_oss",
    "exaone4", "glm4", "persimmon", "deepseek_v3",
)  # fmt: skip
# Learned sinks, ALiBi's own adding of scores, and rotations of interleaved pairs written out.
ONLY_EAGER = ("gpt_oss", "mpt", "bloom", "gptj", "codegen")
CASES = [
    *((name, "sdpa") for name in MODELS if name not in ONLY_EAGER),
    *((name, "eager") for name in dict.fromkeys((*EAGER, *ONLY_EAGER))),
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
        "n_layers": 2, "n_heads": most, "d_model": most * head, "rotary_dim": 8,
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
        for phase, new in ((DECODE, NEW_TOKENS), (PREFILL, 1)):
            trace = Path(folder) / f"{name}_{attention}_{phase}.json"
            with torch.no_grad():
                record_roles(built.module, device, prompt, new, trace)
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
