"""The three loops of a request: the same tokens, whatever the model would rather do."""

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

from tests.test_role_ranges import MODELS, VOCAB
from whichwall.collect.device import choose_device
from whichwall.collect.engines.make import make_decoder
from whichwall.collect.loops import Answer, make_loops
from whichwall.collect.options import EAGER, STATIC_CACHE
from whichwall.collect.passes import PassLog
from whichwall.collect.workload import random_prompt
from whichwall.schemas.passes import Passes
from whichwall.schemas.requests import FREE, GENERATE, LOOPS, WAITING

CPU = choose_device("cpu")
BATCH, PROMPT, NEW = 2, 8, 6


def model_of(name: str) -> Any:
    torch.manual_seed(0)
    make: Any = AutoModelForCausalLM.from_config
    return make(AutoConfig.for_model(name, **MODELS[name])).eval()


def answers(
    model: Any, engine: str = EAGER, new_tokens: int = NEW
) -> tuple[dict[str, Answer], PassLog]:
    log = PassLog(CPU, BATCH)
    prompt = random_prompt(BATCH, PROMPT, VOCAB, CPU.torch)
    decoder = make_decoder(engine, model, CPU)
    with torch.no_grad():
        decoder.make_ready(prompt, new_tokens)
        loops = make_loops(model, decoder, log, new_tokens)
        return {name: loops[name](prompt, "clean") for name in LOOPS}, log


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("llama", EAGER),
        ("llama", STATIC_CACHE),
        ("mixtral", EAGER),
        ("gpt2", EAGER),
        ("gpt_neox", EAGER),
    ],
)
def test_all_loops_make_the_same_tokens(name: str, engine: str) -> None:
    found, _ = answers(model_of(name), engine)

    assert found[WAITING].ids.shape == (BATCH, NEW)
    assert found[FREE].ids.tolist() == found[WAITING].ids.tolist()
    assert found[GENERATE].ids.tolist() == found[WAITING].ids.tolist()


def test_a_model_s_own_penalty_and_end_change_nothing() -> None:
    plain, _ = answers(model_of("llama"))
    model = model_of("llama")
    own: Any = GenerationConfig
    end = int(plain[FREE].ids[0, 1])
    model.generation_config = own(repetition_penalty=9.0, eos_token_id=end, do_sample=True)

    found, _ = answers(model)

    assert found[GENERATE].ids.tolist() == plain[FREE].ids.tolist()


def test_passes_are_of_the_loop_that_waits_for_each() -> None:
    found, log = answers(model_of("llama"))

    assert [(row[Passes.phase], row[Passes.context_tokens]) for row in log.rows] == [
        ("prefill", 0),
        *(("decode", PROMPT + i) for i in range(NEW - 1)),
    ]
    assert [found[name].prefill_ns for name in LOOPS] == [log.rows[0][Passes.wall_ns], None, None]


def test_an_answer_of_one_token_is_the_prompt_s_alone() -> None:
    found, log = answers(model_of("llama"), new_tokens=1)
    longer, _ = answers(model_of("llama"))

    first = longer[FREE].ids[:, :1].tolist()
    assert [found[name].ids.tolist() for name in LOOPS] == 3 * [first]
    assert [row[Passes.phase] for row in log.rows] == ["prefill"]
