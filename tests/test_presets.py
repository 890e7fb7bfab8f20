"""Presets are the real models: counted, cached and built as transformers builds them."""

from typing import Any

import pytest

from whichwall.schemas.errors import UsageError
from whichwall.schemas.presets import PRESETS, preset, preset_model
from whichwall.schemas.weights import active_parameters, cache_numbers, parameters

# All and active parameters, and bytes of cache per token in bfloat16, of the real models.
FACTS = {
    "qwen2.5-0.5b": (494_032_768, 494_032_768, 12_288),
    "qwen2.5-1.5b": (1_543_714_304, 1_543_714_304, 28_672),
    "qwen2.5-7b": (7_615_616_512, 7_615_616_512, 57_344),
    "qwen3-0.6b": (596_049_920, 596_049_920, 114_688),
    "qwen3-8b": (8_190_735_360, 8_190_735_360, 147_456),
    "qwen3-30b-a3b": (30_532_122_624, 3_353_032_704, 98_304),
    "llama-3.1-8b": (8_030_261_248, 8_030_261_248, 131_072),
    "llama-3.2-1b": (1_235_814_400, 1_235_814_400, 32_768),
    "mistral-7b-v0.1": (7_241_732_096, 7_241_732_096, 131_072),
    "gemma-2-2b": (2_614_341_888, 2_614_341_888, 106_496),
    "gemma-3-1b": (999_885_952, 999_885_952, 26_624),
    "phi-3-mini-4k": (3_821_079_552, 3_821_079_552, 393_216),
    "gpt2": (124_439_808, 124_439_808, 36_864),
    "opt-125m": (125_239_296, 125_239_296, 36_864),
    "mixtral-8x7b": (46_702_792_704, 12_879_925_248, 131_072),
    "deepseek-v2-lite": (15_706_484_224, 2_661_150_208, 31_104),
}


def test_facts_cover_every_preset() -> None:
    assert {*FACTS, "tiny"} == set(PRESETS)


@pytest.mark.parametrize("name", FACTS)
def test_parameters_and_cache_are_those_of_the_real_model(name: str) -> None:
    model = preset_model(name)

    assert FACTS[name] == (
        parameters(model),
        active_parameters(model),
        cache_numbers(model) * model.layers * 2,
    )


@pytest.mark.parametrize("name", PRESETS)
def test_transformers_builds_the_preset_with_as_many_parameters(name: str) -> None:
    torch = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")

    config = transformers.AutoConfig.for_model(**preset(name))
    with torch.device("meta"):
        built = transformers.AutoModelForCausalLM.from_config(config)

    assert sum(p.numel() for p in built.parameters()) == parameters(preset_model(name))


@pytest.mark.parametrize("name", PRESETS)
def test_no_preset_rests_on_an_assumption_or_names_a_dtype(name: str) -> None:
    model = preset_model(name)

    assert (model.name, model.assumed, model.dtype) == (name, False, None)


def test_tiny_runs_a_pass_on_a_cpu() -> None:
    torch = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(**preset("tiny"))
    )

    with torch.no_grad():
        logits = model(torch.zeros((1, 8), dtype=torch.int64)).logits

    assert logits.shape == (1, 8, preset_model("tiny").vocab)


def test_a_preset_is_a_copy_so_that_builders_may_change_it() -> None:
    changed = preset("gemma-3-1b")
    changed["rope_parameters"]["full_attention"]["rope_theta"] = 1.0

    assert preset("gemma-3-1b")["rope_parameters"]["full_attention"]["rope_theta"] == 1e6


def test_names_are_read_in_any_case() -> None:
    assert preset_model("Qwen2.5-0.5B") == preset_model("qwen2.5-0.5b")


@pytest.mark.parametrize(
    ("name", "hint"), [("qwen-0.5b", "did you mean qwen2.5-0.5b"), ("zzz", "known: tiny, qwen2.5")]
)
def test_an_unknown_name_is_answered_with_close_ones(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        preset(name)

    assert f"no model preset {name!r}" in str(refused.value)
    assert hint in str(refused.value)
