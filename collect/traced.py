"""Take the trace of one point in a process of its own, where no profiler has run before."""

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from whichwall.collect.engines.make import make_decoder
from whichwall.collect.fresh import run_fresh
from whichwall.collect.journal import kept
from whichwall.collect.models import build, forced_attention
from whichwall.collect.options import CollectOptions
from whichwall.collect.passes import PassLog
from whichwall.collect.point import Point
from whichwall.collect.request import resolve
from whichwall.collect.session import profile
from whichwall.collect.workload import QUICK, Workload, random_prompt
from whichwall.collect.writing import TakenTrace
from whichwall.schemas.manifest import ProfilerFacts
from whichwall.schemas.passes import PROFILED, Passes

FUNCTION = "whichwall.collect.traced:trace_point"
TRACE_FILE = "trace.json"
# Building a large model and compiling it takes minutes; a crashed profiler can hang for ever.
LONGEST_S = 600.0

Row = dict[str, Any]


@dataclass(frozen=True)
class Traced:
    """A trace with the rows of the passes that are in it."""

    trace: TakenTrace
    passes: list[Row]


def take_trace(options: CollectOptions, point: Point, folder: Path) -> Traced:
    """Trace a few passes of a point in a fresh process; the trace lies in `folder` then.

    Raises:
        CollectError: that process failed, crashed or hung.
    """
    own = folder / f"point{point.number}"
    own.mkdir()
    try:
        spec = {"options": kept(options), "point": asdict(point)}
        found: Row = run_fresh(FUNCTION, spec, own, LONGEST_S)
        path = (own / TRACE_FILE).rename(folder / f"{own.name}.json")
    finally:
        shutil.rmtree(own, ignore_errors=True)
    facts = msgspec.convert(found["profiler"], ProfilerFacts)
    return Traced(TakenTrace(path, facts, point.number), found["passes"])


def trace_point(spec: Row, folder: Path) -> Row:
    """Build the model anew, run a few passes of a point under the profiler, and say how."""
    request = resolve(CollectOptions(**spec["options"]))
    point, device = Point(**spec["point"]), request.device
    built = build(request.source, device, request.dtype, point.attention)
    prompt = random_prompt(point.batch, point.prompt_tokens, built.facts.vocab, device.torch)
    log = PassLog(device, point.batch, point=point.number)
    with torch.no_grad(), forced_attention(point.attention):
        decoder = make_decoder(point.engine, built.module, device)
        decoder.make_ready(prompt, point.new_tokens)
        workload = Workload(decoder, log, prompt, point.new_tokens)
        taken = profile(workload, QUICK, device, folder / TRACE_FILE)
    return {
        "profiler": msgspec.to_builtins(taken.profiler),
        "passes": [row for row in log.rows if row[Passes.stage] == PROFILED],
    }
