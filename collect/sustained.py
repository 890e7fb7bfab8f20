"""Measure limits over seconds back to back: what is left of a burst once the card is hot.

A burst is over before the power limit and the heat have settled; serving never is.
"""

import torch

from whichwall.collect.ceilings import (
    GBPS,
    GIGA,
    MEMORY_SHARE,
    CeilingLog,
    buffer_bytes,
    free_bytes,
    product_shape,
    seconds_once,
    tera_per_s,
)
from whichwall.collect.products import Product, Work
from whichwall.collect.stopwatch import Stopwatch
from whichwall.schemas.ceilings import MATMUL_SUSTAINED, READ, READ_SUSTAINED, Ceilings

# Clocks are averaged over the repeats that are timed together. Shorter ones would be many, longer
# ones would leave too few of them in half of the shortest stretch.
CHUNK_S = 0.05


def sustain_read(log: CeilingLog, seconds: float) -> None:
    """Measure reading over a stretch, as the burst that is already on record was measured."""
    burst = log.find(READ)
    size = buffer_bytes(log.device)
    if burst is None or size is None:
        return
    kind: torch.dtype = getattr(torch, str(burst[Ceilings.dtype]))
    values = torch.empty(size // kind.itemsize, dtype=kind, device=log.device.torch).normal_()
    watch, times = stretch(log, values.sum, seconds)
    rates = [size / t / GIGA for t in times]
    log.add(READ_SUSTAINED, GBPS, rates, watch, f"{burst[Ceilings.shape]}{_said(seconds)}", kind)


def sustain_product(log: CeilingLog, product: Product, size: int, seconds: float) -> None:
    """Measure a product over a stretch, at the size that its burst was best at."""
    if product.element_bytes * size * size > MEMORY_SHARE * free_bytes(log.device):
        return
    watch, times = stretch(log, product.make(size, log.device.torch), seconds)
    rates = [tera_per_s(size, t) for t in times]
    shape = f"{product_shape(size)}{_said(seconds)}"
    log.add(MATMUL_SUSTAINED, product.unit, rates, watch, shape, product.dtype)


def stretch(log: CeilingLog, work: Work, seconds: float) -> tuple[Stopwatch, list[float]]:
    """Run work back to back for so long; return the seconds that each took in the last half."""
    once = seconds_once(log, work)
    together = repeats_in(CHUNK_S, once)

    def chunk() -> None:
        for _ in range(together):
            work()

    watch = log.stopwatch()
    times = watch.seconds(chunk, max(2, round(seconds / (together * once))))
    return watch, [t / together for t in times[len(times) // 2 :]]


def repeats_in(seconds: float, once: float) -> int:
    """Return how often work that takes `once` goes into a time, at least once."""
    return max(1, round(seconds / once))


def _said(seconds: float) -> str:
    return f", last half of {seconds:g} s back to back"
