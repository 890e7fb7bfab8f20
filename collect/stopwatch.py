"""Time repeats of small work: by CUDA events on a GPU, by the host's clock otherwise."""

import time
from collections.abc import Callable
from typing import Any

import torch

from whichwall.collect.device import Device

MS_PER_S = 1e3
NS_PER_S = 1e9

WARMUPS = 2
# The card is looked at when this share of the repeats is done: late enough to be warm, while
# the rest still runs.
LOOK_AT = 0.75

State = tuple[float | None, float | None]


class Stopwatch:
    """Time one kind of work; `start_ns` and `state` say when, and how the card was."""

    def __init__(self, device: Device, look: Callable[[], State]) -> None:
        """Take a function that returns clock in MHz and temperature in °C."""
        self.device = device
        self._look = look
        self.start_ns = 0
        self.state: State = (None, None)

    def seconds(self, work: Callable[[], object], repeats: int) -> list[float]:
        """Return the seconds that each repeat took on the device, queued back to back."""
        if not self.device.is_gpu:
            return self.host_seconds(work, repeats)
        self._begin(work)
        events: list[Any] = [(gpu_event(), gpu_event()) for _ in range(repeats)]
        for before, after in events:
            before.record()
            work()
            after.record()
        events[int(LOOK_AT * (repeats - 1))][1].synchronize()
        self.state = self._look()
        self.device.synchronize()
        return [before.elapsed_time(after) / MS_PER_S for before, after in events]

    def host_seconds(self, work: Callable[[], object], repeats: int) -> list[float]:
        """Return the seconds from the start of each repeat to its synchronised end."""
        self._begin(work)
        times = []
        for _ in range(repeats):
            begin = time.perf_counter_ns()
            work()
            self.device.synchronize()
            times.append((time.perf_counter_ns() - begin) / NS_PER_S)
        self.state = self._look()
        return times

    def _begin(self, work: Callable[[], object]) -> None:
        for _ in range(WARMUPS):
            work()
        self.device.synchronize()
        self.start_ns = time.time_ns()


def gpu_event() -> Any:
    """Return a CUDA event that keeps the time; torch leaves its events without types."""
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
