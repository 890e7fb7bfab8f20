"""A run of limits alone: what this device reads, copies, multiplies and launches, without a model.

What hardly heats the card comes first, and the trace that the idle time of a graph's nodes takes
after every launch that is timed. Each matrix product starts after a pause, and the stretches over
which power and heat settle come last. A type that the device refuses has no row.
"""

import time
from pathlib import Path

import torch

from whichwall.collect.bare_launch import measure_bare_launch
from whichwall.collect.card import Card, resolve_card
from whichwall.collect.ceilings import CeilingLog, measure_product, measure_streams_and_launches
from whichwall.collect.environment import find_sharing, read_environment, read_gpu
from whichwall.collect.failures import explained
from whichwall.collect.node_idle import measure_node_idle, time_replay
from whichwall.collect.nvml import open_gpu
from whichwall.collect.options import CollectOptions
from whichwall.collect.products import products_of
from whichwall.collect.progress import Reporter, reporting
from whichwall.collect.sampler import Sampler
from whichwall.collect.sustained import sustain_product, sustain_read
from whichwall.collect.writing import Measured, write_run
from whichwall.schemas.folder import RunWriter

GRAPH_TRACE_FILE = "graph.json"

# Power and temperature settle within seconds of a load that holds.
SUSTAINED_S, QUICK_SUSTAINED_S = 10.0, 1.0
# A power limit is held on averages of up to a second, so after that a burst starts anew.
PAUSE_S, QUICK_PAUSE_S = 1.0, 0.0


def run(options: CollectOptions, writer: RunWriter | None) -> Path:
    """Measure the device's limits and write the run; `writer` is None where nothing says where to.

    Raises:
        UsageError: a destination that exists.
        CollectError: the device, its memory or the disk is not up to it.
    """
    card = resolve_card(options)
    writer = writer or card.writer()
    failing = explained(options, f"limits of {card.device.name}", writer.out)
    # NVML stays open throughout, so that opening it again for a reading costs nothing.
    with writer, failing, reporting() as reporter, open_gpu(card.device.uuid):
        measured = _measure(card, writer.folder, reporter)
        reporter.stage("writing the run")
        return write_run(writer, card.origin(), measured)


def _measure(card: Card, folder: Path, reporter: Reporter) -> Measured:
    device, quick = card.device, card.options.quick
    log = CeilingLog(device)
    # Gradients are off as they are where a model runs: an operator then costs what it costs there.
    with torch.no_grad(), Sampler(device.uuid, card.options.sample_interval_ms) as sampler:
        reporter.stage("starting nvidia-smi")
        sampler.start()
        reporter.stage("measuring memory and launches")
        _measure_cool(log, card, folder)
        _measure_hot(log, card, reporter, QUICK_SUSTAINED_S if quick else SUSTAINED_S)
        sampled = sampler.finish()
    gpu = read_gpu(device)
    return Measured(
        points=[card.point(0)],
        ceilings=log.rows,
        samples=sampled,
        gpu=gpu,
        environment=read_environment(),
        diagnostics=find_sharing(device, gpu),
    )


def _measure_cool(log: CeilingLog, card: Card, folder: Path) -> None:
    """Measure what hardly heats the card; a profiler runs only at its end."""
    measure_streams_and_launches(log, card.dtype)
    measure_bare_launch(log)
    if card.device.is_gpu:
        replay = time_replay(log, card.dtype)
        measure_node_idle(log, card.dtype, replay, folder / GRAPH_TRACE_FILE)


def _measure_hot(log: CeilingLog, card: Card, reporter: Reporter, seconds: float) -> None:
    """Measure every product in a burst, then the run's own type and reading over a stretch."""
    products = products_of(card.device, card.dtype)
    own_size = None
    for product in products:
        reporter.stage(f"multiplying {product.dtype}")
        time.sleep(QUICK_PAUSE_S if card.options.quick else PAUSE_S)
        size = measure_product(log, product)
        if product is products[0]:
            own_size = size
    reporter.stage(f"reading for {seconds:g} s")
    sustain_read(log, seconds)
    if own_size is not None:
        reporter.stage(f"multiplying for {seconds:g} s")
        sustain_product(log, products[0], own_size, seconds)
