"""What a shared beginning of prompts saves inside vLLM's own engine: rounds of first tokens.

One engine, its cache of prefixes on, is asked one prompt after another; see `prefix_rounds`. A
server is asked the same by `endpoint.session`.
"""

from itertools import groupby
from pathlib import Path

import torch

from whichwall.collect.device import dtype_name
from whichwall.collect.endpoint.answer import LENGTH, Answer
from whichwall.collect.endpoint.chunks import Counts
from whichwall.collect.endpoint.plan import visit_plan
from whichwall.collect.endpoint.prompts import Prompter
from whichwall.collect.endpoint.rows import Asked, RowLog
from whichwall.collect.engines.make import how_it_starts
from whichwall.collect.engines.vllm_answers import Answer as EngineAnswer
from whichwall.collect.engines.vllm_answers import Answers, open_answers
from whichwall.collect.environment import find_sharing, read_environment, read_gpu
from whichwall.collect.failures import explained
from whichwall.collect.models import describe
from whichwall.collect.nvml import open_gpu
from whichwall.collect.options import CollectOptions, command_line
from whichwall.collect.point import Point
from whichwall.collect.prefix_rounds import KINDS, SUFFIX_TOKENS, round_of
from whichwall.collect.progress import Reporter, reporting
from whichwall.collect.request import Request, default_writer, origin, prompt_tokens, resolve
from whichwall.collect.sampler import Sampler
from whichwall.collect.writing import Measured, write_run
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.model import Model
from whichwall.schemas.passes import CLEAN, WARMUP
from whichwall.schemas.points import UNIQUE

NEW_TOKENS = 1  # the first is the one that is waited for
# Special tokens lie at the beginning of most vocabularies.
FIRST_ID = 3


def run(options: CollectOptions, writer: RunWriter | None) -> Path:
    """Collect rounds of prompts and write their run; `writer` is None where nothing says where to.

    Raises:
        UsageError: an unknown model, a prompt beyond its positions, a destination that exists.
        CollectError: no vLLM, or the device or the memory is not up to it.
    """
    request = resolve(options)
    device, source = request.device, request.source
    writer = writer or default_writer(request)
    failing = explained(options, f"{source.name} on {device.name}", writer.out)
    with writer, failing, reporting() as reporter, open_gpu(device.uuid):
        _, model = describe(source, request.dtype)
        # Whatever is shared, each prompt has an end of its own, and an answer.
        shared = prompt_tokens(options.prompt_tokens, device, model, SUFFIX_TOKENS + NEW_TOKENS)
        measured = _measure(request, model, shared, reporter)
        reporter.stage("writing the run")
        name = dtype_name(request.dtype)
        command = command_line(options, source.name, device.kind, name, shared)
        return write_run(writer, origin(request, model, command), measured)


def _measure(request: Request, model: Model, shared: int, reporter: Reporter) -> Measured:
    """Start an engine and ask it every round under the sampler."""
    device, options = request.device, request.options
    whole = shared + SUFFIX_TOKENS
    log, points = RowLog({}), _points(request, whole)
    with (
        torch.no_grad(),
        Sampler(device.uuid, options.sample_interval_ms) as sampler,
    ):
        reporter.stage(how_it_starts(options.engine, device))
        with open_answers(request, whole + NEW_TOKENS) as answers:
            reporter.stage("starting nvidia-smi")
            sampler.start()
            reporter.stage("rounds of prompts")
            prompter = Prompter(request.created_ns, range(FIRST_ID, model.vocab))
            _ask(answers, prompter, log, Asked(0, 0, WARMUP, whole))
            rounds = visit_plan(options).visits
            for number in range(rounds):
                _ask_round(answers, prompter, log, shared, number)
                reporter.advance_to((number + 1) / rounds)
            sampled = sampler.finish()
            facts = answers.facts
    gpu = read_gpu(device)
    return Measured(
        points=[point.row(request.dtype) for point in points],
        environment=read_environment(),
        gpu=gpu,
        completions=log.completions,
        tokens=log.tokens,
        samples=sampled,
        engine=facts,
        diagnostics=find_sharing(device, gpu),
    )


def _points(request: Request, whole: int) -> list[Point]:
    """Return a point for each kind of prompt."""
    return [
        Point(number, request.options.engine, "auto", 1, whole, NEW_TOKENS, label=kind)
        for number, kind in enumerate(KINDS)
    ]


def _ask_round(answers: Answers, prompter: Prompter, log: RowLog, shared: int, number: int) -> None:
    prefix = prompter.prompt(shared)
    assert isinstance(prefix, list)
    for kind in round_of(number):
        begins = None if kind == UNIQUE else prefix
        asked = Asked(
            KINDS.index(kind),
            number,
            CLEAN,
            shared + SUFFIX_TOKENS,
            0 if begins is None else shared,
        )
        _ask(answers, prompter, log, asked, begins)


def _ask(
    answers: Answers,
    prompter: Prompter,
    log: RowLog,
    asked: Asked,
    prefix: list[int] | None = None,
) -> None:
    ids = prompter.prompt(asked.prompt_tokens, prefix)
    assert isinstance(ids, list)
    log.add(asked, _as_a_servers(answers.ask(ids, NEW_TOKENS), len(ids)))


def _as_a_servers(answer: EngineAnswer, prompt_tokens: int) -> Answer:
    """Return an answer of the engine as one of a server: tokens of one step came together."""
    return Answer(
        start_ns=answer.start_ns,
        total_ns=answer.arrivals_ns[-1],
        finish=LENGTH,
        ended=True,
        counts=Counts(prompt_tokens, answer.cached_tokens, len(answer.arrivals_ns)),
        arrivals=[(at, len(list(same))) for at, same in groupby(answer.arrivals_ns)],
    )
