"""One request, text to text, by three loops in turn: what each stage takes, and what loops add.

The sampler is on throughout, and no profiler runs. Every loop is warmed up once, then each runs one
request a round; odd rounds go through the loops backwards, so that drift does not look like one
loop's cost. Without a tokenizer the prompt is random ids, and its text stages stay null.
"""

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import torch

from whichwall.collect.device import Device, dtype_name
from whichwall.collect.engines.make import make_decoder
from whichwall.collect.environment import find_sharing, read_environment, read_gpu
from whichwall.collect.failures import explained
from whichwall.collect.loops import Loop, make_loops
from whichwall.collect.models import Built, build, forced_attention
from whichwall.collect.nvml import open_gpu
from whichwall.collect.options import EAGER, CollectOptions, command_line
from whichwall.collect.passes import PassLog
from whichwall.collect.point import Point
from whichwall.collect.progress import Reporter, reporting
from whichwall.collect.request import Request, default_writer, origin, resolve, single_point
from whichwall.collect.sampler import Sampler
from whichwall.collect.text import Text, load_text
from whichwall.collect.workload import random_prompt
from whichwall.collect.writing import Measured, Row, find_unstable, write_run
from whichwall.schemas import passes
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.requests import GENERATE, LOOPS, WAITING, Requests

T = TypeVar("T")

# Each loop runs this often: a median with a spread; quick: both directions once.
ROUNDS, QUICK_ROUNDS = 5, 2


def run(options: CollectOptions, writer: RunWriter | None) -> Path:
    """Collect requests and write their run; `writer` is None where nothing says where to.

    Raises:
        UsageError: an unknown model, a prompt beyond its positions, a destination that exists.
        CollectError: the device, the memory or the disk is not up to it.
    """
    request = resolve(options)
    device, source = request.device, request.source
    writer = writer or default_writer(request)
    failing = explained(options, f"{source.name} on {device.name}", writer.out)
    with writer, failing, reporting() as reporter, open_gpu(device.uuid):
        reporter.stage(f"building {source.name}")
        built = build(source, device, request.dtype, options.attention)
        point = single_point(request, built)
        measured = _measure(request, built, point, reporter)
        reporter.stage("writing the run")
        name = dtype_name(request.dtype)
        command = command_line(options, source.name, device.kind, name, point.prompt_tokens)
        return write_run(writer, origin(request, built.facts, command), measured)


def _measure(request: Request, built: Built, point: Point, reporter: Reporter) -> Measured:
    """Run every loop in turn under the sampler."""
    device, options = request.device, request.options
    text = load_text(request.source, point.batch, point.prompt_tokens, built.facts.vocab)
    prompt = random_prompt(point.batch, point.prompt_tokens, built.facts.vocab, device.torch)
    if text is not None:
        prompt = text.encode().to(device.torch)
    log = PassLog(device, point.batch, point=LOOPS.index(WAITING))
    decoder = make_decoder(point.engine, built.module, device)
    with (
        torch.no_grad(),
        forced_attention(options.attention),
        Sampler(device.uuid, options.sample_interval_ms) as sampler,
    ):
        reporter.stage("starting nvidia-smi")
        sampler.start()
        reporter.stage("warming up")
        _, setup_ns = _timed(device, lambda: decoder.make_ready(prompt, point.new_tokens))
        loops = make_loops(built.module, decoder, log, point.new_tokens)
        requester = Requester(device, loops, text, prompt)
        memory = {name: requester.warm_up(name) for name in LOOPS}
        reporter.stage("requests")
        rows: list[Row] = []
        rounds = max(QUICK_ROUNDS if options.quick else ROUNDS, options.repeat)
        for visit in range(rounds):
            log.visit = visit
            order = LOOPS[::-1] if visit % 2 else LOOPS
            rows += [requester.request(name, passes.CLEAN, visit) for name in order]
            reporter.advance_to((visit + 1) / rounds)
        sampled = sampler.finish()
    gpu = read_gpu(device)
    clean_ns = {phase: log.walls(passes.CLEAN, phase) for phase in (passes.PREFILL, passes.DECODE)}
    return Measured(
        points=[_point_row(request, point, n, setup_ns, memory[n]) for n in LOOPS],
        passes=log.rows,
        requests=rows,
        samples=sampled,
        gpu=gpu,
        environment=read_environment(),
        diagnostics=[
            *find_sharing(device, gpu),
            *(said for phase, ns in clean_ns.items() if ns for said in find_unstable(ns, phase)),
        ],
    )


@dataclass(frozen=True)
class Requester:
    """Runs requests on one prompt; its text, null without a tokenizer, gives the same ids."""

    device: Device
    loops: dict[str, Loop]
    text: Text | None
    prompt: torch.Tensor

    def warm_up(self, loop: str) -> int | None:
        """Run one request that does not count, and return the most memory it took."""
        if self.device.is_gpu:
            torch.cuda.reset_peak_memory_stats(self.device.torch)
        self.request(loop, passes.WARMUP, None)
        return self.device.most_allocated()

    def request(self, loop: str, stage: str, visit: int | None) -> Row:
        """Run one request from text to text, each stage to its end before the next one."""
        device, text = self.device, self.text
        prompt, tokenize_ns, detokenize_ns = self.prompt, None, None
        start_ns = time.time_ns()
        if text is not None:
            prompt, tokenize_ns = _timed(device, lambda: text.encode().to(device.torch))
        answer, model_ns = _timed(device, lambda: self.loops[loop](prompt, stage))
        if text is not None:
            _, detokenize_ns = _timed(device, lambda: text.decode(answer.ids))
        return {
            Requests.point: LOOPS.index(loop),
            Requests.rank: 0,
            Requests.visit: visit,
            Requests.loop: loop,
            Requests.start_ns: start_ns,
            Requests.tokenize_ns: tokenize_ns,
            Requests.prefill_ns: answer.prefill_ns,
            Requests.model_ns: model_ns,
            Requests.detokenize_ns: detokenize_ns,
            Requests.prompt_tokens: prompt.shape[1],
            Requests.new_tokens: answer.ids.shape[1],
            Requests.tokens_sha256: _digest(answer.ids),
        }


def _timed(device: Device, work: Callable[[], T]) -> tuple[T, int]:
    """Return what the work returns, and the ns from its start to its synchronised end."""
    device.synchronize()
    begin = time.perf_counter_ns()
    result = work()
    device.synchronize()
    return result, time.perf_counter_ns() - begin


def _digest(ids: torch.Tensor) -> str:
    return sha256(array("q", ids.flatten().tolist()).tobytes()).hexdigest()


def _point_row(
    request: Request, point: Point, loop: str, setup_ns: int, memory_bytes: int | None
) -> Row:
    """Return the row of a loop's point; the library's own runs eager, with nothing to set up."""
    own = loop == GENERATE
    engine = EAGER if own else point.engine
    one = replace(point, number=LOOPS.index(loop), label=loop, engine=engine)
    return one.row(request.dtype, setup_ns=None if own else setup_ns, memory_bytes=memory_bytes)
