"""The same few passes on a rested card and after a minute of work: does the card slow itself?

The passes of point 0 follow a rest, those of point 1 a minute without a pause. Samples run from
before the rest to the end, since what the card does in between is the answer. The work is a
model's decode steps, or square matrix products without any model.
"""

from dataclasses import replace
from pathlib import Path

import torch

from whichwall.collect.card import Card, resolve_card
from whichwall.collect.ceilings import CeilingLog, measure_product, product_shape, seconds_once
from whichwall.collect.device import Device, dtype_name
from whichwall.collect.engines.make import make_decoder
from whichwall.collect.environment import find_sharing, read_environment, read_gpu
from whichwall.collect.failures import explained
from whichwall.collect.loads import Decoding, Load, Multiplying
from whichwall.collect.models import Built, build, forced_attention
from whichwall.collect.nvml import open_gpu
from whichwall.collect.options import MATMUL, CollectOptions, command_line
from whichwall.collect.passes import PassLog
from whichwall.collect.point import Point
from whichwall.collect.products import plain_product
from whichwall.collect.progress import Reporter, reporting
from whichwall.collect.request import Request, default_writer, origin, resolve, single_point
from whichwall.collect.rest import rest
from whichwall.collect.sampler import Sampler, Samples
from whichwall.collect.workload import Workload, random_prompt
from whichwall.collect.writing import Measured, Row, find_unstable, write_run
from whichwall.schemas.errors import CollectError
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.passes import CLEAN
from whichwall.schemas.points import HOT, RESTED

LABELS = (RESTED, HOT)

# As long as a notebook would wait by hand: an idle card has lowered its clock by then.
REST_S, QUICK_REST_S = 45.0, 2.0
# Power settles within seconds, temperature within a minute.
WORK_S, QUICK_WORK_S = 60.0, 5.0


def run(options: CollectOptions, writer: RunWriter | None) -> Path:
    """Time both sides and write the run; `writer` is None where nothing says where to.

    Raises:
        UsageError: an unknown model, a prompt beyond its positions, a destination that exists.
        CollectError: the device, its memory or the disk is not up to it.
    """
    return _multiply(options, writer) if options.work == MATMUL else _decode(options, writer)


def _decode(options: CollectOptions, writer: RunWriter | None) -> Path:
    request = resolve(options)
    device, source = request.device, request.source
    writer = writer or default_writer(request)
    failing = explained(options, f"{source.name} on {device.name}", writer.out)
    with writer, failing, reporting() as reporter, open_gpu(device.uuid):
        reporter.stage(f"building {source.name}")
        built = build(source, device, request.dtype, options.attention)
        point = single_point(request, built)
        with torch.no_grad(), forced_attention(options.attention):
            load = _decoding(request, built, point)
            load.keep_busy(0, 0.0, reporter)  # one request loads the kernels and takes the memory
            sampled = both_sides(load, device, options, reporter)
        memory = device.most_allocated()
        rows = [
            replace(point, number=number, label=label).row(request.dtype, memory_bytes=memory)
            for number, label in enumerate(LABELS)
        ]
        name = dtype_name(request.dtype)
        command = command_line(options, source.name, device.kind, name, point.prompt_tokens)
        measured = _measured(device, load, rows, sampled)
        return write_run(writer, origin(request, built.facts, command), measured)


def _decoding(request: Request, built: Built, point: Point) -> Decoding:
    """Return the decode work, ready to run."""
    device = request.device
    prompt = random_prompt(point.batch, point.prompt_tokens, built.facts.vocab, device.torch)
    decoder = make_decoder(point.engine, built.module, device)
    decoder.make_ready(prompt, point.new_tokens)
    logs = [PassLog(device, point.batch, point=number) for number in range(len(LABELS))]
    return Decoding([Workload(decoder, log, prompt, point.new_tokens) for log in logs])


def _multiply(options: CollectOptions, writer: RunWriter | None) -> Path:
    card = resolve_card(options)
    device = card.device
    writer = writer or card.writer()
    failing = explained(options, f"matrix products on {device.name}", writer.out)
    with writer, failing, reporting() as reporter, open_gpu(device.uuid):
        reporter.stage("finding the faster size")
        log = CeilingLog(device)
        load, said = _multiplying(card, log)
        sampled = both_sides(load, device, options, reporter)
        rows = [card.point(number, label, said) for number, label in enumerate(LABELS)]
        measured = replace(_measured(device, load, rows, sampled), ceilings=log.rows)
        return write_run(writer, card.origin(), measured)


def _multiplying(card: Card, log: CeilingLog) -> tuple[Multiplying, str]:
    """Return products of the size and type that this device's limit is measured with, in words."""
    product = plain_product(card.dtype)
    size = measure_product(log, product)
    if size is None:
        raise CollectError(
            f"{card.device.name}: has no memory left for matrices that keep it busy; free some, "
            "or give --work decode"
        )
    work = product.make(size, card.device.torch)
    logs = [PassLog(card.device, None, point=number) for number in range(len(LABELS))]
    load = Multiplying(work, seconds_once(log, work), logs)
    return load, f"matrix products in a pass: {load.together}, each {product_shape(size)}"


def both_sides(load: Load, device: Device, options: CollectOptions, reporter: Reporter) -> Samples:
    """Rest, pass, work, pass again; and nothing in between."""
    with Sampler(device.uuid, options.sample_interval_ms) as sampler:
        reporter.stage("starting nvidia-smi")
        sampler.start()
        reporter.stage("letting the card rest")
        rest(device, QUICK_REST_S if options.quick else REST_S, reporter)
        load.few(0)
        reporter.stage("working without a pause")
        load.keep_busy(1, QUICK_WORK_S if options.quick else WORK_S, reporter)
        load.few(1)
        return sampler.finish()


def _measured(device: Device, load: Load, rows: list[Row], sampled: Samples) -> Measured:
    gpu = read_gpu(device)
    return Measured(
        points=rows,
        passes=[row for log in load.logs for row in log.rows],
        samples=sampled,
        gpu=gpu,
        environment=read_environment(),
        diagnostics=[
            *find_sharing(device, gpu),
            *(
                d
                for log in load.logs
                for d in find_unstable(log.walls(CLEAN, load.phase), load.phase)
            ),
        ],
    )
