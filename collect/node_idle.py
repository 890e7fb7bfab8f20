"""Measure how long the GPU idles between two nodes of a replayed CUDA graph.

Only the profiler can tell that idle time from the kernels' own duration, so this comes after
everything that a profiler must not have touched.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from whichwall.collect.ceilings import MICROSECONDS, CeilingLog
from whichwall.collect.kineto.events import EventReader
from whichwall.collect.kineto.rows import RowBuilder
from whichwall.collect.kineto.source import Source
from whichwall.collect.profiler import TraceSession
from whichwall.schemas.ceilings import GRAPH_NODE_IDLE
from whichwall.schemas.kernels import Kernels

NS_PER_US = 1000
# The width of a small model, and enough kernels for a median.
WIDTH, LINKS = 1024, 200


def measure_node_idle(log: CeilingLog, dtype: torch.dtype, trace: Path) -> None:
    """Add the idle time between nodes to the limits; nothing if no replay is on record.

    `trace` is a file to write and remove: one replay of a graph of dependent, unlike kernels.
    """
    watch = log.stopwatch()
    chain = _chain(log.device.torch, dtype)
    chain()  # loads its kernels and the library's workspace, which no capture may do
    with TraceSession(log.device) as session:
        session.start()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for _ in range(LINKS):
                chain()
        watch.seconds(graph.replay, 1)
        session.stop()
    session.export(trace)
    idle_us = [idle / NS_PER_US for idle in idle_in_replay(trace)]
    trace.unlink()
    if idle_us:
        shape = f"{LINKS} x (product, mean, scale, sum, copy) on {WIDTH} numbers, as traced"
        log.add(GRAPH_NODE_IDLE, MICROSECONDS, idle_us, watch, shape, dtype)


def _chain(device: torch.device, dtype: torch.dtype) -> Callable[[], None]:
    """Return a link of unlike kernels, each waiting for the one before, as in a decode step.

    Equal kernels of one number follow one another four times as quickly as those of a model.
    """
    row = torch.randn(1, WIDTH, device=device).to(dtype)
    weight = torch.randn(WIDTH, WIDTH, device=device).to(dtype) / WIDTH**0.5

    def chain() -> None:
        product = row @ weight
        mean = product.mean(-1, keepdim=True)
        row.copy_(product * 0.5 + mean)

    return chain


def idle_in_replay(trace: Path) -> list[int]:
    """Return the idle times between consecutive kernels of a trace's largest replay, ns.

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
    mine = np.array([c == replay for c in correlations])
    starts = kernels[Kernels.start_ns].to_numpy()[mine]
    ends = starts + kernels[Kernels.dur_ns].to_numpy()[mine]
    order = np.argsort(starts, kind="stable")
    return [int(gap) for gap in starts[order][1:] - ends[order][:-1]]
