"""NVML's energy counter at the ends of a stage: joules without integrating samples."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from whichwall.collect.nvml import open_gpu
from whichwall.schemas.manifest import EnergyFacts


@dataclass
class EnergyMeter:
    """Filled when the stage ends; None where the card has no counter."""

    facts: EnergyFacts | None = None


@contextmanager
def metered(uuid: str | None) -> Iterator[EnergyMeter]:
    """Read the counter before and after the block.

    The counter moves about every 100 ms, so a block of less than a second says little.
    """
    meter = EnergyMeter()
    with open_gpu(uuid) as gpu:
        before = gpu.energy_mj() if gpu else None
        start_ns = time.time_ns()
        yield meter
        after = gpu.energy_mj() if gpu else None
        if before is not None and after is not None:
            meter.facts = EnergyFacts(start_ns, time.time_ns(), after - before)
