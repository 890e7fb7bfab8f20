"""Work that keeps a card busy for as long as is asked, and a few passes of the same work.

A card under its power limit slows itself within a tenth of a second or two. So the few passes are
short together: on a rested card most of them are over before it does.
"""

import time
from collections.abc import Sequence
from typing import Protocol

from whichwall.collect.passes import PassLog
from whichwall.collect.products import Work
from whichwall.collect.progress import Reporter
from whichwall.collect.sustained import repeats_in
from whichwall.collect.workload import Workload
from whichwall.schemas import passes

# Passes that wake the card and its kernels, before the few that count.
LEADING_STEPS, FEW_STEPS = 2, 16
LEADING_PRODUCTS, FEW_PRODUCTS = 1, 4
# Products timed together: a minute of them is 2,000 rows.
PRODUCTS_S = 0.03


class Load(Protocol):
    """One kind of work; rows of point `at` go to the log of that point."""

    phase: str

    @property
    def logs(self) -> Sequence[PassLog]:
        """Return the log of each point."""

    def keep_busy(self, at: int, seconds: float, reporter: Reporter) -> None:
        """Work without a pause for so long."""

    def few(self, at: int) -> None:
        """Run the few passes that count."""


class Decoding:
    """Whole requests of a model, back to back; what counts are decode steps of one request."""

    phase = passes.DECODE

    def __init__(self, workloads: Sequence[Workload]) -> None:
        """Take the same work once per point; each has the log of its point."""
        self.workloads = workloads
        self.logs = [workload.log for workload in workloads]

    def keep_busy(self, at: int, seconds: float, reporter: Reporter) -> None:
        """Run whole requests until the time is over, one at least."""
        self.workloads[at].repeat(passes.WARMUP, seconds, 1, reporter)

    def few(self, at: int) -> None:
        """Run a request as far as a few steps that count; a short one has fewer."""
        workload = self.workloads[at]
        workload.prefill(passes.WARMUP)
        leading = min(LEADING_STEPS, workload.steps - 1)
        for _ in range(leading):
            workload.step(passes.WARMUP)
        for _ in range(min(FEW_STEPS, workload.steps - leading)):
            workload.step(passes.CLEAN)


class Multiplying:
    """Square matrix products, several to a pass."""

    phase = passes.MATMUL

    def __init__(self, product: Work, once_s: float, logs: Sequence[PassLog]) -> None:
        """Take the product, the seconds that it takes, and a log per point."""
        self.product = product
        self.together = repeats_in(PRODUCTS_S, once_s)
        self.logs = logs

    def keep_busy(self, at: int, seconds: float, reporter: Reporter) -> None:
        """Multiply until the time is over."""
        begin = time.perf_counter()
        while (passed := time.perf_counter() - begin) < seconds:
            self._pass(at, passes.WARMUP)
            reporter.advance_to(passed / seconds)

    def few(self, at: int) -> None:
        """Run one pass that wakes the card, and a few that count."""
        for _ in range(LEADING_PRODUCTS):
            self._pass(at, passes.WARMUP)
        for _ in range(FEW_PRODUCTS):
            self._pass(at, passes.CLEAN)

    def _pass(self, at: int, stage: str) -> None:
        with self.logs[at].timed(stage, self.phase, tokens=None, context=None):
            for _ in range(self.together):
                self.product()
