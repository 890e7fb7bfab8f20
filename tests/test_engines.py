"""Engines: each runs the same passes, so on one machine each chooses the same tokens."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from whichwall.collect.decoder import Decoder
from whichwall.collect.device import choose_device
from whichwall.collect.engines.compiled import REDUCE_OVERHEAD, CompiledDecoder
from whichwall.collect.engines.make import make_decoder
from whichwall.collect.engines.static_cache import StaticCacheDecoder
from whichwall.collect.models import build, find_source
from whichwall.collect.options import ENGINES
from whichwall.collect.workload import random_prompt
from whichwall.schemas.errors import CollectError

CPU = choose_device("cpu")
BATCH, PROMPT, NEW = 2, 8, 6
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


@pytest.fixture(scope="module")
def model() -> Any:
    return build(find_source("tiny", "dummy"), CPU, torch.float32, "auto").module


@pytest.fixture(scope="module")
def prompt(model: Any) -> torch.Tensor:
    return random_prompt(BATCH, PROMPT, model.config.vocab_size, CPU.torch)


@pytest.fixture
def passed_through(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Have torch.compile return what it is given; the modes it was asked for are listed."""
    asked: list[tuple[str, bool]] = []

    def as_it_is(work: Callable[..., Any], *, mode: str, dynamic: bool) -> Callable[..., Any]:
        asked.append((mode, dynamic))
        return work

    monkeypatch.setattr(torch, "compile", as_it_is)
    return asked


def tokens(decoder: Decoder, prompt: torch.Tensor, new_tokens: int = NEW) -> list[list[int]]:
    """Return the tokens of one request, a list per sequence."""
    with torch.no_grad():
        found, cache = decoder.prefill(prompt)
        chosen = [found.clone()]
        for _ in range(new_tokens - 1):
            found, cache = decoder.step(found, cache)
            chosen.append(found.clone())
    written: list[list[int]] = torch.cat(chosen, dim=1).tolist()
    return written


def ready(decoder: Decoder, prompt: torch.Tensor, new_tokens: int = NEW) -> Decoder:
    with torch.no_grad():
        decoder.make_ready(prompt, new_tokens)
    return decoder


def test_a_static_cache_gives_the_tokens_of_a_growing_one(model: Any, prompt: torch.Tensor) -> None:
    fixed = ready(StaticCacheDecoder(model), prompt)

    assert tokens(fixed, prompt) == tokens(Decoder(model), prompt)


def test_a_static_cache_is_emptied_for_each_request(model: Any, prompt: torch.Tensor) -> None:
    fixed = ready(StaticCacheDecoder(model), prompt)

    assert tokens(fixed, prompt) == tokens(fixed, prompt)


def test_a_static_cache_has_room_for_the_whole_request(model: Any, prompt: torch.Tensor) -> None:
    fixed = ready(StaticCacheDecoder(model), prompt)
    tokens(fixed, prompt)

    (cache,) = (value for value in vars(fixed).values() if hasattr(value, "layers"))
    assert cache.layers[0].keys.shape[2] >= PROMPT + NEW


def test_a_compiled_step_gives_the_tokens_of_an_eager_one(
    model: Any, prompt: torch.Tensor, passed_through: list[tuple[str, bool]]
) -> None:
    decoder = ready(CompiledDecoder(model, "default"), prompt)

    assert tokens(decoder, prompt) == tokens(Decoder(model), prompt)
    assert passed_through == [("default", False)]


def test_a_compiled_prefill_gives_the_token_of_an_eager_one(
    model: Any, prompt: torch.Tensor, passed_through: list[tuple[str, bool]]
) -> None:
    decoder = ready(CompiledDecoder(model, "default"), prompt, 1)

    assert tokens(decoder, prompt, 1) == tokens(Decoder(model), prompt, 1)
    assert passed_through == [("default", False)]


# Loading the compiler warns of torch's own old parts.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_only_recorded_graphs_are_made_anew_under_a_profiler(
    model: Any, prompt: torch.Tensor, passed_through: list[tuple[str, bool]]
) -> None:
    for mode in ("default", REDUCE_OVERHEAD):
        decoder = ready(CompiledDecoder(model, mode), prompt)
        with torch.no_grad():
            decoder.renew()

    assert [mode for mode, _ in passed_through] == ["default", REDUCE_OVERHEAD, REDUCE_OVERHEAD]


@pytest.mark.parametrize("engine", ["cuda-graph", "compile-reduce-overhead"])
def test_graphs_without_a_gpu_are_refused_in_one_line(model: Any, engine: str) -> None:
    with pytest.raises(CollectError, match=f"--engine {engine} needs a GPU"):
        make_decoder(engine, model, CPU)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_that_is_offered_is_built(engine: str) -> None:
    class Gpu:
        is_gpu = True

    class Model(torch.nn.Module):
        def forward(self, cache: object = None) -> None: ...

    assert isinstance(make_decoder(engine, Model(), Gpu()), Decoder)  # type: ignore[arg-type]


@needs_gpu
@pytest.mark.parametrize("new_tokens", [1, NEW])
def test_a_graph_gives_the_tokens_of_a_static_cache_run_kernel_by_kernel(new_tokens: int) -> None:
    device = choose_device("cuda")
    model = build(find_source("tiny", "dummy"), device, torch.float32, "auto").module
    prompt = random_prompt(BATCH, PROMPT, model.config.vocab_size, device.torch)
    found = [
        tokens(ready(make_decoder(engine, model, device), prompt, new_tokens), prompt, new_tokens)
        for engine in ("static-cache", "cuda-graph")
    ]

    assert found[0] == found[1]
