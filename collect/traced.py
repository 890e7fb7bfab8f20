"""Take traces of points in processes of their own, where no profiler has run before.

Points that launch kernel by kernel share one process, and those of vLLM another. Each that replays
graphs has its own, since a graph can crash under a profiler, and takes along what its process still
had to do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from whichwall.collect.device import Device
from whichwall.collect.engines.make import (
    NEEDS_GPU,
    attention_of,
    build_for,
    close,
    expect,
    make_decoder,
)
from whichwall.collect.failures import point_failures, why_refused
from whichwall.collect.fresh import run_fresh
from whichwall.collect.journal import kept
from whichwall.collect.models import Built
from whichwall.collect.options import VLLM, CollectOptions
from whichwall.collect.point import Point
from whichwall.collect.profiler import stay_attached
from whichwall.collect.request import resolve
from whichwall.collect.session import profile
from whichwall.collect.visits import give_back
from whichwall.collect.workload import QUICK, Workload, random_prompt
from whichwall.collect.writing import TakenTrace
from whichwall.schemas.errors import CollectError
from whichwall.schemas.manifest import ProfilerFacts
from whichwall.schemas.passes import PROFILED, Passes

FUNCTION = "whichwall.collect.traced:trace_points"
# Building a large model and compiling it takes minutes; a crashed profiler can hang for ever.
LONGEST_S = 600.0

Row = dict[str, Any]


@dataclass(frozen=True)
class Traced:
    """A trace with the rows of the passes that are in it."""

    trace: TakenTrace
    passes: list[Row]


def in_one_process(points: Sequence[Point]) -> list[list[Point]]:
    """Return the points of each process."""
    plain = [point for point in points if point.engine not in (*NEEDS_GPU, VLLM)]
    engines_own = [point for point in points if point.engine == VLLM]
    together = [group for group in (plain, engines_own) if group]
    return [*together, *([p] for p in points if p.engine in NEEDS_GPU)]


def take_traces(
    options: CollectOptions, points: Sequence[Point], folder: Path
) -> Iterator[tuple[Point, Traced | str]]:
    """Trace a few passes of each point in one fresh process; the files lie in `folder` then.

    Yields each point with its trace, or with why there is none.
    """
    spec = {"options": kept(options), "points": [asdict(point) for point in points]}
    try:
        found: list[Row | str] = run_fresh(FUNCTION, spec, folder, LONGEST_S * len(points))
    except CollectError as error:
        found = [str(error)] * len(points)
    for point, one in zip(points, found, strict=True):
        if isinstance(one, str):
            yield point, one
        else:
            facts = msgspec.convert(one["profiler"], ProfilerFacts)
            taken = TakenTrace(_trace_file(folder, point), facts, point.number)
            yield point, Traced(taken, one["passes"])


def trace_points(spec: Row, folder: Path) -> list[Row | str]:
    """Build the model anew, and trace each point; return how, or why it cannot be."""
    request = resolve(CollectOptions(**spec["options"]))
    points = [Point(**fields) for fields in spec["points"]]
    if points[0].engine == VLLM:
        stay_attached()
    built = build_for(points[0].engine, request.source, request.device, request.dtype, "auto")
    expect(built, points)
    found: list[Row | str] = []
    for point in points:
        try:
            found.append(_trace(point, built, request.device, folder))
        except point_failures() as error:
            found.append(why_refused(error, point.engine, point.attention))
        give_back(request.device)
    close(built)
    return found


def _trace(point: Point, built: Built, device: Device, folder: Path) -> Row:
    prompt = random_prompt(point.batch, point.prompt_tokens, built.facts.vocab, device.torch)
    with torch.no_grad(), attention_of(built, point):
        decoder = make_decoder(point.engine, built.module, device)
        decoder.make_ready(prompt, point.new_tokens)
        log = decoder.make_log(device, point.batch, point=point.number)
        workload = Workload(decoder, log, prompt, point.new_tokens)
        taken = profile(workload, QUICK, device, _trace_file(folder, point))
    return {
        "profiler": msgspec.to_builtins(taken.profiler),
        "passes": [row for row in log.rows if row[Passes.stage] == PROFILED],
    }


def _trace_file(folder: Path, point: Point) -> Path:
    return folder / f"point{point.number}.json"
