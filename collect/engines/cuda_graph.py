"""Run each pass as one replay of a CUDA graph: one launch in place of one per kernel.

Of a request that decodes, the step is captured and the prompt runs kernel by kernel, as engines do
it; of a prefill, the whole pass is captured, the emptying of its cache included.
"""

from collections.abc import Callable
from typing import Any

import torch

from whichwall.collect.engines.static_cache import StaticCacheDecoder

# As PyTorch advises before a capture: libraries allocate workspaces in the first runs.
WARMUPS = 3


class CudaGraphDecoder(StaticCacheDecoder):
    """A decoder that replays what it captured; tokens go in and out through one buffer each."""

    def __init__(self, model: Any) -> None:
        """Take a model on a GPU."""
        super().__init__(model)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._tokens = torch.empty(0)
        self._next = torch.empty(0)

    def make_ready(self, prompt: torch.Tensor, new_tokens: int) -> None:
        """Allocate the cache and capture the pass."""
        super().make_ready(prompt, new_tokens)
        self._tokens = prompt[:, :1].clone() if self.decodes else prompt.clone()
        self.renew()

    def renew(self) -> None:
        """Capture again: a graph of before a profiler's start may leave no record."""
        self._graph = None
        if self.decodes:
            super().prefill(self.prompt)
            self._graph = self._capture(self._decode)
        else:
            self._graph = self._capture(self._fill)

    def prefill(self, tokens: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Run a prompt: by replay if prefills are what was captured."""
        if self.decodes or self._graph is None:
            return super().prefill(tokens)
        return self._replay(tokens)

    def step(self, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        """Replay one step; the result is overwritten by the next."""
        del cache  # it is in the graph
        return self._replay(tokens)

    def _replay(self, tokens: torch.Tensor) -> tuple[torch.Tensor, Any]:
        assert self._graph is not None, "make_ready comes first"
        if tokens.data_ptr() != self._tokens.data_ptr():
            self._tokens.copy_(tokens)
        self._graph.replay()
        return self._next, self._held

    def _decode(self) -> None:
        self._next, _ = self._run(self._tokens, self._held)
        # The next step reads what this one chose, so that replays follow one another by themselves.
        self._tokens.copy_(self._next)
        self._next = self._tokens

    def _fill(self) -> None:
        self._next, _ = super().prefill(self._tokens)

    def _capture(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Capture work that has run a few times on a stream of its own."""
        device = self.prompt.device
        side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(WARMUPS):
                work()
        torch.cuda.current_stream(device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # NVML's and the sampler's threads make no CUDA call, but a library of the user's may.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            work()
        return graph
