"""vLLM's engine driven pass by pass, with a fake engine: what a pass holds, and what is refused."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.vllm_fake import CPU, decoder_for, faked, model_for, point
from whichwall.collect.engines.vllm_answers import open_answers
from whichwall.collect.engines.vllm_api import STEPS_TO_IDLE
from whichwall.collect.engines.vllm_decoder import VllmDecoder
from whichwall.collect.options import CollectOptions
from whichwall.collect.passes import PassLog
from whichwall.collect.point import Point
from whichwall.collect.request import resolve
from whichwall.collect.session import profile
from whichwall.collect.workload import Plan, Workload
from whichwall.schemas.errors import CollectError
from whichwall.schemas.passes import CLEAN, DECODE, PREFILL, Passes

SCHEDULERS = pytest.mark.parametrize("asynchronous", [False, True])
PLAN = Plan(0.0, 0.0, 0.0, profiled_decodes=4, profiled_prefills=2)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with faked(monkeypatch) as module:
        yield module


def workload(decoder: VllmDecoder, one: Point) -> Workload:
    prompt = torch.zeros(one.batch, one.prompt_tokens, dtype=torch.int64)
    decoder.make_ready(prompt, one.new_tokens)
    return Workload(decoder, decoder.make_log(CPU, one.batch), prompt, one.new_tokens)


def engine_of(decoder: VllmDecoder) -> Any:
    return decoder.engine._engine


def passes(log: PassLog) -> list[tuple[object, ...]]:
    keys = (Passes.phase, Passes.index, Passes.batch, Passes.tokens, Passes.context_tokens)
    return [tuple(row[key] for key in keys) for row in log.rows]


@SCHEDULERS
def test_a_request_is_a_prefill_and_a_step_for_each_further_token(
    fake: Any, *, asynchronous: bool
) -> None:
    fake.SETTINGS["async_scheduling"] = asynchronous
    one = point(batch=3, prompt=8, new=4)
    work = workload(decoder_for(one), one)

    work.request(CLEAN)

    assert passes(work.log) == [
        (PREFILL, 0, 3, 24, 0),
        (DECODE, 1, 3, 3, 8),
        (DECODE, 2, 3, 3, 9),
        (DECODE, 3, 3, 3, 10),
    ]


@SCHEDULERS
def test_decode_passes_follow_one_another_without_a_gap(fake: Any, *, asynchronous: bool) -> None:
    fake.SETTINGS["async_scheduling"] = asynchronous
    one = point(new=5)
    decoder = decoder_for(one)
    work = workload(decoder, one)
    work.prefill(CLEAN)
    spans = [decoder.span]

    for _ in range(4):
        work.step(CLEAN)
        spans.append(decoder.span)

    assert [begin for begin, _ in spans[1:]] == [end for _, end in spans[:-1]]


@SCHEDULERS
def test_one_step_of_the_engine_is_one_decode_pass(fake: Any, *, asynchronous: bool) -> None:
    fake.SETTINGS["async_scheduling"] = asynchronous
    one = point(new=6)
    decoder = decoder_for(one)
    work = workload(decoder, one)
    work.prefill(CLEAN)
    before = engine_of(decoder).steps

    for _ in range(5):
        work.step(CLEAN)

    assert engine_of(decoder).steps == before + 5


@SCHEDULERS
def test_prompts_that_take_several_steps_end_in_one_prefill_and_whole_steps(
    fake: Any, *, asynchronous: bool
) -> None:
    fake.SETTINGS["async_scheduling"] = asynchronous
    one = point(batch=3, prompt=40, new=3)
    decoder = decoder_for(one)
    work = workload(decoder, one)

    for _ in range(2):
        work.prefill(CLEAN)
        assert {request.made > 0 for request in engine_of(decoder).requests.values()} == {True}
        work.step(CLEAN)
        work.step(CLEAN)

    assert [row[Passes.phase] for row in work.log.rows] == 2 * [PREFILL, DECODE, DECODE]


@SCHEDULERS
def test_a_prefill_finds_an_idle_engine_whatever_was_under_way(
    fake: Any, *, asynchronous: bool
) -> None:
    fake.SETTINGS["async_scheduling"] = asynchronous
    one = point(new=6)
    decoder = decoder_for(one)
    work = workload(decoder, one)
    work.prefill(CLEAN)
    work.step(CLEAN)
    earlier = set(engine_of(decoder).requests)
    steps = engine_of(decoder).steps

    work.prefill(CLEAN)

    assert earlier.isdisjoint(engine_of(decoder).requests)
    # Some to run dry, one for the prompt, and one more where the next has to begin first.
    assert engine_of(decoder).steps == steps + STEPS_TO_IDLE + 1 + asynchronous


def test_no_two_prompts_are_alike(fake: Any) -> None:
    one = point(batch=2, prompt=8, new=2)
    model = model_for(one)

    for decoder in (VllmDecoder(model), VllmDecoder(model)):
        work = workload(decoder, one)
        work.request(CLEAN)
        work.request(CLEAN)

    prompts = engine_of(decoder).prompts
    assert len({tuple(prompt) for prompt in prompts}) == len(prompts) == 8
    assert {len(prompt) for prompt in prompts} == {8}
    assert max(max(prompt) for prompt in prompts) < model.facts.vocab


def test_a_prompt_that_is_found_in_a_cache_is_no_pass(
    fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = point(prompt=32)
    decoder = decoder_for(one)
    work = workload(decoder, one)
    work.prefill(CLEAN)
    prompt: list[int] = engine_of(decoder).prompts[0]
    monkeypatch.setattr(decoder.model, "new_prompt", lambda length: ("again", prompt))

    with pytest.raises(CollectError, match=r"^vLLM found tokens of a new random prompt"):
        work.prefill(CLEAN)


def test_a_step_that_leaves_a_sequence_out_is_no_pass(fake: Any) -> None:
    fake.SETTINGS["skip_every"] = 1
    one = point(batch=2, new=4)
    work = workload(decoder_for(one), one)
    work.prefill(CLEAN)

    with pytest.raises(CollectError, match=r"^vLLM ran 1 of 2 sequences in one step"):
        work.step(CLEAN)


def test_an_engine_that_fails_is_started_anew_for_the_next_point(fake: Any) -> None:
    one = point(new=4)
    decoder = decoder_for(one)
    work = workload(decoder, one)
    fake.SETTINGS["fail_at_step"] = engine_of(decoder).steps + 6

    with pytest.raises(RuntimeError, match="the engine is dead"):
        work.request(CLEAN)

    fake.SETTINGS["fail_at_step"] = 0
    workload(decoder, one).request(CLEAN)
    assert len(fake.STARTED) == 2


def test_one_engine_has_room_for_the_largest_of_all_points(fake: Any) -> None:
    small, large = point(batch=2, prompt=8, new=4), point(batch=12, prompt=16, new=8)
    decoder = decoder_for(small, large)

    for one in (small, large):
        workload(decoder, one).request(CLEAN)

    (given,) = fake.STARTED
    assert (given["max_model_len"], given["max_num_seqs"]) == (24, 12)


def test_a_prompt_that_is_timed_alone_fits_into_one_step(fake: Any) -> None:
    one = point(batch=4, prompt=32, new=1)
    decoder = decoder_for(one)
    workload(decoder, one).request(CLEAN)

    assert decoder.engine.facts.step_tokens == 128


def test_what_vllm_decides_by_itself_is_left_to_it(fake: Any) -> None:
    one = point()
    workload(decoder_for(one), one)

    (given,) = fake.STARTED
    del given["model"], given["profiler_config"]
    assert given == {
        "files": ["config.json"],
        "skip_tokenizer_init": True,
        "max_model_len": 12,
        "dtype": "float32",
        "load_format": "dummy",
    }


def test_a_batch_beyond_the_cache_does_not_fit(fake: Any) -> None:
    fake.SETTINGS["cache_tokens"] = 64
    one = point(batch=5, prompt=8, new=4)

    with pytest.raises(
        MemoryError, match="holds 64 tokens, and the request tried to allocate 80 tokens"
    ):
        workload(decoder_for(one), one)


def test_an_engine_that_does_not_start_says_why_each_time_it_is_asked(fake: Any) -> None:
    fake.SETTINGS["refuse"] = "the model has 3 heads [type=value_error, input={}]"
    model = model_for(point())

    for _ in range(2):
        with pytest.raises(
            CollectError, match=r"^vLLM cannot start here \(the model has 3 heads\)$"
        ):
            _ = model.engine
        fake.SETTINGS["refuse"] = None


def test_a_vllm_for_another_device_is_refused(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.platforms import current_platform

    monkeypatch.setattr(current_platform, "is_cpu", lambda: False)

    with pytest.raises(CollectError, match="this vLLM is built for cuda, the device is cpu"):
        _ = model_for(point()).engine


@SCHEDULERS
def test_a_trace_holds_the_engine_s_own_annotations_of_the_profiled_passes(
    fake: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], *, asynchronous: bool
) -> None:
    fake.SETTINGS["async_scheduling"] = asynchronous
    one = point(batch=2, new=12)
    work = workload(decoder_for(one), one)

    taken = profile(work, PLAN, CPU, tmp_path / "trace.json")

    found = re.findall(r"execute_[^\"]*", taken.path.read_text())
    assert found == 4 * ["execute_context_0(0)_generation_2(2)"]
    assert (taken.profiler.activities, taken.profiler.record_shapes) == (["CPU"], True)
    assert capfd.readouterr().out == ""


def test_a_prompt_that_begins_as_an_earlier_one_is_found_in_the_cache(fake: Any) -> None:
    request = resolve(CollectOptions(model="tiny", device="cpu"))
    shared, tails = list(range(32)), ([1, 2], [3, 4])

    with open_answers(request, longest_tokens=64) as answers:
        found = [answers.ask(shared + tail, new_tokens=3) for tail in tails]

    assert [one.cached_tokens for one in found] == [0, 32]
    for one in found:
        assert len(one.arrivals_ns) == 3
        assert one.arrivals_ns == sorted(one.arrivals_ns)
