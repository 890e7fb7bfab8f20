"""One fresh process of `collect --mode tax`: what a sampler costs, and then what a profiler does.

Blocks of clean requests alternate between no sampler and one, each after a request that is not
counted. The order is that of a palindrome, so that a drift of host or card meets both sides
alike; where nothing can be sampled, that side is refused. Only then comes the profiler, since it
changes every launch that follows.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import torch

from whichwall.collect.engines.make import make_decoder
from whichwall.collect.failures import explained
from whichwall.collect.models import build, forced_attention
from whichwall.collect.nvml import open_gpu
from whichwall.collect.options import CollectOptions
from whichwall.collect.passes import PassLog
from whichwall.collect.processes import Block
from whichwall.collect.progress import Reporter, reporting
from whichwall.collect.request import Request, resolve, single_point
from whichwall.collect.sampler import Sampler
from whichwall.collect.session import profile
from whichwall.collect.workload import Workload, random_prompt
from whichwall.collect.writing import Row
from whichwall.schemas import passes
from whichwall.schemas.manifest import ProfilerFacts
from whichwall.schemas.model import Model
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import REFUSED, SAMPLER_OFF, SAMPLER_ON

TRACE_FILE = "trace.json"
LABELS = (SAMPLER_OFF, SAMPLER_ON)
OFF, ON = range(len(LABELS))

ORDER, QUICK_ORDER = (OFF, ON, ON, OFF, OFF, ON, ON, OFF), (OFF, ON, ON, OFF)
# Fifteen periods of the sampler at its default.
BLOCK_S, QUICK_BLOCK_S = 1.5, 0.3


class Found(msgspec.Struct, frozen=True):
    """What one process brought home; its trace lies beside."""

    model: Model
    points: list[Row]
    passes: list[Row]
    blocks: list[Block]
    profiler: ProfilerFacts


def measure(spec: dict[str, Any], folder: Path) -> Any:
    """Run the process's stages, and return a `Found` as JSON holds it.

    Args:
        spec: `options`, the fields of `CollectOptions`, and `process`, the number of this one.
        folder: where its trace goes.
    """
    request = resolve(CollectOptions(**spec["options"]))
    what = f"{request.source.name} on {request.device.name}"
    # NVML stays open throughout, so that opening it again for a reading costs nothing.
    with explained(request.options, what, folder), open_gpu(request.device.uuid):
        return msgspec.to_builtins(_measure(request, spec["process"], folder))


def _measure(request: Request, process: int, folder: Path) -> Found:
    device, plan, options = request.device, request.plan, request.options
    built = build(request.source, device, request.dtype, options.attention)
    point = single_point(request, built)
    prompt = random_prompt(point.batch, point.prompt_tokens, built.facts.vocab, device.torch)
    decoder = make_decoder(point.engine, built.module, device)
    logs = [PassLog(device, point.batch, point=n, visit=process) for n in (OFF, ON)]
    off, on = (Workload(decoder, log, prompt, point.new_tokens) for log in logs)
    with torch.no_grad(), forced_attention(options.attention), reporting() as reporter:
        decoder.make_ready(prompt, point.new_tokens)
        off.repeat(passes.WARMUP, plan.warmup_s, 1, reporter)
        blocks = _blocks(request, off, on, reporter)
        memory = device.most_allocated()
        trace = profile(off, plan, device, folder / TRACE_FILE)
        off.repeat(passes.AFTER, plan.after_s, 1, reporter)
    why_none = next((block.why_none for block in blocks if block.why_none), None)
    sides = [replace(point, number=n, label=label) for n, label in enumerate(LABELS)]
    return Found(
        model=built.facts,
        points=[
            sides[OFF].row(request.dtype, memory_bytes=memory),
            sides[ON].row(request.dtype, memory_bytes=memory)
            if why_none is None
            else sides[ON].row(request.dtype, outcome=REFUSED, reason=f"not sampled: {why_none}"),
        ],
        passes=sorted((row for log in logs for row in log.rows), key=_start_ns),
        blocks=blocks,
        profiler=trace.profiler,
    )


def _blocks(request: Request, off: Workload, on: Workload, reporter: Reporter) -> list[Block]:
    """Run the clean blocks in order, and return what the sampler saw of those that had it."""
    quick = request.options.quick
    found = []
    for side in QUICK_ORDER if quick else ORDER:
        seconds = QUICK_BLOCK_S if quick else BLOCK_S
        if side == OFF:
            _block(off, seconds, reporter)
            continue
        with Sampler(request.device.uuid, request.options.sample_interval_ms) as sampler:
            sampler.start()
            if (why_none := sampler.why_none) is None:
                _block(on, seconds, reporter)
            sampled = sampler.finish()
        found.append(Block(why_none, sampled.rows, sampled.facts, sampled.diagnostics))
    return found


def _block(workload: Workload, seconds: float, reporter: Reporter) -> None:
    """Run whole requests for so long, after one that is not counted."""
    workload.request(passes.WARMUP)
    workload.repeat(passes.CLEAN, seconds, 1, reporter)


def _start_ns(row: Row) -> int:
    start = row[Passes.start_ns]
    assert isinstance(start, int)
    return start
