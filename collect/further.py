"""Further fresh processes of `collect --mode decode` or `prefill`: clean passes and no more.

The first process has measured everything and gives back its memory before these begin. Each builds
the model anew, warms up and times clean passes under a sampler of its own, as the first one did.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import torch

from whichwall.collect.engines.make import build_for, close, expect, make_decoder
from whichwall.collect.failures import explained
from whichwall.collect.models import forced_attention
from whichwall.collect.nvml import open_gpu
from whichwall.collect.options import CollectOptions
from whichwall.collect.processes import Block, Processes, joined
from whichwall.collect.progress import Reporter, reporting
from whichwall.collect.request import Request, resolve, single_point
from whichwall.collect.sampler import Sampler
from whichwall.collect.visits import forget_compiled, give_back
from whichwall.collect.workload import Workload, random_prompt
from whichwall.collect.writing import (
    NS_PER_MS,
    UNSTABLE_RATIO,
    Measured,
    Row,
    find_unstable,
)
from whichwall.schemas import passes
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.passes import Passes

FUNCTION = "whichwall.collect.further:measure"


class Found(msgspec.Struct, frozen=True):
    """What one further process brought home."""

    passes: list[Row]
    block: Block


def with_further(
    request: Request, measured: Measured, folder: Path, reporter: Reporter
) -> Measured:
    """Return what the first process measured with the clean passes of the others, if any.

    Passes carry the number of their process as their visit, the first one's 0.
    """
    total = request.options.repeat
    if total < 2:
        return measured
    # What the first one still holds would be missing to the others.
    forget_compiled()
    give_back(request.device)
    others = Processes(FUNCTION, request.options, folder)
    found = [msgspec.convert(v, Found) for v, _ in others.run(range(1, total), reporter)]
    own = measured.samples
    blocks = [Block(None, own.rows, own.facts, own.diagnostics), *(one.block for one in found)]
    first, *asides = measured.points
    return replace(
        measured,
        points=[others.with_reason(first, total), *asides],
        passes=[*measured.passes, *(row for one in found for row in one.passes)],
        samples=joined(blocks),
    )


def find_unstable_processes(rows: Sequence[Row], phase: str) -> list[Diagnostic]:
    """Return a warning if clean passes differ too much, between processes or inside them."""
    by_process: dict[object, list[int]] = {}
    for row in rows:
        wall = row[Passes.wall_ns]
        if (row[Passes.stage], row[Passes.phase]) == (passes.CLEAN, phase) and isinstance(
            wall, int
        ):
            by_process.setdefault(row[Passes.visit], []).append(wall)
    medians = [median(walls) / NS_PER_MS for walls in by_process.values()]
    if max(medians) <= UNSTABLE_RATIO * min(medians):
        return find_unstable([wall for walls in by_process.values() for wall in walls], phase)
    text = (
        f"the median clean {phase} pass took {min(medians):.3g} to {max(medians):.3g} ms in "
        f"{len(medians)} processes; collect again on a quiet host"
    )
    return [Diagnostic("unstable_steps", "warning", len(medians), text)]


def measure(spec: dict[str, Any], folder: Path) -> Any:
    """Run the process's stages, and return a `Found` as JSON holds it.

    Args:
        spec: `options`, the fields of `CollectOptions`, and `process`, the number of this one.
        folder: where files of it would go; there are none.
    """
    request = resolve(CollectOptions(**spec["options"]))
    what = f"{request.source.name} on {request.device.name}"
    with explained(request.options, what, folder), open_gpu(request.device.uuid):
        return msgspec.to_builtins(_measure(request, spec["process"]))


def _measure(request: Request, process: int) -> Found:
    device, plan, options = request.device, request.plan, request.options
    built = build_for(options.engine, request.source, device, request.dtype, options.attention)
    point = single_point(request, built)
    expect(built, [point])
    prompt = random_prompt(point.batch, point.prompt_tokens, built.facts.vocab, device.torch)
    decoder = make_decoder(point.engine, built.module, device)
    log = decoder.make_log(device, point.batch, visit=process)
    workload = Workload(decoder, log, prompt, point.new_tokens)
    with (
        torch.no_grad(),
        forced_attention(options.attention),
        Sampler(device.uuid, options.sample_interval_ms) as sampler,
        reporting() as reporter,
    ):
        sampler.start()
        decoder.make_ready(prompt, point.new_tokens)
        workload.repeat(passes.WARMUP, plan.warmup_s, 1, reporter)
        workload.repeat(passes.CLEAN, plan.clean_s, 1, reporter)
        sampled = sampler.finish()
    close(built)
    block = Block(sampler.why_none, sampled.rows, sampled.facts, sampled.diagnostics)
    return Found(log.rows, block)
