"""Predictions: what the articles say on paper, from the same shapes and the same two numbers."""

import math
from dataclasses import replace

import pytest

from tests.experiment_runs import limit
from tests.frames import table
from whichwall.analyze.floor import Ceiling, floor_of_pass
from whichwall.analyze.operations import Operation
from whichwall.analyze.predict import (
    crossover,
    pass_operations,
    predict,
    predicted_pass,
    timed,
)
from whichwall.analyze.predict_limits import Card, card_named
from whichwall.analyze.predict_setting import Options, Setting, setting
from whichwall.schemas import roles
from whichwall.schemas.ceilings import MATMUL, Ceilings
from whichwall.schemas.hardware import named_gpu
from whichwall.schemas.passes import DECODE, PREFILL
from whichwall.schemas.precision import precision
from whichwall.schemas.prediction import GIVEN, Limits
from whichwall.schemas.presets import PRESETS, preset_model

# The lab prints its measured read with one decimal, and computes with all of them.
LAB_GBPS, LAB_HALF_DIGIT = 273.7, 0.05
LAB_CONTEXTS = (128, 512, 1024, 2048, 4096, 8192)
LAB_PREDICTED_MS = {
    "qwen2.5-0.5b": (3.62, 3.63, 3.66, 3.70, 3.79, 3.98),
    "qwen2.5-1.5b": (11.30, 11.34, 11.39, 11.50, 11.71, 12.14),
}
H200_PAPER = {"gpu": "H200"}


def asked(model: str, **more: object) -> Setting:
    """Return a setting on an H200's datasheet, unless another card is named."""
    card = {} if {"gpu", "bandwidth_gbs"} & set(more) else H200_PAPER
    return setting(Options(model=model, **card, **more))  # type: ignore[arg-type]


def lab(model: str, context: int, gbps: float = LAB_GBPS) -> float:
    """Return the milliseconds of a decode step at the lab's bandwidth."""
    found = asked(model, bandwidth_gbs=gbps, context=context, dtype="fp16")
    return predicted_pass(found, DECODE).step_ns / 1e6


@pytest.mark.parametrize(("model", "ms"), [("qwen2.5-0.5b", 3.66), ("qwen2.5-1.5b", 11.39)])
def test_the_lab_s_floors_follow_from_its_measured_read(model: str, ms: float) -> None:
    assert round(lab(model, 1024), 2) == ms


@pytest.mark.parametrize("model", LAB_PREDICTED_MS)
def test_the_lab_s_predicted_column_follows_from_its_printed_read(model: str) -> None:
    # Half of the last digit of both what it divides by and what it prints.
    slack = 0.005 + 12.14 * LAB_HALF_DIGIT / LAB_GBPS

    for context, ms in zip(LAB_CONTEXTS, LAB_PREDICTED_MS[model], strict=True):
        assert lab(model, context) == pytest.approx(ms, abs=slack)


def test_one_read_that_prints_as_the_lab_s_gives_its_whole_column_to_the_last_digit() -> None:
    read = 273.66
    found = {
        model: tuple(round(lab(model, context, read), 2) for context in LAB_CONTEXTS)
        for model in LAB_PREDICTED_MS
    }

    assert (round(read, 1), found) == (LAB_GBPS, LAB_PREDICTED_MS)


def test_the_lab_s_intensities_follow_from_weights_cache_and_the_logits_of_all_rows() -> None:
    found = asked("qwen2.5-0.5b", logits="all", dtype="fp16")

    def intensity(phase: str) -> float:
        # The lab counts weights and cache; the few rows of the token table it leaves out.
        rows = [one for one in pass_operations(found, phase) if one.name != "embed_tokens"]
        return sum(o.flops * o.count for o in rows) / sum(o.bytes * o.count for o in rows)

    assert (round(intensity(DECODE), 1), round(intensity(PREFILL))) == (1.1, 1056)


def test_the_flops_are_the_lab_s_own_formula() -> None:
    found = asked("qwen2.5-0.5b", logits="all", dtype="fp16")
    hidden, inner, layers, vocab, queries, keys = 896, 4864, 24, 151936, 14 * 64, 2 * 64
    matrices = layers * (hidden * (hidden + 2 * keys + hidden) + 3 * hidden * inner)

    def flops(tokens: int, context: int) -> int:
        seen = context * tokens + tokens * (tokens + 1) // 2
        return 2 * tokens * (matrices + hidden * vocab) + 4 * layers * queries * seen

    counted = [predicted_pass(found, phase).flops for phase in (PREFILL, DECODE)]
    assert counted == [flops(1024, 0), flops(1, 1024)]


def test_the_article_s_vector_addition_is_bound_by_memory_on_a_b200() -> None:
    kept = precision("bf16")
    limits = card_named("B200").limits(kept, kept)

    found = timed(Operation("add", roles.RESIDUAL, 10**9, 6 * 10**9, 1), limits)

    assert found.memory_ns == 750_000
    assert found.arithmetic_ns == pytest.approx(440, rel=0.02)
    assert (found.binds, found.intensity) == ("bytes", 1 / 6)


def test_the_article_s_card_balances_at_about_280_flops_a_byte() -> None:
    kept = precision("bf16")
    balance = card_named("B200").limits(kept, kept).balance

    assert balance == pytest.approx(280, rel=0.01)


@pytest.mark.parametrize("name", PRESETS)
def test_a_prediction_is_the_floor_that_analyze_measures_against(name: str) -> None:
    found = asked(name, batch=4, context=500)
    limits = found.limits
    ceiling = Ceiling(limits.bandwidth_gbps, GIVEN, limits.tflops, GIVEN)

    floor = floor_of_pass(preset_model(name), DECODE, 0, 4, 1, 500, ceiling, dtype="bfloat16")
    step = predicted_pass(found, DECODE)

    assert (step.step_ns, step.bytes_ns, step.arithmetic_ns, step.bytes, step.flops) == (
        floor.floor_ns, floor.bytes_ns, floor.arithmetic_ns, floor.bytes, floor.flops,
    )  # fmt: skip


def test_the_step_is_the_sum_of_the_longer_times_of_its_operations() -> None:
    found = predicted_pass(asked("qwen2.5-7b", batch=300), DECODE)

    longer = sum(max(row.memory_ns, row.arithmetic_ns or 0) for row in found.operations)

    assert {row.binds for row in found.operations} == {"bytes", "arithmetic"}
    assert found.step_ns == round(longer)
    assert found.step_ns > max(found.bytes_ns, found.arithmetic_ns or 0)


def test_rates_are_of_what_a_pass_generates_or_is_fed() -> None:
    found = asked("llama-3.2-1b", batch=8, prompt_tokens=100)
    decode, prefill = (predicted_pass(found, phase) for phase in (DECODE, PREFILL))

    assert decode.tokens_per_s == pytest.approx(8e9 / decode.step_ns)
    assert decode.tokens_per_s_each == pytest.approx(1e9 / decode.step_ns)
    assert prefill.tokens_per_s == pytest.approx(800e9 / prefill.step_ns)


def test_dense_weights_stop_binding_at_the_card_s_balance() -> None:
    assert crossover(asked("llama-3.1-8b", gpu="B200")).weights == math.ceil(281.25)


@pytest.mark.parametrize(("context", "batch"), [(0, 282), (300, 1038), (420, None)])
def test_a_step_with_a_long_cache_never_crosses(context: int, batch: int | None) -> None:
    found = asked("llama-3.1-8b", gpu="B200", context=context, phase=DECODE)

    assert crossover(found).step == batch


@pytest.mark.parametrize("name", ["tiny", "gpt2", "gemma-2-2b", "mixtral-8x7b"])
def test_the_crossover_is_the_first_batch_that_trying_all_finds(name: str) -> None:
    found = asked(name, bandwidth_gbs=1000.0, tflops=20.0, context=3)

    def binds(batch: int) -> bool:
        rows = pass_operations(replace(found, batch=batch), DECODE)
        mine = [o for o in rows if o.flops and o.role != roles.ATTENTION]
        return sum(o.bytes * o.count for o in mine) / 1000 > (
            sum(o.flops * o.count for o in mine) / 20_000
        )

    first = next(batch for batch in range(1, 1000) if not binds(batch))

    assert crossover(found).weights == first


def test_without_a_rate_there_are_bytes_and_no_crossover() -> None:
    found = predict(asked("qwen2.5-0.5b", bandwidth_gbs=300.0))
    step = found.passes[1]

    assert (found.crossover.weights, found.crossover.step, found.crossover.balance) == (None,) * 3
    assert (step.arithmetic_ns, step.binds, step.step_ns) == (None, None, step.bytes_ns)


@pytest.mark.parametrize(("dtype", "bits"), [("fp8", 8), ("int8", 8), ("int4", 4), ("fp4", 4)])
def test_quantized_layers_read_fewer_bytes_and_head_and_norms_do_not(dtype: str, bits: int) -> None:
    wide = {one.name: one.bytes for one in pass_operations(asked("qwen3-8b"), DECODE)}
    narrow = {
        one.name: one.bytes for one in pass_operations(asked("qwen3-8b", dtype=dtype), DECODE)
    }
    layers = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

    assert narrow == {k: v * bits // 16 if k in layers else v for k, v in wide.items()}


def test_a_type_that_no_unit_multiplies_is_computed_in_16_bits() -> None:
    found = {
        (gpu, dtype): asked("qwen3-8b", gpu=gpu, dtype=dtype).limits.tflops_dtype
        for gpu, dtype in [
            ("H200", "int4"), ("H200", "fp8"), ("T4", "int4"), ("A100 SXM 80GB", "fp8"),
        ]
    }  # fmt: skip

    assert list(found.values()) == ["bfloat16", "float8_e4m3fn", "float16", "bfloat16"]


def test_a_narrow_cache_halves_what_attention_reads_and_nothing_else() -> None:
    def read(kv_dtype: str | None) -> dict[str, int]:
        found = pass_operations(asked("llama-3.1-8b", kv_dtype=kv_dtype), DECODE)
        return {one.name: one.bytes for one in found}

    wide, narrow = read(None), read("fp8")

    assert {name for name in wide if wide[name] != narrow[name]} == {"attention", "cache_append"}
    assert narrow["attention"] * 2 == wide["attention"]


def test_the_form_of_latent_attention_is_chosen_and_said() -> None:
    expanded, absorbed = (
        predict(asked("deepseek-v2-lite", latent=form, phase=DECODE))
        for form in ("expanded", "absorbed")
    )

    assert (expanded.latent, absorbed.latent) == ("expanded", "absorbed")
    assert expanded.passes[0].flops > 5 * absorbed.passes[0].flops
    assert expanded.passes[0].bytes == absorbed.passes[0].bytes


def test_a_mixture_says_how_many_experts_it_expects() -> None:
    found = predict(asked("qwen3-30b-a3b", batch=16))

    assert found.passes[1].expected_experts == pytest.approx(82.4, abs=0.05)


def test_the_logits_of_all_rows_are_asked_for() -> None:
    last, every = (
        predicted_pass(asked("gpt2", logits=which, prompt_tokens=10), PREFILL).flops
        for which in ("last", "all")
    )

    assert every - last == 9 * 2 * 768 * 50257


def test_a_context_that_nobody_stated_stays_within_the_learned_positions() -> None:
    assert asked("gpt2").context_tokens == 1023


def test_limits_keep_their_source() -> None:
    sheet = named_gpu("H200")

    assert asked("gpt2").limits == Limits(
        name="H200 SXM", bandwidth_gbps=4800, bandwidth_from="datasheet", tflops=989,
        tflops_from="datasheet", tflops_dtype="bfloat16", memory_bytes=141 * 10**9,
        memory_from="datasheet", l2_bytes=sheet.l2_bytes, source=sheet.source,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("dtypes", "chosen"), [(["float32"], "float32"), (["float32", "float16"], "float16")]
)
def test_where_no_type_is_stated_it_is_one_that_was_measured(
    dtypes: list[str], chosen: str
) -> None:
    limits = [limit(MATMUL, 1.0, "TFLOP/s", dtype) for dtype in dtypes]

    assert Card("a CPU", measured=table(Ceilings, *limits)).wide() == chosen
