"""Operations count what torch counts in the real models: every preset, whole, on no device.

torch.utils.flop_counter counts matrix products, and attention as the full rectangle of queries
and keys, whether a mask is causal or not: so `pairs="rectangle"`. A causal count, which is what
predictions use, differs in the attended pairs alone, and tests/test_operations.py compares those
with a mask written out.
"""

import inspect
from typing import Any

import pytest

from whichwall.analyze.operations import operations
from whichwall.schemas.presets import PRESETS, preset, preset_model

BATCH = 2
# Longer than every window, so that windows show; learned positions end before.
PROMPT, SHORT_PROMPT = 4500, 600


@pytest.mark.parametrize("name", PRESETS)
def test_flops_of_prefill_and_decode_are_those_that_torch_counts(name: str) -> None:
    pytest.importorskip("torch.utils.flop_counter")
    model = preset_model(name)
    prompt = SHORT_PROMPT if model.positions else PROMPT

    def ours(tokens: int, context: int) -> int:
        found = operations(model, BATCH, tokens, context, 2, 2, pairs="rectangle")
        return sum(one.flops * one.count for one in found)

    assert (ours(prompt, 0), ours(1, prompt)) == counted(name, prompt)


def counted(name: str, prompt: int) -> tuple[int, int]:
    """Return the FLOPs of a prefill and of the step after it, counted on the meta device."""
    import torch

    built = built_on_meta(name)
    # transformers 5.24 renamed what 5.17 knows as past_key_values.
    cache = "cache" if "cache" in inspect.signature(built.forward).parameters else "past_key_values"
    ids = torch.ones((BATCH, prompt), dtype=torch.int64, device="meta")
    prefill, filled = count(built, cache, input_ids=ids)
    decode, _ = count(built, cache, input_ids=ids[:, :1], **{cache: filled})
    return prefill, decode


def built_on_meta(name: str) -> Any:
    import torch

    transformers: Any = pytest.importorskip("transformers")
    fields = preset(name)
    how = {"attn_implementation": "eager"}  # a fused kernel has no count on this device
    if preset_model(name).experts is not None:
        how["experts_implementation"] = "batched_mm"  # grouped products are not counted
    config = transformers.AutoConfig.for_model(**fields)
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(config, **how).eval()


def count(built: Any, cache: str, /, **inputs: object) -> tuple[int, Any]:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    with torch.no_grad(), torch.device("meta"), FlopCounterMode(display=False) as counter:
        out = built(use_cache=True, logits_to_keep=1, **inputs)
    # transformers 5.17 writes rotary angles as a matrix product; they count as none.
    modules = counter.get_flop_counts().items()
    angles = sum(sum(by_op.values()) for module, by_op in modules if "rotary_emb" in module)
    return counter.get_total_flops() - angles, getattr(out, cache)
