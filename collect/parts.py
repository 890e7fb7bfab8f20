"""Time each part of the model on its own, without a profiler: what its calls in a pass cost.

A round is every call that a pass makes of a part, one after the other, each with its layer's own
weights and with arguments caught in a real pass; nothing else runs between them. Where layers
differ, one call is their mean, so that calls × time is what a pass spends on the part. The host's
time is what it takes to launch the calls. The GPU's is taken with the launches queued ahead of it,
so that it waits for none of them, unless the part itself waits for the GPU.

Attention adds to its cache. Before each round the cache is set back to what it held before the
pass, so every round works at the same context, in one and the same cache.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from whichwall.collect.device import Device, first_line
from whichwall.collect.options import EAGER, STATIC_CACHE
from whichwall.collect.part_calls import Call, PassCalls, catch
from whichwall.collect.spread import Spread, spread
from whichwall.collect.stopwatch import gpu_event
from whichwall.collect.workload import Workload
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.parts import PARTS, Parts
from whichwall.schemas.passes import DECODE, PREFILL, WARMUP

# Engines that run a model module by module; others have no parts to call.
IN_PARTS = (EAGER, STATIC_CACHE)

# For all parts together: some ten rounds each of a step that takes 30 ms.
FULL_S, QUICK_S = 1.2, 0.3
LEAST_ROUNDS, MOST_ROUNDS = 3, 50
# A GPU's queue takes some 1,000 launches, and eight calls of attention make a few hundred.
CALLS_AT_ONCE = 8
# The GPU is held for this many times what launching took before, since the host's speed varies,
# and for the events and the queueing in between.
HOLD, HOLD_ANYWAY_NS = 2.0, 100_000
# Some 0.5 ms, to learn how fast the GPU's clock ticks.
CYCLES = 1_000_000

NS_PER_S, NS_PER_MS = 1_000_000_000, 1_000_000
# What a module raises that cannot be called a second time with the same arguments.
UNREPEATABLE = (RuntimeError, ValueError, LookupError)

Row = dict[str, object]


def measure_parts(
    workload: Workload, device: Device, seconds: float
) -> tuple[list[Row], list[Diagnostic]]:
    """Time the parts of a decode step, or of the prefill if there are no steps.

    The passes that arguments are caught in are warm-up passes of the workload's log.

    Args:
        workload: the model and its prompt, on an engine of `IN_PARTS`.
        device: where it is.
        seconds: about how long to take over all parts; few rounds are run even if they take longer.

    Returns:
        Rows of the parts table, and what to say of parts that cannot be run on their own.
    """
    caught = catch_calls(workload)
    found = [part for part in PARTS if caught.of(part)]
    hold = _Hold(device) if device.is_gpu else None
    rows: list[Row] = []
    said: list[Diagnostic] = []
    for part in found:
        timer = _PartTimer(caught, part, device, hold)
        try:
            row = timer.row(seconds / len(found))
        except UNREPEATABLE as error:
            text = f"{part} cannot be timed on its own ({first_line(error)}); its row is left out"
            said.append(Diagnostic("part_not_timed", "warning", None, text))
            continue
        log, phase = workload.log, DECODE if workload.steps else PREFILL
        rows.append({Parts.point: log.point, Parts.rank: log.rank, Parts.phase: phase, **row})
    caught.restore_caches()
    return rows, said


def catch_calls(workload: Workload) -> PassCalls:
    """Return the calls of the first step after the prompt, or of the prompt itself."""
    model = workload.decoder.model
    if not workload.steps:
        return catch(model, lambda: workload.prefill(WARMUP))
    workload.prefill(WARMUP)
    return catch(model, lambda: workload.step(WARMUP))


class _PartTimer:
    """The rounds of one part."""

    def __init__(self, caught: PassCalls, part: str, device: Device, hold: "_Hold | None") -> None:
        self._caught, self._device, self._hold = caught, device, hold
        self._part, self._calls = part, caught.of(part)

    def row(self, seconds: float) -> Row:
        """Return what the parts table says of it, the point left out."""
        start_ns = time.time_ns()
        self._host_round()  # to warm up
        once = self._host_round()
        # A round on a held GPU takes as long as it is held, and then its own work.
        cost = once * (1 if self._hold is None else 2 + HOLD) / NS_PER_S
        rounds = min(MOST_ROUNDS, max(LEAST_ROUNDS, int(seconds / cost)))
        wall = self._of_one_call([self._host_round() for _ in range(rounds)])
        gpu_ns = None
        if self._hold is not None:
            spans = [self._gpu_round(self._hold, HOLD * wall.median) for _ in range(rounds)]
            gpu_ns = round(self._of_one_call(spans).median)
        return {
            Parts.part: self._part,
            Parts.calls: len(self._calls),
            Parts.repeats: rounds * len(self._calls),
            Parts.start_ns: start_ns,
            Parts.wall_ns: round(wall.median),
            Parts.wall_ns_p10: round(wall.p10),
            Parts.wall_ns_p90: round(wall.p90),
            Parts.gpu_ns: gpu_ns,
            Parts.parameters: self._parameters(),
        }

    def _of_one_call(self, rounds_ns: Sequence[int]) -> Spread:
        return spread([total / len(self._calls) for total in rounds_ns])

    def _parameters(self) -> int | None:
        """Return the weights that one call reads, on average."""
        read = [call.parameters for call in self._calls]
        known = [count for count in read if count is not None]
        return round(sum(known) / len(known)) if len(known) == len(read) else None

    def _some(self) -> list[list[Call]]:
        """Return the calls of a round, as many at a time as a queue holds."""
        at = range(0, len(self._calls), CALLS_AT_ONCE)
        return [self._calls[i : i + CALLS_AT_ONCE] for i in at]

    def _host_round(self) -> int:
        """Return how long the host needed for a round, in ns, waits for the GPU left out."""
        total = 0
        self._caught.restore_caches()
        for calls in self._some():
            self._device.synchronize()
            begin = time.perf_counter_ns()
            _run(calls)
            total += time.perf_counter_ns() - begin
        self._device.synchronize()
        return total

    def _gpu_round(self, hold: "_Hold", hold_ns: float) -> int:
        """Return how long the GPU needed for a round, in ns, held for so long a call before."""
        total = 0
        self._caught.restore_caches()
        for calls in self._some():
            total += hold.time(calls, hold_ns * len(calls))
        return total


def _run(calls: Sequence[Call]) -> None:
    for call in calls:
        call.run()


class _Hold:
    """Keep a GPU waiting while work is queued behind, so that the work runs without a pause."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._events: list[Any] = [gpu_event(), gpu_event()]
        self._wait(1)  # the first launch of a kernel loads it
        self._cycles_per_ns = CYCLES / self._span(lambda: self._wait(CYCLES))

    def time(self, calls: Sequence[Call], hold_ns: float) -> int:
        """Return the ns between events around calls, queued while the GPU is held."""
        self._wait(int((hold_ns + HOLD_ANYWAY_NS) * self._cycles_per_ns))
        return self._span(lambda: _run(calls))

    def _wait(self, cycles: int) -> None:
        torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]

    def _span(self, work: Callable[[], object]) -> int:
        before, after = self._events
        before.record()
        work()
        after.record()
        self._device.synchronize()
        elapsed_ms: float = before.elapsed_time(after)
        return round(elapsed_ms * NS_PER_MS)
