"""Let a card rest: until its clock has fallen and holds still, or the time for it is over."""

import time
from collections.abc import Sequence

from whichwall.collect.device import Device
from whichwall.collect.nvml import open_gpu
from whichwall.collect.progress import Reporter

LOOK_EVERY_S = 1.0
# A driver lowers the clock of an idle card in steps, some of which last for seconds.
STILL_LOOKS = 5


def rest(device: Device, seconds: float, reporter: Reporter) -> None:
    """Do nothing for so long at most; a card that does not tell its clock rests that long."""
    begin = time.perf_counter()
    clocks: list[float | None] = []
    with open_gpu(device.uuid) as gpu:
        while (left := begin + seconds - time.perf_counter()) > 0 and not settled(clocks):
            clocks.append(gpu.sm_clock_mhz() if gpu else None)
            time.sleep(min(LOOK_EVERY_S, left))
            reporter.advance_to(1 - left / seconds)


def settled(clocks: Sequence[float | None]) -> bool:
    """Tell whether a clock, as read again and again, has fallen since the start and holds still."""
    last = clocks[-STILL_LOOKS:]
    if len(clocks) <= STILL_LOOKS or clocks[0] is None or last[0] is None:
        return False
    return last[0] < clocks[0] and all(clock == last[0] for clock in last)
