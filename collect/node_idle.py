"""Measure how long the GPU idles at each node of a replayed CUDA graph.

Idle per node = (time of a replay without a profiler - durations of its kernels) / kernels. The
durations need a trace, so they are taken after everything that a profiler must not have touched;
the gaps in that trace are not used, since a replay is longer there by what the profiler adds.

On an H200 (driver 580) replays keep pace with their kernels in some processes, and in others each
node of every graph costs about 0.3 us more. What was seen to bring that about: several graphs are
held, and then a kernel is loaded that was not before; with one graph held, nothing did. Engines
hold a graph for each batch size, so several are held here too, but a process in which no kernel
is loaded afterwards is measured in the first state: its idle time is then 0.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from whichwall.collect.ceilings import MICROSECONDS, CeilingLog
from whichwall.collect.device import Device
from whichwall.collect.kineto.events import EventReader
from whichwall.collect.kineto.rows import RowBuilder
from whichwall.collect.kineto.source import Source
from whichwall.collect.profiler import TraceSession
from whichwall.collect.stopwatch import Stopwatch
from whichwall.schemas.ceilings import GRAPH_NODE_IDLE
from whichwall.schemas.kernels import Kernels

NS_PER_US, US_PER_S = 1000, 1e6
REPLAYS, GRAPHS = 20, 8
FOURTH = 4  # graphs held at once with which that was seen
# A model of half a billion parameters: small enough to be quick, and wider than a cache.
LAYERS, HIDDEN, INNER = 24, 896, 4864
EPSILON = 1e-6


@dataclass(frozen=True)
class CleanReplay:
    """Replays of a graph of a decoder's kernels, timed while no profiler had run."""

    watch: Stopwatch
    seconds: list[float]


def time_replay(log: CeilingLog, dtype: torch.dtype) -> CleanReplay:
    """Time replays of the graph, before any profiler has run in the process."""
    layers = _layers(log.device.torch, dtype)
    layers()  # loads its kernels and the library's workspace, which no capture may do
    graphs = [_captured(layers) for _ in range(GRAPHS)]
    watch = log.stopwatch()
    return CleanReplay(watch, watch.seconds(graphs[-1].replay, REPLAYS))


def measure_node_idle(log: CeilingLog, dtype: torch.dtype, clean: CleanReplay, trace: Path) -> None:
    """Add the idle time per node to the limits; nothing if no replay is on record.

    `trace` is a file to write and remove: one replay of the same graph under the profiler.
    """
    layers = _layers(log.device.torch, dtype)
    layers()
    with TraceSession(log.device) as session:
        session.start()
        _captured(layers).replay()
        session.stop()
    session.export(trace)
    durations_ns = durations_in_replay(trace)
    trace.unlink()
    if durations_ns:
        idle_us = idle_per_node_us(clean.seconds, durations_ns)
        shape = f"{LAYERS} norms and MLPs of {HIDDEN} x {INNER}, {GRAPHS} graphs held"
        log.add(GRAPH_NODE_IDLE, MICROSECONDS, idle_us, clean.watch, shape, dtype)


def idle_per_node_us(replays_s: Sequence[float], durations_ns: Sequence[int]) -> list[float]:
    """Return, per replay, the idle time at each of its kernels, µs; at least 0.

    A replay may be a little shorter than its kernels look under the profiler: that is no idle.
    """
    busy_us = sum(durations_ns) / NS_PER_US
    return [max(s * US_PER_S - busy_us, 0.0) / len(durations_ns) for s in replays_s]


def hold_graphs(device: Device) -> list[torch.cuda.CUDAGraph]:
    """Return as many graphs as put a process into the state of one with several: hold on to them.

    Without them, whoever replays graphs first is faster than whoever comes when there are more.
    """
    scratch = torch.zeros(1, device=device.torch)
    scratch.add_(1)  # loads its kernel, which no capture may do
    return [_captured(lambda: scratch.add_(1)) for _ in range(GRAPHS)]


def _captured(work: Callable[[], object]) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        work()
    return graph


def _layers(device: torch.device, dtype: torch.dtype) -> Callable[[], torch.Tensor]:
    """Return the norms and MLPs of a small decoder on one token, each with weights of its own.

    Unlike kernels with cold weights, as in a whole model; equal ones on one number follow one
    another more quickly.
    """
    shapes = [(HIDDEN, INNER), (INNER, HIDDEN)] * LAYERS
    weights = [torch.randn(s, device=device).to(dtype) * s[0] ** -0.5 for s in shapes]
    token = torch.randn(1, 1, HIDDEN, device=device).to(dtype)

    def layers() -> torch.Tensor:
        stream = token
        for up, down in zip(weights[::2], weights[1::2], strict=True):
            wide = stream.float()
            scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON)
            inner = scaled.to(dtype) @ up
            stream = stream + (torch.nn.functional.silu(inner) * inner) @ down
        return stream

    return layers


def durations_in_replay(trace: Path) -> list[int]:
    """Return the durations of the kernels of a trace's largest replay, ns; none without one.

    All kernels of one replay share the correlation of their launch; no others share one.
    """
    events = [event for run in EventReader(Source(trace)).runs() for event in run]
    kernels = RowBuilder(rank=0, point=0, base_ns=None).build(events).get(Kernels)
    if kernels is None:
        return []
    correlations = kernels[Kernels.correlation].to_pylist()
    (replay, nodes), *_ = Counter(correlations).most_common(1)
    if nodes < 2 or replay is None:
        return []
    durations = kernels[Kernels.dur_ns].to_numpy()
    return [int(d) for d, c in zip(durations, correlations, strict=True) if c == replay]
