"""Measure this device's limits: what reading, copying, multiplying and launching reach on it.

Launches are measured before any profiler has run in the process, since CUPTI slows later ones.
The matrix product comes last of all: it heats the card, and would lower the clocks of whatever
followed it.

A graph node's time holds its kernel's own duration; to tell the idle time at a node from it
takes a trace (`node_idle`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from whichwall.collect.device import Device, dtype_name
from whichwall.collect.nvml import open_gpu
from whichwall.collect.products import Product, Work, plain_product
from whichwall.collect.spread import spread
from whichwall.collect.stopwatch import Stopwatch
from whichwall.schemas.ceilings import (
    CACHE_MULTIPLE,
    COPY,
    EAGER_OP,
    GRAPH_NODE,
    MATMUL,
    READ,
    ROUND_TRIP,
    Ceilings,
)

GBPS, MICROSECONDS = "GB/s", "us"
GIGA, TERA, US_PER_S = 1e9, 1e12, 1e6

GPU_BUFFER_BYTES = 1 << 30
# Beyond the last-level cache of all but the largest server parts, and filled within 0.1 s.
CPU_BUFFER_BYTES = 256 << 20
# Of the memory that the model has left free, what the buffers of one measurement may take.
MEMORY_SHARE = 0.5
GPU_STREAMS, CPU_STREAMS = 20, 7

GPU_SIZES, CPU_SIZES = (4096, 8192), (1024, 2048)
# Long enough for the power limit to bind, as it does in a stage of back-to-back prefills.
MATMUL_S = 0.5
LEAST_MATMULS, MOST_MATMULS = 3, 1000
# A type that takes so many times as long as float32 at a small size is emulated; types of half the
# bytes that a host knows are faster.
EMULATED_RATIO, SMALL_SIZE, FLOAT32 = 8, 512, "float32"
TRIALS = 3  # a host that is late for one launch makes one look too long

OPS = 1000
OP_REPEATS = 7
ROUND_TRIPS = 200


@dataclass
class CeilingLog:
    """Gather rows of the ceilings table, each with the card's state while it was measured."""

    device: Device
    rows: list[dict[str, object]] = field(default_factory=list)

    def stopwatch(self) -> Stopwatch:
        """Return a stopwatch that looks at the card while work still runs."""
        return Stopwatch(self.device, self._state)

    def _state(self) -> tuple[float | None, float | None]:
        with open_gpu(self.device.uuid) as gpu:
            return (gpu.sm_clock_mhz(), gpu.temperature_c()) if gpu else (None, None)

    def add(
        self, name: str, unit: str, values: Sequence[float], watch: Stopwatch, shape: str,
        dtype: torch.dtype | str | None = None,
    ) -> None:  # fmt: skip
        """Add one limit from its repeats."""
        found = spread(values)
        clock, temperature = watch.state
        self.rows.append(
            {
                Ceilings.rank: 0,
                Ceilings.gpu_uuid: self.device.uuid,
                Ceilings.name: name,
                Ceilings.value: found.median,
                Ceilings.unit: unit,
                Ceilings.p10: found.p10,
                Ceilings.p90: found.p90,
                Ceilings.dtype: dtype_name(dtype) if isinstance(dtype, torch.dtype) else dtype,
                Ceilings.shape: shape,
                Ceilings.repeats: found.repeats,
                Ceilings.start_ns: watch.start_ns,
                Ceilings.sm_clock_mhz: clock,
                Ceilings.temperature_c: temperature,
            }
        )

    def find(self, name: str) -> dict[str, object] | None:
        """Return the first limit of a name, if it has been measured."""
        return next((row for row in self.rows if row[Ceilings.name] == name), None)


def measure_streams_and_launches(log: CeilingLog, dtype: torch.dtype) -> None:
    """Measure what hardly heats the card: reading, copying, and the cost of launches."""
    size = buffer_bytes(log.device)
    if size is not None:
        _measure_read(log, dtype, size)
        _measure_copy(log, size)
    _measure_ops(log)
    if log.device.is_gpu:
        _measure_round_trip(log)
        _measure_graph(log)


def measure_matmul(log: CeilingLog, dtype: torch.dtype) -> None:
    """Measure the rate of a square matrix product on random numbers: the better of two sizes."""
    measure_product(log, plain_product(dtype))


def measure_product(log: CeilingLog, product: Product) -> int | None:
    """Measure the rate of a product at two sizes, and return the better size.

    None if memory has no room for either, or a host would emulate the type.
    """
    if _is_emulated(log, product):
        return None
    measured = []
    for size in GPU_SIZES if log.device.is_gpu else CPU_SIZES:
        if product.element_bytes * size * size <= MEMORY_SHARE * free_bytes(log.device):
            work = product.make(size, log.device.torch)
            once = seconds_once(log, work)
            repeats = min(MOST_MATMULS, max(LEAST_MATMULS, int(MATMUL_S / once)))
            watch = log.stopwatch()
            rates = [tera_per_s(size, t) for t in watch.seconds(work, repeats)]
            measured.append((spread(rates).median, size, rates, watch))
    if not measured:
        return None
    _, size, rates, watch = max(measured, key=lambda m: m[0])
    log.add(MATMUL, product.unit, rates, watch, product_shape(size), product.dtype)
    return size


def _is_emulated(log: CeilingLog, product: Product) -> bool:
    """Tell whether a host has no instructions for a type, by a small product beside float32's.

    It then takes tens to hundreds of times as long, which is a limit of no hardware.
    """
    if log.device.is_gpu or product.dtype == FLOAT32:
        return False
    own_s, plain_s = (
        seconds_once(log, one.make(SMALL_SIZE, log.device.torch))
        for one in (product, plain_product(torch.float32))
    )
    return own_s > EMULATED_RATIO * plain_s


def seconds_once(log: CeilingLog, work: Work) -> float:
    """Return the seconds that one piece of work takes, roughly: to plan how often to repeat it."""
    return min(log.stopwatch().seconds(work, TRIALS))


def tera_per_s(size: int, seconds: float) -> float:
    """Return the rate of a square product, 10^12 multiplications and additions per second."""
    return 2 * size**3 / seconds / TERA


def product_shape(size: int) -> str:
    """Return what was multiplied, as the ceilings table says it."""
    return f"{size} x {size} x {size}"


def free_bytes(device: Device) -> int:
    """Return what is left of the GPU's memory, what torch holds unused included.

    Nothing is given back: the passes that follow would pay for allocating it again. On a CPU,
    return no limit that these sizes would meet.
    """
    if not device.is_gpu:
        return 8 * GPU_BUFFER_BYTES
    held = torch.cuda.memory_reserved(device.torch) - torch.cuda.memory_allocated(device.torch)
    return torch.cuda.mem_get_info(device.torch)[0] + held


def buffer_bytes(device: Device) -> int | None:
    """Return the size of a buffer far beyond the cache; None if memory has no room for two."""
    if not device.is_gpu:
        return CPU_BUFFER_BYTES
    cache: int = torch.cuda.get_device_properties(device.torch).L2_cache_size
    room = int(MEMORY_SHARE * free_bytes(device) / 2) & ~0xFFF
    size = min(max(GPU_BUFFER_BYTES, CACHE_MULTIPLE * cache), room)
    return size if size >= CACHE_MULTIPLE * cache else None


def _measure_read(log: CeilingLog, dtype: torch.dtype, size: int) -> None:
    """Measure a sum over a buffer, in the run's type and in float32: the better of the two."""
    measured = []
    repeats = GPU_STREAMS if log.device.is_gpu else CPU_STREAMS
    for kind in dict.fromkeys((dtype, torch.float32)):
        values = torch.empty(size // kind.itemsize, dtype=kind, device=log.device.torch).normal_()
        watch = log.stopwatch()
        rates = [size / t / GIGA for t in watch.seconds(values.sum, repeats)]
        measured.append((spread(rates).median, kind, rates, watch))
        del values
    _, kind, rates, watch = max(measured, key=lambda m: m[0])
    log.add(READ, GBPS, rates, watch, f"sum over {size >> 20} MiB", kind)


def _measure_copy(log: CeilingLog, size: int) -> None:
    source = torch.empty(size // 4, device=log.device.torch).normal_()
    target = torch.empty_like(source)
    watch = log.stopwatch()
    repeats = GPU_STREAMS if log.device.is_gpu else CPU_STREAMS
    rates = [2 * size / t / GIGA for t in watch.seconds(lambda: target.copy_(source), repeats)]
    log.add(COPY, GBPS, rates, watch, f"{size >> 20} MiB read and written", torch.float32)


def _measure_ops(log: CeilingLog) -> None:
    """Measure one operator on one number, back to back: what the host needs for each."""
    scratch = torch.zeros(1, device=log.device.torch)

    def work() -> None:
        for _ in range(OPS):
            scratch.add_(1)

    watch = log.stopwatch()
    costs = [t / OPS * US_PER_S for t in watch.host_seconds(work, OP_REPEATS)]
    log.add(EAGER_OP, MICROSECONDS, costs, watch, f"{OPS} additions to one number", scratch.dtype)


def _measure_round_trip(log: CeilingLog) -> None:
    """Measure one launch and the wait for it."""
    scratch = torch.zeros(1, device=log.device.torch)
    watch = log.stopwatch()
    trips = [t * US_PER_S for t in watch.host_seconds(lambda: scratch.add_(1), ROUND_TRIPS)]
    log.add(ROUND_TRIP, MICROSECONDS, trips, watch, "launch and synchronize", scratch.dtype)


def _measure_graph(log: CeilingLog) -> None:
    """Measure a node of a replayed graph of dependent kernels, its duration included."""
    scratch = torch.zeros(1, device=log.device.torch)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(OPS):
            scratch.add_(1)
    watch = log.stopwatch()
    nodes = [t / OPS * US_PER_S for t in watch.seconds(graph.replay, OP_REPEATS)]
    shape = f"{OPS} additions to one number, kernel time included"
    log.add(GRAPH_NODE, MICROSECONDS, nodes, watch, shape, scratch.dtype)
