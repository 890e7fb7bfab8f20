import json
from pathlib import Path

import pytest
import torch

from whichwall.collect.decoder import Decoder
from whichwall.collect.device import choose_device
from whichwall.collect.models import build, find_source, forced_attention
from whichwall.collect.workload import random_prompt
from whichwall.schemas.errors import CollectError, InputError, UsageError
from whichwall.schemas.weights import parameters

CPU = choose_device("cpu")

SMALL = {
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "tie_word_embeddings": False,
}
MIXTURE = {
    **SMALL,
    "model_type": "mixtral",
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "sliding_window": None,
}
LEARNED = {
    "model_type": "gpt2",
    "vocab_size": 512,
    "n_positions": 64,
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
}


def config(tmp_path: Path, fields: dict[str, object]) -> str:
    path = tmp_path / "small" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(fields))
    return str(path)


def test_a_tied_head_is_counted_once() -> None:
    built = build(find_source("tiny", "dummy"), CPU, torch.float32, "auto")

    assert built.facts.parameters == 1_312_896
    assert built.facts.weight_bytes == 4 * 1_312_896
    assert built.attention == "sdpa"
    assert built.facts.dtype == "float32"


@pytest.mark.parametrize("fields", [SMALL, MIXTURE, LEARNED], ids=lambda f: str(f["model_type"]))
def test_random_weights_give_finite_logits_and_the_counted_parameters(
    tmp_path: Path, fields: dict[str, object]
) -> None:
    source = find_source(config(tmp_path, fields), "dummy")

    built = build(source, CPU, torch.float32, "eager")

    with torch.no_grad():
        logits = built.module(input_ids=random_prompt(2, 8, 512, CPU.torch)).logits
    assert bool(torch.isfinite(logits).all())
    assert float(logits.std()) > 0
    assert built.facts.parameters == parameters(built.facts)
    assert built.facts.name == "small"


def test_the_same_weights_come_every_time() -> None:
    first, second = (
        build(find_source("tiny", "dummy"), CPU, torch.float32, "auto").module.state_dict()
        for _ in range(2)
    )

    assert all(torch.equal(first[name], second[name]) for name in first)


def test_weights_of_a_folder_are_loaded(tmp_path: Path) -> None:
    made = build(find_source(config(tmp_path, SMALL), "dummy"), CPU, torch.float32, "auto")
    folder = tmp_path / "saved"
    made.module.save_pretrained(folder)

    source = find_source("ignored", str(folder))
    loaded = build(source, CPU, torch.float32, "auto")

    assert (source.weights, loaded.facts.name) == ("local", "saved")
    wanted = made.module.state_dict()
    assert all(torch.equal(t, wanted[n]) for n, t in loaded.module.state_dict().items())


def test_a_step_continues_the_cache_of_the_prefill(tmp_path: Path) -> None:
    built = build(find_source(config(tmp_path, SMALL), "dummy"), CPU, torch.float32, "eager")
    decoder, prompt = Decoder(built.module), random_prompt(2, 8, 512, CPU.torch)

    with torch.no_grad():
        token, cache = decoder.prefill(prompt)
        following, _ = decoder.step(token, cache)
        whole = built.module(input_ids=torch.cat([prompt, token], dim=1)).logits

    assert tuple(token.shape) == (2, 1)
    assert torch.equal(following, whole[:, -1:].argmax(dim=-1))


def test_a_forced_backend_that_cannot_run_says_so() -> None:
    built = build(find_source("tiny", "dummy"), CPU, torch.float32, "efficient")

    with forced_attention("efficient"), torch.no_grad(), pytest.raises(RuntimeError, match="No "):
        Decoder(built.module).prefill(random_prompt(1, 8, 512, CPU.torch))


def test_an_unknown_name_is_refused_with_the_close_ones() -> None:
    with pytest.raises(UsageError, match=r"no such preset or path; did you mean qwen2\.5-"):
        find_source("qwen2.5", "dummy")


def test_a_folder_without_a_config_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a folder without config\.json"):
        find_source(str(tmp_path), "dummy")


def test_real_weights_of_a_preset_are_asked_for_by_the_hub_s_id() -> None:
    with pytest.raises(UsageError, match="give the hub's own id"):
        find_source("qwen2.5-0.5b", "hub")


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json"):
        find_source("ignored", str(tmp_path))


def test_an_architecture_that_transformers_lacks_is_one_line(tmp_path: Path) -> None:
    source = find_source(config(tmp_path, {**SMALL, "model_type": "nosuch"}), "dummy")

    with pytest.raises(CollectError, match="cannot be built or loaded"):
        build(source, CPU, torch.float32, "auto")
