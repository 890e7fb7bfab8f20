"""What memory holds: weights once, a cache for each conversation, and no more than fits."""

import pytest

from whichwall.analyze.capacity import USABLE_SHARE, conversation_bytes, memory
from whichwall.schemas.model import Model
from whichwall.schemas.precision import precision
from whichwall.schemas.prediction import Fit, Memory
from whichwall.schemas.presets import preset_model
from whichwall.schemas.weights import parameters

GB = 10**9


def held(model: Model, dtype: str = "bf16", batch: int = 1, card: int | None = 80 * GB) -> Memory:
    return memory(model, precision(dtype), 16, 2, batch, 1024, card)


def test_the_memory_of_an_8b_model_on_a_card_of_80_gb() -> None:
    weights, token = 2 * 8_030_261_248, 131_072
    room = 72 * GB - weights

    assert held(preset_model("llama-3.1-8b"), batch=4) == Memory(
        weight_bytes=weights,
        cache_bytes_per_token=token,
        asked_bytes=weights + 4 * 1024 * token,
        usable_bytes=72 * GB,
        fits=[
            Fit(context_tokens=n, cache_bytes=n * token, conversations=room // (n * token))
            for n in (1024, 8192, 32768, 131072)
        ],
        longest_context_tokens=room // 4 // token,
    )
    assert USABLE_SHARE == 0.9


def test_tied_weights_are_stored_once() -> None:
    model = preset_model("qwen2.5-0.5b")

    assert held(model).weight_bytes == 2 * parameters(model)


def test_quantized_layers_shrink_and_embedding_and_head_do_not() -> None:
    tables = 2 * 128256 * 4096
    model = preset_model("llama-3.1-8b")
    norms = 65 * 4096

    matrices = parameters(model) - tables - norms
    assert held(model, "int4").weight_bytes == 2 * (tables + norms) + matrices // 2


@pytest.mark.parametrize("name", ["gemma-3-1b", "gemma-2-2b", "llama-3.2-1b"])
@pytest.mark.parametrize("batch", [1, 7, 100])
def test_the_longest_context_fits_and_one_more_token_does_not(name: str, batch: int) -> None:
    model = preset_model(name)
    found = held(model, batch=batch)
    assert found.usable_bytes is not None
    assert found.longest_context_tokens is not None
    entry = found.cache_bytes_per_token // model.layers

    def fits(tokens: int) -> bool:
        all_of_them = batch * conversation_bytes(model, entry, tokens)
        return found.weight_bytes + all_of_them <= (found.usable_bytes or 0)

    longest = found.longest_context_tokens
    assert (fits(longest), fits(longest + 1)) == (True, False)


def test_windows_in_every_layer_bound_the_cache_and_not_the_length() -> None:
    model = preset_model("mistral-7b-v0.1")

    assert held(model).longest_context_tokens is None
    assert conversation_bytes(model, 1, 10**6) == 32 * 4095


def test_no_conversation_fits_where_the_weights_do_not() -> None:
    found = held(preset_model("mixtral-8x7b"), card=80 * GB)

    assert found.weight_bytes > (found.usable_bytes or 0)
    assert {fit.conversations for fit in found.fits} == {0}
    assert found.longest_context_tokens == 0


def test_an_unknown_card_leaves_what_fits_unknown() -> None:
    found = held(preset_model("gpt2"), card=None)

    assert (found.usable_bytes, found.longest_context_tokens) == (None, None)
    assert {fit.conversations for fit in found.fits} == {None}


def test_no_length_beyond_the_learned_positions_is_listed() -> None:
    assert [fit.context_tokens for fit in held(preset_model("gpt2")).fits] == [1024]
