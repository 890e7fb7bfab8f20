"""Make the tokens of a request in three ways: waiting after each pass, only at the end, or neither.

The first two are loops by hand, the third is the library's own, which does its bookkeeping around
every pass. All choose the likeliest token, and none stops early.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from whichwall.collect.decoder import Decoder
from whichwall.collect.passes import PassLog
from whichwall.collect.workload import Workload
from whichwall.schemas.passes import Passes
from whichwall.schemas.requests import FREE, GENERATE, WAITING


@dataclass(frozen=True)
class Answer:
    """What a loop made."""

    ids: torch.Tensor  # of shape (batch, new tokens)
    prefill_ns: int | None = None  # where the loop waits for it


Loop = Callable[[torch.Tensor, str], Answer]


def make_loops(model: Any, decoder: Decoder, log: PassLog, new_tokens: int) -> dict[str, Loop]:
    """Return the loops by name; each takes prompt ids on the device and the stage it runs in.

    Args:
        model: a causal language model, for its own loop; its defaults for sampling are dropped.
        decoder: what runs passes by hand, ready for the prompt.
        log: takes each pass of the waiting loop, whose request is longer by the keeping of it,
            some tens of microseconds a pass.
        new_tokens: tokens of an answer, the first from the prompt's pass.
    """
    # Penalties and an end that a model brings along would make other tokens than the hand's loop.
    plain = _plain_greedy(new_tokens)
    model.generation_config = plain

    def waiting(prompt: torch.Tensor, stage: str) -> Answer:
        workload = Workload(decoder, log, prompt, new_tokens)
        ids = _room(prompt, new_tokens)
        workload.prefill(stage)
        prefill_ns = log.rows[-1][Passes.wall_ns]
        assert isinstance(prefill_ns, int)
        ids[:, :1] = workload.newest
        for i in range(1, new_tokens):
            workload.step(stage)
            ids[:, i : i + 1] = workload.newest
        return Answer(ids, prefill_ns)

    def free(prompt: torch.Tensor, stage: str) -> Answer:
        del stage  # no pass is timed on its own
        ids = _room(prompt, new_tokens)
        tokens, cache = decoder.prefill(prompt)
        ids[:, :1] = tokens
        for i in range(1, new_tokens):
            tokens, cache = decoder.step(tokens, cache)
            ids[:, i : i + 1] = tokens
        return Answer(ids)

    def generate(prompt: torch.Tensor, stage: str) -> Answer:
        del stage
        ids = model.generate(prompt, generation_config=plain)
        return Answer(ids[:, prompt.shape[1] :])

    return {WAITING: waiting, FREE: free, GENERATE: generate}


def _plain_greedy(new_tokens: int) -> Any:
    """Return how to generate: greedily, with no end but the number of tokens."""
    from transformers import GenerationConfig

    plain: Any = GenerationConfig  # without types
    return plain(max_new_tokens=new_tokens, do_sample=False, use_cache=True)


def _room(prompt: torch.Tensor, new_tokens: int) -> torch.Tensor:
    """Return where an answer goes: what an engine returns may lie where its next pass writes."""
    return prompt.new_empty((prompt.shape[0], new_tokens))
