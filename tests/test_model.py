"""Dimensions read from a config, and the parameters that follow from them."""

import json
from pathlib import Path
from typing import Any

import pytest

from whichwall.schemas.errors import InputError
from whichwall.schemas.families import FAMILIES
from whichwall.schemas.model import Model, model_from_config, read_model
from whichwall.schemas.weights import active_parameters, dtype_bytes, parameters, weights

LLAMA: dict[str, object] = {
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
}
EXPERTS: dict[str, object] = {
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 48,
    "n_group": 2,
    "topk_group": 1,
}
NAMED_EXPERTS: dict[str, object] = {**EXPERTS, "num_experts": 8}
ROUTED_EXPERTS: dict[str, object] = {**EXPERTS, "n_routed_experts": 8}
LOCAL_EXPERTS: dict[str, object] = {"num_experts_per_tok": 2, "num_local_experts": 8}
LATENT: dict[str, object] = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 32,
    "q_lora_rank": 40,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 24,
}
MULTI_HEAD: dict[str, object] = {"num_key_value_heads": None}

# What each architecture needs beyond, or in place of, the fields that all share.
FIELDS: dict[str, dict[str, object]] = {
    "mixtral": LOCAL_EXPERTS,
    "qwen2_moe": {
        **NAMED_EXPERTS,
        "shared_expert_intermediate_size": 80,
        "decoder_sparse_step": 2,
        "mlp_only_layers": [3],
    },
    "qwen3_moe": {**NAMED_EXPERTS, "decoder_sparse_step": 2},
    "olmoe": {"num_experts": 8, "num_experts_per_tok": 2},
    "glm4_moe": {**ROUTED_EXPERTS, "use_qk_norm": True},
    "gpt_oss": LOCAL_EXPERTS,
    "deepseek_v2": {**ROUTED_EXPERTS, **LATENT},
    "deepseek_v3": {**ROUTED_EXPERTS, **LATENT},
    "phi": {"qk_layernorm": True},
    "cohere": {"use_qk_norm": True},
    "gpt_neox": MULTI_HEAD,
    "gpt2": {"n_positions": 128, "n_embd": 64, "n_layer": 6, "n_head": 4},
    "opt": {"ffn_dim": 96, "word_embed_proj_dim": 32},
}
# Architectures that share few of those fields.
OWN_SPELLING: dict[str, set[str]] = {
    "gpt2": {"vocab_size", "pad_token_id"},
    "opt": set(LLAMA) - {"intermediate_size", "num_key_value_heads"},
}


def small_config(model_type: str) -> dict[str, object]:
    """Return a config of an architecture, small enough to build in milliseconds."""
    shared = {k: v for k, v in LLAMA.items() if k in OWN_SPELLING.get(model_type, set(LLAMA))}
    fields = {**shared, **FIELDS.get(model_type, {}), "model_type": model_type}
    return {name: value for name, value in fields.items() if value is not None}


@pytest.fixture(scope="module")
def transformers() -> Any:
    pytest.importorskip("torch")
    return pytest.importorskip("transformers")


@pytest.mark.parametrize("model_type", sorted(set(FAMILIES) - {"gemma3"}))
def test_count_equals_that_of_the_real_architecture(model_type: str, transformers: Any) -> None:
    import torch

    fields = small_config(model_type)
    config = transformers.AutoConfig.for_model(**fields)
    with torch.device("meta"):
        built = transformers.AutoModelForCausalLM.from_config(config)
    real = sum(parameter.numel() for parameter in built.parameters())

    assert parameters(model_from_config(fields, "given")) == real
    assert parameters(model_from_config(config.to_dict(), "saved")) == real


@pytest.mark.parametrize("model_type", ["gemma2", "gemma3_text", "olmo3", "cohere2", "gpt_oss"])
def test_sliding_layers_are_those_the_real_config_decides(
    model_type: str, transformers: Any
) -> None:
    fields = small_config(model_type)
    config = transformers.AutoConfig.for_model(**fields)
    sliding = sum(kind == "sliding_attention" for kind in config.layer_types)

    model = model_from_config(fields, "given")

    assert (model.sliding_window, model.sliding_layers) == (config.sliding_window, sliding)


def test_a_config_gives_its_dimensions_and_nothing_else() -> None:
    config = {**LLAMA, "_name_or_path": "/home/someone/model", "tie_word_embeddings": True}

    assert model_from_config(config, "small") == Model(
        name="small",
        model_type="llama",
        hidden=64,
        intermediate=96,
        layers=6,
        heads=4,
        kv_heads=2,
        head_dim=16,
        vocab=512,
        tied=True,
    )


def test_head_dim_is_the_field_before_it_is_a_quotient() -> None:
    assert model_from_config({**LLAMA, "head_dim": 32}, "wide").head_dim == 32
    assert model_from_config({**LLAMA, "head_dim": None}, "plain").head_dim == 16


def test_gpt2_names_are_understood_and_its_inner_width_is_four_times_the_hidden_one() -> None:
    model = model_from_config({**small_config("gpt2"), "n_inner": None}, "gpt2")

    assert (model.hidden, model.layers, model.heads) == (64, 6, 4)
    assert (model.intermediate, model.positions, model.tied) == (256, 128, True)


def test_opt_has_two_more_positions_and_a_narrower_token_table() -> None:
    model = model_from_config({**small_config("opt"), "max_position_embeddings": 128}, "opt")

    assert (model.positions, model.embedding) == (130, 32)
    assert {w.name for w in weights(model)} >= {"project_in", "project_out"}


def test_a_nested_text_config_is_read_with_the_defaults_of_its_architecture() -> None:
    config = {
        "model_type": "gemma3",
        "dtype": "bfloat16",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 34,
            "sliding_window": 1024,
        },
    }

    model = model_from_config(config, "gemma-3-4b")

    assert (model.vocab, model.heads, model.kv_heads, model.head_dim) == (262208, 8, 4, 256)
    assert (model.sliding_window, model.sliding_layers) == (1024, 29)
    assert (model.tied, model.dtype) == (True, "bfloat16")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"model_type": "mistral", "sliding_window": 64}, (64, 6)),
        ({"model_type": "mistral", "sliding_window": None}, (None, 0)),
        ({"model_type": "qwen2", "sliding_window": 64}, (None, 0)),
        (
            {
                "model_type": "qwen2",
                "sliding_window": 64,
                "use_sliding_window": True,
                "max_window_layers": 4,
            },
            (64, 2),
        ),
        ({"model_type": "gemma3_text", "sliding_window": 64, "sliding_window_pattern": 3}, (64, 4)),
    ],
)
def test_sliding_window_applies_where_the_architecture_uses_it(
    fields: dict[str, object], expected: tuple[int | None, int]
) -> None:
    model = model_from_config({**LLAMA, **fields}, "windowed")

    assert (model.sliding_window, model.sliding_layers) == expected


def test_experts_sit_in_the_layers_that_the_config_names() -> None:
    moe = {**LLAMA, "model_type": "qwen3_moe", **NAMED_EXPERTS}

    model = model_from_config({**moe, "decoder_sparse_step": 2, "mlp_only_layers": [3]}, "moe")

    assert [model.is_sparse(layer) for layer in range(6)] == [
        False,
        True,
        False,
        False,
        False,
        True,
    ]
    assert active_parameters(model) == parameters(model) - 2 * 6 * 3 * 64 * 48


def test_an_unknown_architecture_is_marked_as_assumed() -> None:
    assert model_from_config({**LLAMA, "model_type": "llama9"}, "new").assumed
    assert not model_from_config(LLAMA, "known").assumed


def test_quantization_is_kept_by_its_method() -> None:
    quantized = {**LLAMA, "quantization_config": {"quant_method": "awq", "bits": 4}}

    assert model_from_config(quantized, "small").quantization == "awq"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": None}, "field model_type is missing"),
        ({"hidden_size": None}, "field hidden_size is missing (nor n_embd, d_model)"),
        ({"num_hidden_layers": None}, "field num_hidden_layers is missing"),
        ({"vocab_size": 0}, "field vocab_size is 0"),
        ({"num_attention_heads": "four"}, "num_attention_heads is 'four'"),
        ({"num_experts": 8}, "field num_experts_per_tok is missing"),
        ({"kv_lora_rank": 8}, "field qk_nope_head_dim is missing"),
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        (
            {"layer_types": ["linear_attention", "full_attention"]},
            "layers of type linear_attention",
        ),
    ],
)
def test_a_config_that_cannot_be_read_is_refused_by_field(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError) as refused:
        model_from_config({**LLAMA, **change}, "broken", "models/config.json")

    assert str(refused.value).startswith("models/config.json: ")
    assert message in str(refused.value)


def test_a_file_or_its_folder_is_read_and_gives_the_name(tmp_path: Path) -> None:
    folder = tmp_path / "small-1b"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "other.config.json").write_text(json.dumps(LLAMA))

    assert read_model(folder) == read_model(folder / "config.json")
    assert read_model(folder).name == "small-1b"
    assert read_model(tmp_path / "other.config.json").name == "other"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[]", "no JSON object"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_file_that_is_no_config_is_refused_in_one_line(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "config.json"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(InputError) as refused:
        read_model(path)

    assert message in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_handed_configs_are_read(shared: Path) -> None:
    found = {
        path.name.removesuffix(".config.json"): parameters(read_model(path))
        for path in sorted((shared / "traces").glob("*/*.config.json"))
        if path.parent.name == "vllm"
    }

    assert found["qwen2.5-0.5b"] == 494_032_768
    assert found["llama3-8b-8l"] == 8 * 218_112_000 + 2 * 128_256 * 4096 + 4096
    assert found["qwen3-moe-32e"] > 1_000_000_000


def test_types_have_the_width_that_torch_gives_them() -> None:
    torch = pytest.importorskip("torch")

    for name in ("float32", "float16", "bfloat16", "float8_e4m3fn", "int8"):
        assert dtype_bytes(name) == getattr(torch, name).itemsize
    with pytest.raises(InputError, match="dtype 'int4' has no known width"):
        dtype_bytes("int4")
