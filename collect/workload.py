"""What is run: whole requests back to back, and the few passes that the profiler looks at."""

import time
from dataclasses import dataclass

import torch

from whichwall.collect.decoder import Decoder
from whichwall.collect.options import CollectOptions
from whichwall.collect.passes import PassLog
from whichwall.collect.progress import Reporter
from whichwall.schemas import passes

SEED = 20_260
NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Plan:
    """How long each stage lasts, and how many passes are profiled."""

    warmup_s: float
    clean_s: float
    after_s: float
    profiled_decodes: int
    profiled_prefills: int


# Clean: power and clocks are averaged over up to 1 s and change every 100 ms, so a window below
# 5 s says little about them. After: only a median is wanted of it. Profiled: a trace of a decode
# step holds some 10,000 rows.
FULL = Plan(1.0, 5.0, 2.0, 16, 4)
# One request at least; what needs a longer window stays null.
QUICK = Plan(0.0, 0.5, 0.0, 4, 2)


@dataclass(frozen=True)
class VisitPlan:
    """How often each point of a sweep is visited, and how long each stage of a visit lasts."""

    visits: int
    warmup_s: float
    clean_s: float


# Three visits in two directions tell a trend from drift; 1.5 s hold some dozens of steps of the
# slowest kind. Quick ones say that it works, and roughly how fast.
FULL_VISITS = VisitPlan(3, 0.5, 1.5)
QUICK_VISITS = VisitPlan(2, 0.0, 0.3)


def visits_of(options: CollectOptions) -> VisitPlan:
    """Return how a sweep visits its points."""
    return QUICK_VISITS if options.quick else FULL_VISITS


# Passes between the profiler's start-up and its recording: the first ones pay for its buffers.
TRACE_WARMUPS = 3


class Workload:
    """One point: a model, a random prompt, and the passes that a request is made of."""

    def __init__(
        self, decoder: Decoder, log: PassLog, prompt: torch.Tensor, new_tokens: int
    ) -> None:
        """Take a prompt of shape (batch, length) on the device; one new token: prefills only."""
        self.decoder = decoder
        self.log = log
        self.prompt = prompt
        self.batch, self.length = prompt.shape
        self.steps = new_tokens - 1
        self._last: tuple[torch.Tensor, object] | None = None
        self._context = 0

    @property
    def newest(self) -> torch.Tensor:
        """Return the tokens that the last pass chose, shape (batch, 1)."""
        assert self._last is not None, "no pass has run"
        return self._last[0]

    def prefill(self, stage: str) -> None:
        """Run the prompt and keep its cache."""
        self._last = None
        self._last = self.log.run(
            stage, passes.PREFILL, tokens=self.batch * self.length, context=0,
            work=lambda: self.decoder.prefill(self.prompt),
        )  # fmt: skip
        self._context = self.length

    def step(self, stage: str) -> None:
        """Decode one token per sequence after the last prefill or step."""
        assert self._last is not None
        tokens, cache = self._last
        self._last = self.log.run(
            stage, passes.DECODE, tokens=self.batch, context=self._context,
            work=lambda: self.decoder.step(tokens, cache),
        )  # fmt: skip
        self._context += 1

    def request(self, stage: str) -> None:
        """Run one whole request: the prompt, then every further token."""
        self.prefill(stage)
        for _ in range(self.steps):
            self.step(stage)

    def repeat(self, stage: str, seconds: float, least: int, reporter: Reporter) -> None:
        """Run whole requests back to back until the time is over and `least` have been run."""
        begin, done = time.perf_counter(), 0
        while done < least or time.perf_counter() - begin < seconds:
            self.request(stage)
            done += 1
            passed = (time.perf_counter() - begin) / seconds if seconds else 1.0
            reporter.advance_to(min(done / least, passed))

    def warm_profiled(self, plan: Plan) -> None:
        """Run what comes before the recording while the profiler starts up: not recorded."""
        self.prefill(passes.WARMUP)
        for _ in range(min(TRACE_WARMUPS, self.steps - self.profiled(plan)) if self.steps else 0):
            self.step(passes.WARMUP)

    def profiled(self, plan: Plan) -> int:
        """Return how many passes are recorded: of a short request, no more than it has."""
        return min(plan.profiled_decodes, self.steps) if self.steps else plan.profiled_prefills

    def run_profiled(self, plan: Plan) -> None:
        """Run the passes to record: decode steps, or prefills if there are none."""
        for _ in range(self.profiled(plan)):
            if self.steps:
                self.step(passes.PROFILED)
            else:
                self.prefill(passes.PROFILED)


def random_prompt(batch: int, length: int, vocab: int, device: torch.device) -> torch.Tensor:
    """Return token ids of shape (batch, length), the same in every run."""
    generator = torch.Generator().manual_seed(SEED)
    return torch.randint(vocab, (batch, length), generator=generator).to(device)
