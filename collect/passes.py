"""Time passes: each synchronised at both ends, on the host's clock and the GPU's."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import torch

from whichwall.collect.device import Device
from whichwall.collect.stopwatch import gpu_event
from whichwall.schemas.passes import PROFILED, Passes

T = TypeVar("T")

NS_PER_MS = 1_000_000


def annotation(phase: str, index: int) -> str:
    """Return the text by which a trace names a pass of ours."""
    return f"whichwall::{phase}#{index}"


class PassLog:
    """Run passes and keep a row of the passes table for each."""

    def __init__(
        self,
        device: Device,
        batch: int | None,
        *,
        point: int = 0,
        visit: int | None = None,
        rank: int = 0,
    ) -> None:
        """Start with no rows; on a GPU, one pair of events serves all passes."""
        self.rows: list[dict[str, object]] = []
        self.point, self.visit, self.rank = point, visit, rank
        self.device = device
        self.batch = batch
        self._next: Counter[str] = Counter()
        self._events: list[Any] = []
        if device.is_gpu:
            self._events = [gpu_event(), gpu_event()]

    def run(self, stage: str, phase: str, *, tokens: int, context: int, work: Callable[[], T]) -> T:
        """Run one pass and return what it returns."""
        with self.timed(stage, phase, tokens=tokens, context=context):
            return work()

    @contextmanager
    def timed(
        self, stage: str, phase: str, *, tokens: int | None, context: int | None
    ) -> Iterator[None]:
        """Take the block for one pass; a block that raises leaves no row.

        In the profiled stage it is under an annotation that a trace will show, which holds the
        wait at the end too, so that the pass's last kernel is in it.
        """
        index = self._number(stage)
        label = (
            torch.profiler.record_function(annotation(phase, index))
            if stage == PROFILED
            else nullcontext()
        )
        self.device.synchronize()
        start_ns = time.time_ns()
        begin = time.perf_counter_ns()
        with label:
            self._mark(0)
            yield
            self._mark(1)
            self.device.synchronize()
        wall_ns = time.perf_counter_ns() - begin
        times = (start_ns, wall_ns, self._between())
        self._add(stage, phase, index, times, tokens=tokens, context=context)

    def add(
        self, stage: str, phase: str, start_ns: int, wall_ns: int, *, tokens: int, context: int
    ) -> None:
        """Add the row of a pass that something else has timed, on the host alone."""
        times = (start_ns, wall_ns, None)
        self._add(stage, phase, self._number(stage), times, tokens=tokens, context=context)

    def _number(self, stage: str) -> int:
        self._next[stage] += 1
        return self._next[stage] - 1

    def _add(
        self, stage: str, phase: str, index: int, times: tuple[int, int, int | None], *,
        tokens: int | None, context: int | None,
    ) -> None:  # fmt: skip
        start_ns, wall_ns, gpu_ns = times
        self.rows.append(
            {
                Passes.point: self.point,
                Passes.rank: self.rank,
                Passes.stage: stage,
                Passes.phase: phase,
                Passes.index: index,
                Passes.visit: self.visit,
                Passes.start_ns: start_ns,
                Passes.wall_ns: wall_ns,
                Passes.gpu_ns: gpu_ns,
                Passes.batch: self.batch,
                Passes.tokens: tokens,
                Passes.context_tokens: context,
            }
        )

    def _mark(self, which: int) -> None:
        if self._events:
            self._events[which].record()

    def _between(self) -> int | None:
        if not self._events:
            return None
        elapsed_ms: float = self._events[0].elapsed_time(self._events[1])
        return round(elapsed_ms * NS_PER_MS)

    def walls(self, stage: str, phase: str) -> list[int]:
        """Return the wall times of one stage's passes of one phase, in ns."""
        return [
            wall
            for row in self.rows
            if row[Passes.stage] == stage
            and row[Passes.phase] == phase
            and isinstance(wall := row[Passes.wall_ns], int)
        ]
