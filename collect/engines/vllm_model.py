"""A model that vLLM runs: its dimensions, and an engine that starts when it is first needed."""

import json
import random
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import torch

from whichwall.collect.device import Device, dtype_name
from whichwall.collect.engines.vllm_api import LEAST_STEP_TOKENS, Engine, Room
from whichwall.collect.models import Built, Source, describe
from whichwall.collect.options import DUMMY
from whichwall.collect.packages import require_vllm
from whichwall.collect.point import Point
from whichwall.schemas.errors import CollectError
from whichwall.schemas.manifest import EngineFacts
from whichwall.schemas.model import CONFIG_FILE, Model
from whichwall.schemas.weights import DTYPE_BYTES, cache_numbers

SEED = 20_260
# Prompts that an engine asked one by one keeps, so that the first is still there for the last.
KEPT_PROMPTS = 64
AUTO = "auto"  # vLLM chooses its attention itself; EngineFacts says which


class VllmModel:
    """Starts its engine once, with room for the largest of the points to come."""

    def __init__(self, source: Source, config: Any, facts: Model, device: Device) -> None:
        """Take what `describe` says of a source; `expect` comes before the engine.

        Args:
            source: where config and weights come from.
            config: as transformers reads it, with the name of its architecture.
            facts: its dimensions, with the type that it runs in.
            device: where it is to run.
        """
        self.facts, self.device = facts, device
        self._source, self._config = source, config
        self._room: Room | None = None
        self._engine: Engine | None = None
        self._failed: CollectError | None = None
        # One row of prompts for all that is run: a prompt made twice would be found in the cache.
        self._random = random.Random(SEED)  # noqa: S311
        self._names = (f"whichwall-{number}" for number in count())

    def new_prompt(self, length: int) -> tuple[str, list[int]]:
        """Return a request's name and random token ids, that no earlier request had."""
        return next(self._names), self._random.choices(range(self.facts.vocab), k=length)

    def expect(self, points: Sequence[Point]) -> None:
        """Say what will be run, before the engine starts."""
        if not points:
            return
        longest = getattr(self._config, "max_position_embeddings", None)
        asked = [point.prompt_tokens + point.new_tokens for point in points]
        spared = [n + spare_tokens(p) for n, p in zip(asked, points, strict=True)]
        # Positions bound what can be spared, but not what is asked: of that vLLM says no itself.
        tokens = max(max(asked), min(max(spared), longest or max(spared)))
        self._room = Room(
            sequences=max(point.batch for point in points),
            tokens=tokens,
            # A prompt alone is timed as one pass, so it must be one step.
            at_once=max(
                (p.batch * p.prompt_tokens for p in points if p.new_tokens == 1), default=0
            ),
            cache_bytes=self._token_bytes()
            * max(p.batch * n for p, n in zip(points, spared, strict=True)),
        )

    def expect_one(self, longest_tokens: int) -> None:
        """Say that prompts come one by one, and begin alike: what is cached of them must be found.

        Args:
            longest_tokens: of a prompt and its answer together.
        """
        cache_bytes = KEPT_PROMPTS * longest_tokens * self._token_bytes()
        self._room = Room(1, longest_tokens, 0, cache_bytes, shares_prefixes=True)

    def _token_bytes(self) -> int:
        """Return what one token leaves in the cache."""
        size = DTYPE_BYTES.get(self.facts.dtype or "", DTYPE_BYTES["float32"])
        return size * cache_numbers(self.facts) * self.facts.layers

    @property
    def engine(self) -> Engine:
        """Return the engine; the first call starts it.

        Raises:
            CollectError: it cannot start, now or when it was first tried.
        """
        assert self._room is not None, "expect comes first"
        if self._failed is not None:
            raise self._failed
        if self._engine is None:
            try:
                self._engine = self._start(self._room)
            except CollectError as error:
                self._failed = error
                raise
        return self._engine

    def _start(self, room: Room) -> Engine:
        dummy = self._source.weights == DUMMY
        dtype = str(self.facts.dtype)
        if self._source.pretrained is not None:
            return Engine(self._source.pretrained, room, self.device, dummy=dummy, dtype=dtype)
        with tempfile.TemporaryDirectory(prefix="whichwall-model-") as folder:
            self._write_config(Path(folder))
            return Engine(folder, room, self.device, dummy=dummy, dtype=dtype)

    def _write_config(self, folder: Path) -> None:
        """Write what vLLM reads of a model: its config, which must name the architecture."""
        stated = self._source.config or {}
        named = stated.get("architectures") or self._config.architectures
        (folder / CONFIG_FILE).write_text(json.dumps({**stated, "architectures": named}))

    @property
    def engine_facts(self) -> EngineFacts | None:
        """Return what the engine was given and chose; None before it has started."""
        return None if self._engine is None else self._engine.facts

    def close(self) -> None:
        """Give back what the engine holds; it starts anew if it is needed again."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None


def build_vllm(source: Source, device: Device, dtype: torch.dtype) -> Built:
    """Return a model for vLLM; its engine has not started yet, and no weight is loaded.

    Raises:
        CollectError: vLLM is not installed, or transformers does not know the model.
    """
    require_vllm()
    config, facts = describe(source, dtype)
    assert facts.dtype == dtype_name(dtype)
    return Built(VllmModel(source, config, facts, device), facts, AUTO)


def spare_tokens(point: Point) -> int:
    """Return the tokens by which a sequence may run ahead of the others of its batch.

    Prompts that do not fit into one step start in turn; those that have started generate.
    """
    steps = -(-point.batch * point.prompt_tokens // LEAST_STEP_TOKENS)
    return steps if point.new_tokens > 1 and steps > 1 else 0
