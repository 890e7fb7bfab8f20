import time

import torch

from whichwall.collect.decoder import Decoder
from whichwall.collect.device import choose_device
from whichwall.collect.models import build, find_source
from whichwall.collect.passes import PassLog
from whichwall.collect.progress import reporting
from whichwall.collect.workload import Plan, Workload, random_prompt
from whichwall.schemas import passes
from whichwall.schemas.passes import Passes

CPU = choose_device("cpu")
BATCH, PROMPT, NEW = 2, 8, 4
PLAN = Plan(0.0, 0.0, 0.0, profiled_decodes=2, profiled_prefills=2)


def workload(new_tokens: int = NEW) -> Workload:
    built = build(find_source("tiny", "dummy"), CPU, torch.float32, "auto")
    prompt = random_prompt(BATCH, PROMPT, built.facts.vocab, CPU.torch)
    return Workload(Decoder(built.module), PassLog(CPU, BATCH), prompt, new_tokens)


def shape(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(
        row[column]
        for column in (
            Passes.stage, Passes.phase, Passes.index, Passes.tokens, Passes.context_tokens,
        )
    )  # fmt: skip


def test_a_request_is_its_prefill_and_a_step_for_every_further_token() -> None:
    work = workload()

    with torch.no_grad():
        work.request(passes.CLEAN)

    assert [shape(row) for row in work.log.rows] == [
        ("clean", "prefill", 0, BATCH * PROMPT, 0),
        ("clean", "decode", 1, BATCH, PROMPT),
        ("clean", "decode", 2, BATCH, PROMPT + 1),
        ("clean", "decode", 3, BATCH, PROMPT + 2),
    ]


def test_passes_lie_in_order_on_the_host_s_clock_without_overlap() -> None:
    work = workload()
    before = time.time_ns()

    with torch.no_grad():
        work.request(passes.CLEAN)

    starts = [int(str(row[Passes.start_ns])) for row in work.log.rows]
    walls = work.log.walls(passes.CLEAN, passes.PREFILL) + work.log.walls(
        passes.CLEAN, passes.DECODE
    )
    assert starts == sorted(starts)
    assert before <= starts[0]
    assert min(walls) > 0
    assert sum(walls) <= time.time_ns() - before
    assert {row[Passes.gpu_ns] for row in work.log.rows} == {None}


def test_whole_requests_are_repeated_as_often_as_asked() -> None:
    work = workload()

    with torch.no_grad(), reporting() as reporter:
        work.repeat(passes.CLEAN, 0.0, 3, reporter)

    assert [row[Passes.phase] for row in work.log.rows] == 3 * ["prefill", *3 * ["decode"]]


def test_profiled_steps_follow_a_prefill_and_a_warm_step_that_are_not_recorded() -> None:
    work = workload()

    with torch.no_grad():
        work.warm_profiled(PLAN)
        work.run_profiled(PLAN)

    assert [shape(row) for row in work.log.rows] == [
        ("warmup", "prefill", 0, BATCH * PROMPT, 0),
        ("warmup", "decode", 1, BATCH, PROMPT),
        ("profiled", "decode", 0, BATCH, PROMPT + 1),
        ("profiled", "decode", 1, BATCH, PROMPT + 2),
    ]


def test_profiled_steps_never_outgrow_the_request() -> None:
    work = workload(new_tokens=2)

    with torch.no_grad():
        work.warm_profiled(PLAN)
        work.run_profiled(PLAN)

    assert [row[Passes.stage] for row in work.log.rows] == ["warmup", "profiled"]


def test_a_request_of_one_token_is_its_prompt_alone() -> None:
    work = workload(1)

    with torch.no_grad():
        work.request(passes.CLEAN)
        work.warm_profiled(PLAN)
        work.run_profiled(PLAN)

    assert [(row[Passes.stage], row[Passes.phase]) for row in work.log.rows] == [
        ("clean", "prefill"),
        ("warmup", "prefill"),
        ("profiled", "prefill"),
        ("profiled", "prefill"),
    ]
