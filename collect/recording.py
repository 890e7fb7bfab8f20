"""A user's loop on its way through the stages: warm up, timed clean, traced, timed again.

A step is all that happens between two calls of `step()`, the loading of data included.
"""

from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import torch

from whichwall.collect.device import Device
from whichwall.collect.energy import metered
from whichwall.collect.options import MOST
from whichwall.collect.passes import PassLog
from whichwall.collect.profiler import TraceSession
from whichwall.collect.sampler import Sampler
from whichwall.collect.sampler import Samples as Sampled
from whichwall.collect.workload import TRACE_WARMUPS
from whichwall.schemas import passes
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import UsageError
from whichwall.schemas.manifest import EnergyFacts

LEAST = {
    "batch": 1,
    "tokens": 1,
    "warmup": 0,
    "clean": 0,
    "profiled": 0,
    "after": 0,
    "sample_interval_ms": 1,
}
UNKNOWABLE = ("batch", "tokens")


class _LoopEndedError(Exception):
    """The user's loop is over before the schedule is."""


@dataclass(frozen=True)
class Schedule:
    """How many steps each stage takes, and what a step works on; None where that is not known."""

    phase: str
    batch: int | None
    tokens: int | None
    warmup: int
    clean: int
    profiled: int
    after: int
    sample_interval_ms: int

    def check(self) -> None:
        """Refuse what no loop can follow.

        Raises:
            UsageError: naming the argument.
        """
        if self.phase not in (passes.DECODE, passes.PREFILL):
            raise UsageError(f"phase {self.phase!r}: expected decode or prefill")
        for name, least in LEAST.items():
            found = getattr(self, name)
            if found is None and name in UNKNOWABLE:
                continue
            if not isinstance(found, int) or not least <= found <= MOST:
                raise UsageError(f"{name} {found!r}: must be a number from {least} to {MOST:,}")

    @property
    def timed(self) -> dict[str, int]:
        """Return how many steps each stage that is timed asks for."""
        return {
            passes.CLEAN: self.clean,
            passes.PROFILED: self.profiled,
            passes.AFTER: self.after,
        }

    @property
    def steps(self) -> int:
        """Return how many steps all stages take, those that only warm up too."""
        settling = TRACE_WARMUPS if self.profiled else 0
        return self.warmup + self.clean + settling + self.profiled + self.after


class Recording:
    """A loop on its way through the stages; `step` marks the end of each of its steps.

    `path` is the run's folder once it is in place, on rank 0.
    """

    def __init__(self, device: Device, schedule: Schedule, log: PassLog, sampler: Sampler) -> None:
        """Begin the first step."""
        self.path: Path | None = None
        self.device, self.schedule, self.log = device, schedule, log
        self.steps = 0
        self.session: TraceSession | None = None
        self.energy: EnergyFacts | None = None
        self._sampler = sampler
        self._sampled: Sampled | None = None
        self._stages = self._follow()
        next(self._stages, None)

    def step(self) -> None:
        """Mark the end of a step; once all stages are through, this does nothing."""
        self.steps += 1
        next(self._stages, None)

    def _follow(self) -> Generator[None, None, None]:
        """Go through the stages; each yield is one step of the user's."""
        yield from repeat(None, self.schedule.warmup)
        with metered(self.device.uuid) as meter:
            yield from self._timed(passes.CLEAN)
        self.energy = meter.facts
        if self.schedule.profiled:
            yield from self._profiled()
        yield from self._timed(passes.AFTER)
        self.sampled()

    def _timed(self, stage: str) -> Generator[None, None, None]:
        """Time a stage's steps, each synchronised at both ends."""
        plan = self.schedule
        for _ in range(plan.timed[stage]):
            with self.log.timed(stage, plan.phase, tokens=plan.tokens, context=None):
                yield

    def _profiled(self) -> Generator[None, None, None]:
        """Trace a few steps, after some that pay for the profiler's start; a short loop's too."""
        try:
            with TraceSession(self.device) as session:
                yield from repeat(None, TRACE_WARMUPS)
                session.start()
                try:
                    yield from self._timed(passes.PROFILED)
                except _LoopEndedError:
                    self._keep(session)
                    raise
                self._keep(session)
        finally:
            self._settle()

    def _keep(self, session: TraceSession) -> None:
        session.stop()
        if self.log.walls(passes.PROFILED, self.schedule.phase):
            self.session = session

    def _settle(self) -> None:
        """Let the profiler be taken down, which happens within the next CUDA calls.

        A step should not pay for it, and a process that made no such call hung at its end.
        """
        if self.device.is_gpu:
            with suppress(RuntimeError):  # a GPU that has failed is for the user's own error to say
                torch.zeros(1, device=self.device.torch).add_(1)
                self.device.synchronize()

    def end(self) -> None:
        """Take what there is, however far the loop has come."""
        with suppress(_LoopEndedError):
            self._stages.throw(_LoopEndedError())

    def close(self) -> None:
        """Give up what is going on."""
        self._stages.close()

    def sampled(self) -> Sampled:
        """Return the samples; the first call ends the sampling."""
        if self._sampled is None:
            self._sampled = self._sampler.finish()
        return self._sampled

    def shortfall(self) -> list[Diagnostic]:
        """Say what the loop did not reach."""
        plan = self.schedule
        reached = {stage: len(self.log.walls(stage, plan.phase)) for stage in plan.timed}
        if reached == plan.timed:
            return []
        counts = ", ".join(f"{reached[s]} of {asked} {s}" for s, asked in plan.timed.items())
        text = f"the loop ended after {self.steps} steps of {plan.steps}: it reached {counts}"
        found = [Diagnostic("loop_ended_early", "warning", self.steps, text)]
        if plan.clean and not reached[passes.CLEAN]:
            text = "no step was timed without a profiler: the loop ended while it warmed up"
            found.append(Diagnostic("no_clean_timing", "warning", None, text))
        return found
