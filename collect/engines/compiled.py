"""Run each pass compiled by torch.compile: fewer, fused kernels, and in one mode as a CUDA graph.

Of a request that decodes, the step is compiled and the prompt runs kernel by kernel; of a prefill,
the whole pass. Compiling happens in `make_ready`, and is part of its time.
"""

from collections.abc import Callable
from typing import Any

import torch

from whichwall.collect.engines.static_cache import StaticCacheDecoder

DEFAULT, REDUCE_OVERHEAD = "default", "reduce-overhead"
# A compiled pass with graphs runs, is recorded, and is replayed from then on.
WARMUPS = 3


class CompiledDecoder(StaticCacheDecoder):
    """A decoder whose pass is compiled for one shape."""

    def __init__(self, model: Any, mode: str) -> None:
        """Take a model and a mode of torch.compile."""
        super().__init__(model)
        self._mode = mode
        self._compiled: Callable[[torch.Tensor], torch.Tensor] | None = None

    def make_ready(self, prompt: torch.Tensor, new_tokens: int) -> None:
        """Allocate the cache, and compile by running."""
        super().make_ready(prompt, new_tokens)
        self._compile()

    def renew(self) -> None:
        """Record graphs again; what has been compiled is found in the compiler's cache."""
        if self._mode == REDUCE_OVERHEAD:
            self._compiled = None
            torch._dynamo.reset()
            self._compile()

    def _compile(self) -> None:
        self._compiled = torch.compile(self._pass, mode=self._mode, dynamic=False)
        tokens, cache = self.prefill(self.prompt)
        for _ in range(WARMUPS):
            tokens, cache = self.step(tokens, cache) if self.decodes else self.prefill(self.prompt)

    def prefill(self, tokens: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Run a prompt: compiled if prefills are all there is."""
        if self.decodes or self._compiled is None:
            return super().prefill(tokens)
        self._held.reset()
        return self._run_compiled(tokens)

    def step(self, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        """Run one compiled step."""
        del cache  # the compiled pass holds it
        return self._run_compiled(tokens)

    def _pass(self, tokens: torch.Tensor) -> torch.Tensor:
        return self._run(tokens, self._held)[0]

    def _run_compiled(self, tokens: torch.Tensor) -> tuple[torch.Tensor, Any]:
        assert self._compiled is not None, "make_ready comes first"
        if self._mode != REDUCE_OVERHEAD:
            return self._compiled(tokens), self._held
        # A graph's output lies in its own memory, which the next replay overwrites.
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        return self._compiled(tokens).clone(), self._held
