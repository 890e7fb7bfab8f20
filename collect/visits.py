"""Visit one point of a sweep: make it ready, warm up, time it clean, and say how that ended.

What cannot run here ends as refused, what does not fit as out of memory; both leave the other
points as they were.
"""

import gc
import re
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch

from whichwall.collect.decoder import Decoder
from whichwall.collect.device import Device
from whichwall.collect.engines.make import attention_of, engine_facts, make_decoder
from whichwall.collect.failures import is_out_of_memory, point_failures, why_refused
from whichwall.collect.journal import Visit
from whichwall.collect.models import Built
from whichwall.collect.options import COMPILE, COMPILE_REDUCE_OVERHEAD, CUDA_GRAPH
from whichwall.collect.point import Point
from whichwall.collect.progress import Reporter
from whichwall.collect.workload import VisitPlan, Workload, random_prompt
from whichwall.schemas import passes
from whichwall.schemas.points import DONE, OUT_OF_MEMORY, REFUSED

# Making these ready costs as much as many visits, so their decoders wait for the next one.
COSTLY = (CUDA_GRAPH, COMPILE, COMPILE_REDUCE_OVERHEAD)
# The first steps load kernels and raise clocks; a long answer need not be given twice for that.
WARM_TOKENS = 32

# How torch's warnings about each backend begin; the next one says what it lacks.
_WARNED = {"efficient": "Memory efficient", "flash": "Flash", "cudnn": "CuDNN"}
_SOURCE = re.compile(r"\s*\(Triggered internally.*", re.DOTALL)
_WANTED = re.compile(r"[Tt]ried to allocate ([\d.,]+ ?\w+)")


@dataclass
class Visitor:
    """Visits the points of one model; decoders that are dear to make stay ready in between.

    `elsewhere` has what visits the points of an engine that must not run in this process.
    """

    device: Device
    built: Built
    plan: VisitPlan
    elsewhere: Mapping[str, Callable[[Point, int], Visit]] = field(default_factory=dict)
    _kept: dict[int, Decoder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Note what the model alone takes."""
        self._model_bytes = self._allocated()

    def visit(self, point: Point, number: int, reporter: Reporter) -> Visit:
        """Measure a point once more, or find out that it cannot be."""
        if away := self.elsewhere.get(point.engine):
            return away(point, number)
        found = self._try(point, number, reporter)
        if found.outcome == OUT_OF_MEMORY and self._kept:
            # What waits for its next visit may be what left no room.
            self._kept.clear()
            forget_compiled()
            give_back(self.device)
            found = self._try(point, number, reporter)
        if found.outcome != DONE:
            self._kept.pop(point.number, None)
        if found.outcome == OUT_OF_MEMORY:
            give_back(self.device)
        return found

    def _try(self, point: Point, number: int, reporter: Reporter) -> Visit:
        said: list[str] = []
        try:
            return self._measure(point, number, reporter, said)
        except point_failures() as error:
            if is_out_of_memory(error):
                outcome, reason = OUT_OF_MEMORY, _what_did_not_fit(error)
            else:
                outcome = REFUSED
                reason = why_refused(error, point.engine, point.attention) + _why_none(point, said)
        return Visit(point.number, number, outcome, reason)

    def _measure(self, point: Point, number: int, reporter: Reporter, said: list[str]) -> Visit:
        prompt = random_prompt(
            point.batch, point.prompt_tokens, self.built.facts.vocab, self.device.torch
        )
        # An engine of its own allocates once for all points.
        others = 0 if engine_facts(self.built) else self._allocated() - self._model_bytes
        if self.device.is_gpu:
            torch.cuda.reset_peak_memory_stats(self.device.torch)
        with torch.no_grad(), attention_of(self.built, point):
            # What torch has to say of a backend it says while it tries it for the first time.
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    decoder, setup_ns = self._ready(point, prompt)
                    log = decoder.make_log(
                        self.device, point.batch, point=point.number, visit=number
                    )
                    warm = Workload(decoder, log, prompt, min(point.new_tokens, WARM_TOKENS))
                    warm.repeat(passes.WARMUP, self.plan.warmup_s, 1, reporter)
                finally:
                    said += [str(one.message) for one in caught]
            work = Workload(decoder, log, prompt, point.new_tokens)
            work.repeat(passes.CLEAN, self.plan.clean_s, 1, reporter)
        most = self.device.most_allocated()
        return Visit(
            point.number,
            number,
            DONE,
            setup_ns=setup_ns,
            memory_bytes=None if most is None or setup_ns is None else most - others,
            passes=log.rows,
            engine=engine_facts(self.built),
        )

    def _ready(self, point: Point, prompt: torch.Tensor) -> tuple[Decoder, int | None]:
        """Return a decoder and how long it took to make it ready; None for one that was."""
        if point.number in self._kept:
            return self._kept[point.number], None
        decoder = make_decoder(point.engine, self.built.module, self.device)
        self.device.synchronize()
        begin = time.perf_counter_ns()
        decoder.make_ready(prompt, point.new_tokens)
        self.device.synchronize()
        setup_ns = time.perf_counter_ns() - begin
        if point.engine in COSTLY:
            self._kept[point.number] = decoder
        return decoder, setup_ns

    def _allocated(self) -> int:
        return torch.cuda.memory_allocated(self.device.torch) if self.device.is_gpu else 0


def give_back(device: Device) -> None:
    """Return to the device what no tensor holds any more."""
    gc.collect()
    if device.is_gpu:
        torch.cuda.empty_cache()


def forget_compiled() -> None:
    """Let go of compiled passes, which hold their model and the memory of their graphs."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()


def room_to_compile(points: int) -> None:
    """Let torch compile one pass for each point: beyond its limit it would silently not compile."""
    import torch._dynamo

    config: Any = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, 2 * points)


def _what_did_not_fit(error: BaseException) -> str:
    found = _WANTED.search(str(error))
    return f"out of memory, allocating {found[1]}" if found else "out of memory"


def _why_none(point: Point, said: list[str]) -> str:
    """Return what torch warned of before it refused a backend of attention, in brackets."""
    begin = _WARNED.get(point.attention)
    for warned, reason in pairwise(said):
        if begin is not None and warned.startswith(begin) and "not used because" in warned:
            return f" ({_SOURCE.sub('', reason).strip().rstrip('.')})"
    return ""
