"""Answers of vLLM's engine one at a time, token by token: for prompts that share a beginning.

    with open_answers(request, longest_tokens=4096) as answers:
        first = answers.ask(ids, new_tokens=16)

Its cache of prefixes is on, so a prompt that begins as an earlier one is partly found there.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from whichwall.collect.engines.vllm_api import Engine
from whichwall.collect.engines.vllm_model import VllmModel, build_vllm
from whichwall.collect.request import Request
from whichwall.schemas.errors import CollectError
from whichwall.schemas.manifest import EngineFacts


@dataclass(frozen=True)
class Answer:
    """What one request took, in ns since it was given to the engine."""

    start_ns: int  # Unix epoch
    arrivals_ns: list[int]  # of each token
    cached_tokens: int | None  # of its prompt; null: this vLLM does not say


class Answers:
    """An engine that answers one request at a time; `facts` says what it was given and chose."""

    def __init__(self, engine: Engine) -> None:
        """Take a started engine."""
        self._engine = engine
        self._names = (f"whichwall-{number}" for number in count())

    @property
    def facts(self) -> EngineFacts:
        """Return what the engine was given and chose."""
        return self._engine.facts

    def ask(self, ids: Sequence[int], new_tokens: int) -> Answer:
        """Return what a prompt of token ids took: greedy, with no end but the number of tokens.

        Raises:
            CollectError: the engine ended it early.
        """
        self._engine.settle(())
        name = next(self._names)
        arrivals: list[int] = []
        cached: int | None = None
        start_ns, begin = time.time_ns(), time.perf_counter_ns()
        self._engine.add(name, ids, new_tokens)
        while len(arrivals) < new_tokens:
            came = self._engine.step().get(name)
            at = time.perf_counter_ns() - begin
            if came is not None:
                arrivals += [at] * came.tokens
                cached = came.cached_tokens if cached is None else cached
            elif not self._engine.has_requests():
                raise CollectError(
                    f"vLLM ended a request of {len(ids)} tokens after {len(arrivals)} of "
                    f"{new_tokens} new ones"
                )
        return Answer(start_ns, arrivals, cached)


@contextmanager
def open_answers(request: Request, longest_tokens: int) -> Iterator[Answers]:
    """Start an engine with its cache of prefixes on, and end it with the block.

    Args:
        request: what is run, with its defaults resolved; its engine need not be vllm.
        longest_tokens: of a prompt and its answer together.

    Raises:
        CollectError: vLLM is not installed, or cannot start.
    """
    built = build_vllm(request.source, request.device, request.dtype)
    model: VllmModel = built.module
    model.expect_one(longest_tokens)
    try:
        yield Answers(model.engine)
    finally:
        model.close()
