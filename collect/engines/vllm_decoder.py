"""Drive vLLM's engine pass by pass: a prompt to its first tokens, then one token per sequence.

A pass ends when every sequence has a new token. With asynchronous scheduling the engine gives away
the tokens of one step after it has begun the next, so a decode pass is what lies between one token
and the next, as a user sees it, and no call is waited for on the GPU. Prompts are random and each
is new, so that no cache of prefixes ever holds one.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from whichwall.collect.decoder import Decoder
from whichwall.collect.device import Device
from whichwall.collect.engines.vllm_api import Came, Engine
from whichwall.collect.engines.vllm_model import VllmModel
from whichwall.collect.engines.vllm_trace import EngineTrace
from whichwall.collect.passes import PassLog
from whichwall.schemas.errors import CollectError

T = TypeVar("T")

# What an engine raises once it cannot go on; it is of no further use then.
ENDED = (RuntimeError, MemoryError)


@dataclass(frozen=True)
class Moment:
    """One moment on two clocks: the epoch's, and the one that durations are taken with."""

    epoch_ns: int
    clock_ns: int


def now() -> Moment:
    """Return this moment."""
    return Moment(time.time_ns(), time.perf_counter_ns())


class VllmDecoder(Decoder):
    """Runs requests through an engine; the tokens stay with it, and it feeds them back itself."""

    def __init__(self, model: VllmModel) -> None:
        """Take a model; its engine starts in `make_ready`, if it has not yet."""
        self.model = self._own = model
        self.span = (now(), now())  # of the last pass
        self._new_tokens = self._batch = 0
        self._live: set[str] = set()  # sequences that have not ended
        self._nothing = torch.empty(0)

    @property
    def engine(self) -> Engine:
        """Return the engine, started."""
        return self._own.engine

    def make_ready(self, prompt: torch.Tensor, new_tokens: int) -> None:
        """Start the engine, and see that its cache holds requests of this shape.

        Raises:
            CollectError: it cannot start.
            MemoryError: its cache is too small.
        """
        batch, length = prompt.shape
        self._new_tokens = new_tokens
        facts = self.engine.facts
        block = facts.cache_block_tokens or 1
        blocks = -(-(length + new_tokens) // block)
        if facts.cache_tokens is not None and batch * blocks * block > facts.cache_tokens:
            raise MemoryError(
                f"vLLM's cache holds {facts.cache_tokens:,} tokens, and the request tried to "
                f"allocate {batch * blocks * block:,} tokens of it"
            )

    def make_log(
        self, device: Device, batch: int | None, *, point: int = 0, visit: int | None = None
    ) -> PassLog:
        """Return a log that takes each pass's span from here."""
        return _SpanLog(self, device, batch, point=point, visit=visit)

    def trace_session(self, device: Device) -> EngineTrace:
        """Return a session of vLLM's own profiler."""
        return EngineTrace(device, self.engine, self._rest)

    def prefill(self, tokens: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Run new prompts of this shape until each sequence has its first token.

        The span runs from the first request that is added to the last first token.

        Raises:
            CollectError: a prompt was found in a cache.
        """
        self._settle()
        batch, length = tokens.shape
        most = self._new_tokens + self._spare(batch * length)
        prompts = dict(self._own.new_prompt(length) for _ in range(batch))
        begin = now()
        for name, ids in prompts.items():
            self.engine.add(name, ids, most)
        self._live, self._batch = set(prompts), batch
        came = list(self._until_each_has_one())
        self.span = (begin, now())
        if any(one.cached_tokens for some in came for one in some.values()):
            raise CollectError(
                "vLLM found tokens of a new random prompt in its cache: the first token then took "
                "less than its prompt; lower the batch or the lengths"
            )
        return self._nothing, None

    def step(self, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        """Run until each sequence has its next token; the span begins at the token before.

        Raises:
            CollectError: the engine ran some of the sequences and not others.
        """
        del tokens, cache  # the engine has both
        for came in self._until_each_has_one():
            if len(came) != self._batch:
                raise CollectError(
                    f"vLLM ran {len(came)} of {self._batch} sequences in one step, which is then "
                    "no step of this batch; lower the batch or the lengths"
                )
        self.span = (self.span[1], now())
        return self._nothing, None

    def _rest(self) -> None:
        """Have the next decode pass begin now: what lies between is none of the engine's."""
        self.span = (self.span[0], now())

    def _until_each_has_one(self) -> Iterator[dict[str, Came]]:
        """Step until every sequence has a new token; yield what came, where something did."""
        missing = set(self._live)
        if len(missing) < self._batch:
            raise CollectError("vLLM ended a request before its last token")
        while missing:
            came = self._step()
            if came:
                missing -= came.keys()
                self._live -= {name for name, one in came.items() if one.is_last}
                yield came
            elif not self.engine.has_requests():
                raise CollectError("vLLM ended a request before its last token")

    def _step(self) -> dict[str, Came]:
        try:
            return self.engine.step()
        except ENDED:
            self._live = set()
            self._own.close()
            raise

    def _settle(self) -> None:
        """Give up what is left of earlier requests, so that the next finds an idle engine."""
        self.engine.settle(sorted(self._live))
        self._live = set()

    def _spare(self, tokens: int) -> int:
        """Return by how many tokens the first sequences can be ahead when the last one starts."""
        at_once = self.engine.facts.step_tokens
        if self._new_tokens == 1 or at_once is None or tokens <= at_once:
            return 0
        return -(-tokens // at_once)


class _SpanLog(PassLog):
    """A log whose passes are timed by the decoder that runs them."""

    def __init__(
        self, decoder: VllmDecoder, device: Device, batch: int | None, *, point: int,
        visit: int | None,
    ) -> None:  # fmt: skip
        super().__init__(device, batch, point=point, visit=visit)
        self._decoder = decoder

    def run(self, stage: str, phase: str, *, tokens: int, context: int, work: Callable[[], T]) -> T:
        """Run one pass; the engine's work on the GPU is its own to wait for."""
        result = work()
        begin, end = self._decoder.span
        wall_ns = end.clock_ns - begin.clock_ns
        self.add(stage, phase, begin.epoch_ns, wall_ns, tokens=tokens, context=context)
        return result
