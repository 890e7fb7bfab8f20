"""Floors: the least time of a pass, and the ceilings it rests on."""

import polars as pl
import pytest

from tests.frames import Row, table
from whichwall.analyze.floor import (
    Ceiling,
    Totals,
    achieved,
    ceilings_for,
    floor,
    floor_of_pass,
    sheet_ceiling,
)
from whichwall.analyze.operations import Operation
from whichwall.schemas import roles
from whichwall.schemas.ceilings import Ceilings
from whichwall.schemas.errors import InputError
from whichwall.schemas.hardware import named_gpu
from whichwall.schemas.manifest import Gpu
from whichwall.schemas.model import Model, model_from_config
from whichwall.schemas.presets import preset_model
from whichwall.schemas.summary import Floor

SMALL: dict[str, object] = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}


def measured(*rows: Row) -> pl.DataFrame:
    """Return a ceilings frame; what a row leaves out is what no test looks at."""
    base: Row = {"rank": 0, "gpu_uuid": "GPU-a", "unit": "GB/s", "start_ns": 1}
    return table(Ceilings, *(base | row for row in rows))


def small_model(**changes: object) -> Model:
    """Return two layers of a Llama with round dimensions."""
    fields = {**SMALL, "num_hidden_layers": 2, "model_type": "llama", **changes}
    return model_from_config(fields, "small")


def test_the_floor_adds_the_larger_time_of_each_operation() -> None:
    found = [
        Operation("reads", roles.LM_HEAD, 1000, 500, 2),
        Operation("computes", roles.ATTENTION, 900_000, 10, 3),
    ]

    assert floor(found, 10.0, 3.0) == Totals(
        floor_ns=2 * 50 + 3 * 300,
        bytes_ns=103,
        arithmetic_ns=901,
        bytes=1030,
        flops=2_702_000,
    )


def test_an_unknown_ceiling_leaves_its_floor_unknown() -> None:
    found = [Operation("reads", roles.LM_HEAD, 1000, 500, 2)]

    assert floor(found, 10.0, None) == Totals(100, 100, None, 1000, 2000)
    assert floor(found, None, 1.0) == Totals(None, None, 2, 1000, 2000)
    assert floor([], 10.0, 1.0) == Totals(0, 0, 0, 0, 0)


def test_a_pass_on_an_h200_has_the_floor_of_its_weights_and_its_cache() -> None:
    ceiling = Ceiling(4189.0, "measured", 748.0, "measured", 50 * 1024**2)

    found = floor_of_pass(
        preset_model("qwen2.5-0.5b"), "decode", 3, 1, 1, 1024, ceiling, dtype="bfloat16"
    )

    assert found == Floor(
        phase="decode",
        point=3,
        batch=1,
        tokens=1,
        context_tokens=1024,
        floor_ns=238_879,
        bytes_ns=238_879,
        arithmetic_ns=1_439,
        bytes=2 * 494_032_768 + 2 * 896 + 1025 * 12_288,
        flops=1_076_088_832,
        bandwidth_gbps=4189.0,
        bandwidth_from="measured",
        tflops=748.0,
        tflops_from="measured",
        cached_weights=False,
    )


def test_an_8b_model_crosses_from_bytes_to_arithmetic_at_281_sequences_on_a_b200() -> None:
    ceiling = sheet_ceiling(named_gpu("B200"), "bfloat16")

    def computes_longer(batch: int) -> bool:
        found = floor_of_pass(
            preset_model("llama-3.1-8b"), "decode", 0, batch, 1, 0, ceiling, dtype="bfloat16"
        )
        assert found.arithmetic_ns is not None
        assert found.bytes_ns is not None
        return found.arithmetic_ns > found.bytes_ns

    assert (computes_longer(281), computes_longer(282)) == (False, True)


def test_small_weights_are_said_to_lie_in_the_cache() -> None:
    ceiling = Ceiling(4000.0, "measured", l2_bytes=50 * 1024**2)

    def cached(name: str, of: Ceiling) -> bool:
        return floor_of_pass(
            preset_model(name), "decode", 0, 1, 1, 0, of, dtype="bfloat16"
        ).cached_weights

    assert cached("tiny", ceiling)
    assert not cached("gpt2", ceiling)
    assert not cached("tiny", Ceiling(4000.0, "measured"))


def test_a_model_whose_weight_bytes_are_not_known_has_no_floor() -> None:
    ceiling = Ceiling(1000.0, "measured")
    quantized = small_model(
        dtype="float16", quantization_config={"quant_method": "gptq", "bits": 4}
    )

    with pytest.raises(InputError, match="state a dtype"):
        floor_of_pass(small_model(), "decode", 0, 1, 1, 0, ceiling)
    with pytest.raises(InputError, match="weights are quantized \\(gptq\\)"):
        floor_of_pass(quantized, "decode", 0, 1, 1, 0, ceiling, dtype="float16")
    assert floor_of_pass(small_model(dtype="float16"), "decode", 0, 1, 1, 0, ceiling).bytes > 0


def test_bandwidth_is_the_larger_of_read_and_copy_and_the_rate_that_of_the_type() -> None:
    rows = measured(
        {"name": "read", "value": 4095.0},
        {"name": "copy", "value": 4189.0},
        {"name": "matmul", "value": 748.0, "unit": "TFLOP/s", "dtype": "bfloat16"},
        {"name": "matmul", "value": 679.0, "unit": "TFLOP/s", "dtype": "bfloat16"},
        {"name": "matmul", "value": 1400.0, "unit": "TFLOP/s", "dtype": "float8_e4m3fn"},
        {"name": "eager_op", "value": 10.0, "unit": "us"},
    )
    gpu = Gpu("NVIDIA H200", uuid="GPU-a", l2_cache_bytes=62_914_560)

    assert ceilings_for(rows, gpu, "torch.bfloat16") == Ceiling(
        4189.0, "measured", 748.0, "measured", 62_914_560
    )


def test_a_datasheet_stands_in_for_what_was_not_measured() -> None:
    gpu = Gpu("NVIDIA H200", uuid="GPU-a")

    assert ceilings_for(measured(), gpu, "bfloat16") == Ceiling(
        4800, "datasheet", 989, "datasheet", 60 * 1024**2
    )
    only_read = measured({"name": "read", "value": 4000.0})
    assert ceilings_for(only_read, gpu, "float16") == Ceiling(
        4000.0, "measured", 989, "datasheet", 60 * 1024**2
    )


def test_another_device_s_ceilings_are_not_borrowed() -> None:
    rows = measured({"name": "read", "value": 4000.0, "gpu_uuid": "GPU-b"})

    assert ceilings_for(rows, Gpu("Unheard Of", uuid="GPU-a"), "float16") == Ceiling()


def test_a_run_that_measured_one_device_needs_no_identity_for_it() -> None:
    rows = measured({"name": "read", "value": 20.0, "gpu_uuid": None})

    assert ceilings_for(rows, None, "float32") == Ceiling(20.0, "measured")
    assert ceilings_for(rows, Gpu("Unheard Of"), None) == Ceiling(20.0, "measured")


def test_the_last_cache_is_the_larger_of_what_driver_and_sheet_know() -> None:
    gpu = Gpu("AMD Instinct MI300X", l2_cache_bytes=4 * 1024**2)

    assert ceilings_for(measured(), gpu, "float16").l2_bytes == 256 * 1024**2


def test_a_slice_of_a_gpu_has_no_datasheet() -> None:
    assert ceilings_for(measured(), Gpu("NVIDIA H200", mig=True), "bfloat16") == Ceiling()


def test_achieved_rates_are_the_floor_s_totals_over_the_time_it_took() -> None:
    of = floor_of_pass(
        preset_model("qwen2.5-0.5b"), "decode", 0, 1, 1, 0, Ceiling(), dtype="bfloat16"
    )

    assert achieved(of, 988_079_616) == (1.0, of.flops / 988_079_616 / 1000)
    assert achieved(of, 0) == (None, None)
    assert achieved(of, None) == (None, None)
