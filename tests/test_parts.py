"""Parts of small models of several architectures, timed on the CPU."""

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from tests.test_role_ranges import HIDDEN, INNER, KEYS, MODELS, QUERIES, SHARED, VOCAB
from whichwall.collect import parts
from whichwall.collect.device import Device, choose_device
from whichwall.collect.engines.make import make_decoder
from whichwall.collect.options import EAGER, STATIC_CACHE
from whichwall.collect.part_calls import Call
from whichwall.collect.parts import catch_calls, measure_parts
from whichwall.collect.passes import PassLog
from whichwall.collect.workload import Workload, random_prompt
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.parts import (
    ATTENTION,
    EMBEDDING,
    HEAD,
    MLP,
    NORM,
    PARTS,
    SAMPLING,
    Parts,
)
from whichwall.schemas.passes import DECODE, PREFILL

CPU = choose_device("cpu")
GPU = Device(torch.device("cuda"), "a card that only seems to be there")
BATCH, PROMPT, LAYERS = 2, 8, 2
SLIDING = "mistral"
MORE: dict[str, dict[str, Any]] = {
    SLIDING: {**SHARED, "sliding_window": PROMPT // 2},
    # A state space beside attention: its matrices are called as an MLP's are.
    "falcon_h1": {**SHARED, "mamba_d_ssm": HIDDEN, "mamba_n_heads": 4, "mamba_d_head": 12},
    # A convolution in place of attention in the first layer.
    "lfm2": {**SHARED, "layer_types": ["conv", "full_attention"]},
}


def model_of(name: str) -> Any:
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **(MODELS | MORE)[name])
    make: Any = AutoModelForCausalLM.from_config
    return make(config).eval()


def workload(model: Any, engine: str = EAGER, new_tokens: int = 4) -> Workload:
    prompt = random_prompt(BATCH, PROMPT, VOCAB, CPU.torch)
    decoder = make_decoder(engine, model, CPU)
    with torch.no_grad():
        decoder.make_ready(prompt, new_tokens)
    return Workload(decoder, PassLog(CPU, BATCH), prompt, new_tokens)


def measured(work: Workload) -> list[dict[str, object]]:
    with torch.no_grad():
        rows, said = measure_parts(work, CPU, 0.0)
    assert said == []
    return rows


def calls(rows: list[dict[str, object]]) -> dict[object, object]:
    return {row[Parts.part]: row[Parts.calls] for row in rows}


@pytest.mark.parametrize(
    ("name", "norms", "others"),
    [
        ("llama", 2, {}),
        ("phi3", 2, {}),  # one matrix for queries, keys and values, one for both halves of the MLP
        ("gemma2", 4, {}),  # norms after attention and MLP too
        ("mixtral", 2, {}),
        ("qwen3_moe", 2, {}),  # norms in attention are attention's
        ("deepseek_v2", 2, {}),  # one dense layer, one of experts
        ("gpt2", 2, {EMBEDDING: 2}),  # of places too
        ("gpt_neox", 2, {}),  # attention and MLP side by side
        ("falcon", 1, {}),
        ("opt", 2, {EMBEDDING: 2, MLP: 3 * LAYERS}),  # no module around the MLP
        ("falcon_h1", 2, {}),
    ],
)
def test_a_pass_calls_each_part_as_often_as_the_architecture_says(
    name: str, norms: int, others: dict[str, int]
) -> None:
    assert calls(measured(workload(model_of(name)))) == {
        EMBEDDING: 1,
        NORM: norms * LAYERS + 1,
        ATTENTION: LAYERS,
        MLP: LAYERS,
        HEAD: 1,
        SAMPLING: 1,
        **others,
    }


def test_of_a_layer_without_attention_only_norms_are_recognised() -> None:
    assert calls(measured(workload(model_of("lfm2")))) == {
        EMBEDDING: 1,
        NORM: 2 * LAYERS + 1,
        ATTENTION: LAYERS - 1,
        MLP: LAYERS - 1,
        HEAD: 1,
        SAMPLING: 1,
    }


def weights(rows: list[dict[str, object]]) -> dict[object, object]:
    return {row[Parts.part]: row[Parts.parameters] for row in rows}


def test_a_call_reads_its_weights_and_of_an_embedding_one_row_a_token() -> None:
    found = weights(measured(workload(model_of("llama"))))

    assert found == {
        EMBEDDING: BATCH * HIDDEN,
        NORM: HIDDEN,
        ATTENTION: 2 * HIDDEN * QUERIES + 2 * HIDDEN * KEYS,
        MLP: 3 * HIDDEN * INNER,
        HEAD: HIDDEN * VOCAB,
        SAMPLING: 0,
    }


def test_how_many_weights_experts_read_is_not_known() -> None:
    assert weights(measured(workload(model_of("mixtral"))))[MLP] is None


@pytest.mark.parametrize("engine", [EAGER, STATIC_CACHE])
@pytest.mark.parametrize(("new_tokens", "phase"), [(4, DECODE), (1, PREFILL)])
def test_rows_are_of_the_phase_that_the_run_is_of(engine: str, new_tokens: int, phase: str) -> None:
    rows = measured(workload(model_of("llama"), engine, new_tokens))

    assert {row[Parts.phase] for row in rows} == {phase}
    assert {row[Parts.gpu_ns] for row in rows} == {None}  # of a CPU
    assert [row[Parts.part] for row in rows] == list(PARTS)


@pytest.mark.parametrize("new_tokens", [4, 1])
@pytest.mark.parametrize(
    ("name", "engine"),
    [("llama", EAGER), ("llama", STATIC_CACHE), ("gemma2", EAGER), (SLIDING, EAGER)],
)
def test_attention_works_at_the_same_context_however_often_it_is_called(
    name: str, engine: str, new_tokens: int
) -> None:
    work = workload(model_of(name), engine, new_tokens)
    outputs = []
    with torch.no_grad():
        caught = catch_calls(work)
        for _ in range(3):
            caught.restore_caches()
            outputs.append([attended(call) for call in caught.of(ATTENTION)])

    torch.testing.assert_close(outputs[1:], 2 * outputs[:1], rtol=0, atol=0)


def attended(call: Call) -> torch.Tensor:
    output = call.run()
    assert isinstance(output, tuple)
    found: torch.Tensor = output[0]
    return found


def test_a_part_that_cannot_be_called_again_is_left_out_and_said() -> None:
    model = model_of("llama")
    mlp = model.model.layers[0].mlp
    forward, served = mlp.forward, []

    def once(hidden: torch.Tensor) -> torch.Tensor:
        served.append(hidden)
        if len(served) > 2:  # the prompt and a step
            raise RuntimeError("the state is used up")
        found: torch.Tensor = forward(hidden)
        return found

    mlp.forward = once
    with torch.no_grad():
        rows, said = measure_parts(workload(model), CPU, 0.0)

    assert [row[Parts.part] for row in rows] == [part for part in PARTS if part != MLP]
    assert said == [
        Diagnostic(
            "part_not_timed",
            "warning",
            None,
            "mlp cannot be timed on its own (the state is used up); its row is left out",
        )
    ]


def test_nothing_of_the_catching_stays_on_the_model() -> None:
    model = model_of("llama")
    measured(workload(model))

    hooked = [m for m in model.modules() if m._forward_hooks or m._forward_pre_hooks]
    assert hooked == []


def test_a_gpu_is_held_before_each_span_so_that_launches_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    class Event:
        def record(self) -> None:
            seen.append("event")

        def elapsed_time(self, _: object) -> float:
            return 1.0  # ms

    monkeypatch.setattr(parts, "gpu_event", Event)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda _: seen.append("hold"))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: seen.append("wait"))
    with torch.no_grad():
        rows, _ = measure_parts(workload(model_of("llama")), GPU, 0.0)

    # A round fits into one span; its 1 ms is shared by the calls.
    assert {row[Parts.part]: row[Parts.gpu_ns] for row in rows} == {
        EMBEDDING: 1_000_000,
        NORM: 200_000,
        ATTENTION: 500_000,
        MLP: 500_000,
        HEAD: 1_000_000,
        SAMPLING: 1_000_000,
    }
    begins = [i for i, what in enumerate(seen) if seen[i : i + 3] == ["event", "event", "wait"]]
    assert len(begins) == len(PARTS) * parts.LEAST_ROUNDS
    assert {seen[i - 1] for i in begins} == {"hold"}
