"""Run a model kernel by kernel on a cache that is allocated once: what graphs and compilers need.

Every step has the same shapes at the same addresses: attention runs over the whole cache, and what
is not filled yet is masked.
"""

from typing import Any

import torch

from whichwall.collect.decoder import Decoder

# Steps that run beyond a request: while a graph is captured or a step compiled.
SPARE_TOKENS = 8


class StaticCacheDecoder(Decoder):
    """A decoder whose cache never grows and never moves."""

    def __init__(self, model: Any) -> None:
        """Take a model; `make_ready` must be called before the first pass."""
        super().__init__(model)
        self._held: Any = None
        self._prompt: torch.Tensor | None = None
        self.decodes = False

    @property
    def prompt(self) -> torch.Tensor:
        """Return the prompt that this decoder is ready for."""
        assert self._prompt is not None, "make_ready comes first"
        return self._prompt

    def make_ready(self, prompt: torch.Tensor, new_tokens: int) -> None:
        """Allocate the cache: its tensors are made by the first prefill."""
        from transformers import StaticCache

        self._prompt, self.decodes = prompt, new_tokens > 1
        length = prompt.shape[1] + new_tokens + SPARE_TOKENS
        self._held = StaticCache(config=self.model.config, max_cache_len=length)
        self.prefill(prompt)

    def prefill(self, tokens: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Run a prompt into the emptied cache."""
        self._held.reset()
        return self._run(tokens, self._held)
