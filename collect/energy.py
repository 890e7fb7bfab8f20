"""NVML's energy counter at the ends of a stage: joules without integrating samples."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from whichwall.collect.nvml import open_gpu
from whichwall.schemas.manifest import EnergyFacts

# The counter moves every 100 ms, so both ends together are off by up to a tenth of 2 s.
LEAST_NS = 2_000_000_000


@dataclass
class EnergyMeter:
    """Filled when the block ends; None without a counter, or if the block was too short for it."""

    facts: EnergyFacts | None = None


@contextmanager
def metered(uuid: str | None) -> Iterator[EnergyMeter]:
    """Read the counter before and after the block."""
    meter = EnergyMeter()
    with open_gpu(uuid) as gpu:
        before = gpu.energy_mj() if gpu else None
        start_ns = time.time_ns()
        yield meter
        after = gpu.energy_mj() if gpu else None
        end_ns = time.time_ns()
        long_enough = end_ns - start_ns >= LEAST_NS
        if before is not None and after is not None and long_enough:
            meter.facts = EnergyFacts(start_ns, end_ns, after - before)
