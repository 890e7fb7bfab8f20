"""One pass of a decoder: the same two calls whatever transformers calls its cache."""

import inspect
from pathlib import Path
from typing import Any, Protocol, Self

import torch

from whichwall.collect.device import Device
from whichwall.collect.passes import PassLog
from whichwall.collect.profiler import TraceSession
from whichwall.schemas.manifest import ProfilerFacts

# transformers 5.24 renamed the cache; older releases know the second name only.
CACHE_NAMES = ("cache", "past_key_values")
LAST_LOGITS = "logits_to_keep"


class Session(Protocol):
    """One recording by a profiler: a block, inside which `start` and `stop` enclose it."""

    def __enter__(self) -> Self:
        """Prepare; nothing records yet."""

    def __exit__(self, *ended: Any) -> None:
        """Leave no profiler running."""

    def start(self) -> None:
        """Begin to record."""

    def stop(self) -> None:
        """End the recording."""

    def export(self, path: Path) -> None:
        """Write the trace into a file."""

    def facts(self) -> ProfilerFacts:
        """Return how the trace was taken."""


class Decoder:
    """A causal language model, with greedy choice of the next token on the device.

    This one launches every kernel by itself, and its cache grows by a token a step; engines that
    do otherwise derive from it.
    """

    def __init__(self, model: Any) -> None:
        """Find out how this release names things."""
        self.model = model
        names = inspect.signature(model.forward).parameters
        self._cache = next(name for name in CACHE_NAMES if name in names)
        # As generation does it: the head works on the last position only.
        self._options = {"use_cache": True} | ({LAST_LOGITS: 1} if LAST_LOGITS in names else {})

    def make_ready(self, prompt: torch.Tensor, new_tokens: int) -> None:
        """Prepare requests of this prompt's shape (batch, length): allocate, capture or compile.

        Args:
            prompt: token ids of shape (batch, length) on the device.
            new_tokens: tokens of a request, the first from its prefill; 1: prefills only.
        """

    def renew(self) -> None:
        """Make anew what a profiler that started since could not see: captured graphs."""

    def make_log(
        self, device: Device, batch: int | None, *, point: int = 0, visit: int | None = None
    ) -> PassLog:
        """Return a log that times passes of this decoder."""
        return PassLog(device, batch, point=point, visit=visit)

    def trace_session(self, device: Device) -> Session:
        """Return a session of the profiler that can see these passes."""
        return TraceSession(device)

    def prefill(self, tokens: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Run a prompt of shape (batch, length); return next tokens (batch, 1) and the cache."""
        return self._run(tokens, None)

    def step(self, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        """Run one token per sequence, shape (batch, 1), after what the cache holds."""
        return self._run(tokens, cache)

    def _run(self, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        out = self.model(input_ids=tokens, **{self._cache: cache}, **self._options)
        return greedy(out.logits), getattr(out, self._cache)


def greedy(logits: torch.Tensor) -> torch.Tensor:
    """Return the likeliest next tokens, shape (batch, 1), from the logits of a pass."""
    return logits[:, -1:].argmax(dim=-1)
