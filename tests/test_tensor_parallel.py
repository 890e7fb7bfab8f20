"""A model split over ranks: what each holds, what each computes, what they send."""

import msgspec
import pytest

from whichwall.analyze.operations import operations
from whichwall.analyze.tensor_parallel import communication, share_of_rank
from whichwall.schemas.errors import UsageError
from whichwall.schemas.prediction import Communication
from whichwall.schemas.presets import preset_model
from whichwall.schemas.weights import cache_numbers, parameters, weights

DIVISIBLE = ["llama-3.1-8b", "qwen3-30b-a3b", "mixtral-8x7b", "deepseek-v2-lite", "gemma-2-2b"]


@pytest.mark.parametrize("name", DIVISIBLE)
def test_ranks_together_hold_the_model_once_and_its_replicas_again(name: str) -> None:
    model = preset_model(name)
    on_each = {
        "norm", "final_norm", "q_norm", "k_norm", "kv_a_norm", "q_a_norm", "router", "kv_a_proj",
    }  # fmt: skip
    again = sum(w.numbers * w.count for w in weights(model) if w.name in on_each)

    assert 2 * parameters(share_of_rank(model, 2)) == parameters(model) + again


@pytest.mark.parametrize("name", DIVISIBLE)
def test_ranks_together_compute_the_model_once_and_its_replicas_again(name: str) -> None:
    def flops(ranks: int) -> dict[str, int]:
        found = operations(share_of_rank(preset_model(name), ranks), 3, 1, 50, 2, 2)
        return {one.name: one.flops * one.count for one in found}

    whole, half = flops(1), flops(2)

    on_each = {"router", "kv_a_proj"}
    assert {k: v if k in on_each else 2 * v for k, v in half.items()} == whole


@pytest.mark.parametrize(("ranks", "kv_heads"), [(1, 8), (2, 4), (8, 1), (16, 1), (32, 1)])
def test_a_rank_holds_a_whole_key_value_head_at_least(ranks: int, kv_heads: int) -> None:
    assert share_of_rank(preset_model("llama-3.1-8b"), ranks).kv_heads == kv_heads


def test_the_latent_cache_is_on_every_rank_whole() -> None:
    model = preset_model("deepseek-v2-lite")

    assert cache_numbers(share_of_rank(model, 8)) == cache_numbers(model)


def test_a_vocabulary_that_does_not_divide_is_padded() -> None:
    model = preset_model("gpt2")  # 50,257 tokens

    assert share_of_rank(model, 4).vocab == 12565


@pytest.mark.parametrize(
    ("name", "ranks", "said"),
    [
        ("gpt2", 5, "attention heads of gpt2 (12) cannot be split into 5"),
        ("qwen2.5-0.5b", 4, "attention heads of qwen2.5-0.5b (14)"),
        ("qwen2.5-1.5b", 3, "key-value heads of qwen2.5-1.5b (2)"),
    ],
)
def test_what_does_not_divide_is_named(name: str, ranks: int, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        share_of_rank(preset_model(name), ranks)

    assert said in str(refused.value)


def test_a_width_that_does_not_divide_is_named() -> None:
    model = msgspec.structs.replace(preset_model("llama-3.1-8b"), intermediate=14337)

    with pytest.raises(UsageError, match="the MLP's width of llama"):
        share_of_rank(model, 2)


def test_ranks_add_up_twice_a_layer_and_once_for_the_token_table_in_rings() -> None:
    model = preset_model("llama-3.1-8b")

    found = communication(model, 4, 8, 8, 2, 400.0)

    reduces, each, logits = 65, 8 * 4096 * 2, 8 * 128256 * 2
    sent = (2 * reduces * each + logits) * 3 // 4
    assert found == Communication(
        all_reduces=reduces, all_reduce_bytes=each, gathered_bytes=logits, sent_bytes=sent,
        time_ns=round(sent / 400),
    )  # fmt: skip


def test_an_unknown_link_leaves_the_time_unknown() -> None:
    found = communication(preset_model("llama-3.1-8b"), 2, 1, 1, 2, None)

    assert found is not None
    assert found.time_ns is None
    assert communication(preset_model("llama-3.1-8b"), 1, 1, 1, 2, None) is None
