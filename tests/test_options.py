import math
from pathlib import Path
from typing import Any

import pytest

from whichwall.collect.options import CollectOptions, command_line, default_out, without_folders
from whichwall.schemas.errors import UsageError

SERVER = {"engine": "openai", "url": "http://localhost:8000"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mode": "train"}, "--mode train: not built; this whichwall has decode, prefill"),
        ({"mode": "batch", "values": "1,two"}, "--values two: expected numbers from 1 on"),
        ({"mode": "batch", "values": "9" * 5000}, "--values 999"),
        ({"mode": "batch", "values": str(2**31)}, "--values 2147483648: expected numbers"),
        ({"mode": "ladder", "values": "sglang"}, "--values sglang: not built; this whichwall has"),
        ({"mode": "output", "values": "long"}, "--values long: expected numbers"),
        ({"mode": "decode", "values": "1"}, "--values: --mode decode varies nothing"),
        ({"mode": "context", "prompt_tokens": 9}, "--prompt-tokens 9: --mode context has no use"),
        ({"mode": "prompt", "prompt_tokens": 9}, "--prompt-tokens 9: --mode prompt has no use"),
        ({"mode": "output", "new_tokens": 9}, "--new-tokens 9: --mode output has no use"),
        ({"mode": "batch", "batch_size": 9}, "--batch-size 9: --mode batch has no use"),
        ({"mode": "ladder", "engine": "compile"}, "--engine compile: --mode ladder has no use"),
        ({"mode": "attention", "attention": "math"}, "--attention math: --mode attention has no"),
        ({"mode": "ceilings", "model": "tiny"}, "--model tiny: --mode ceilings has no use"),
        ({"mode": "clocks", "repeat": 2}, "--repeat 2: --mode clocks has no use"),
        (
            {"mode": "clocks", "work": "matmul", "model": "tiny"},
            "--model tiny: --mode clocks --work matmul has no use for it; leave it out",
        ),
        ({"mode": "batch", "check_roles": True}, "--check-roles goes with --mode decode"),
        ({"mode": "context", "new_tokens": 1}, "--new-tokens 1: must be at least 2"),
        ({"engine": "sglang"}, "--engine sglang: not built; this whichwall has eager"),
        ({"engine": "openai"}, "--engine openai: give the server's --url, as http://HOST:PORT"),
        ({**SERVER, "mode": "ladder", "engine": "openai"}, "--engine openai: --mode ladder has no"),
        ({**SERVER, "mode": "request"}, "--mode request: cannot be asked of a server; --engine"),
        ({**SERVER, "mode": "context"}, "--mode context: cannot be asked of a server; --engine"),
        ({**SERVER, "weights": "hub"}, "--weights hub: --engine openai has no use for it"),
        ({**SERVER, "dtype": "float16"}, "--dtype float16: --engine openai has no use for it"),
        ({**SERVER, "check_roles": True}, "--check-roles: --engine openai has no use for it"),
        ({**SERVER, "timeout_s": 0.0}, "--timeout-s 0: must be above 0 and at most a day"),
        ({**SERVER, "timeout_s": math.nan}, "--timeout-s nan: must be above 0"),
        ({**SERVER, "mode": "batch", "trace_folder": Path("t")}, "--trace-folder goes with --mode"),
        ({**SERVER, "mode": "prefix", "new_tokens": 9}, "--new-tokens 9: --mode prefix has no use"),
        ({"url": "http://u:secret@a"}, "--url: --engine eager has no use for it; leave it out"),
        ({"timeout_s": 9.0}, "--timeout-s 9.0: --engine eager has no use for it"),
        ({"mode": "prefix"}, "--mode prefix: --engine eager keeps no prefix of an earlier request"),
        ({"dtype": "int3"}, "--dtype int3: not built"),
        ({"attention": "magic"}, "--attention magic: not built"),
        ({"new_tokens": 1}, "--new-tokens 1: must be at least 2"),
        ({"batch_size": 0}, "--batch-size 0: must be at least 1"),
        ({"prompt_tokens": 0}, "--prompt-tokens 0: must be at least 1"),
        ({"sample_interval_ms": 0}, "--sample-interval-ms 0: must be at least 1"),
    ],
)
def test_what_cannot_be_is_refused_by_option(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        CollectOptions(**given).check()

    assert str(refused.value).startswith(message)


def test_a_value_that_is_written_in_two_ways_is_asked_for_once() -> None:
    assert CollectOptions(mode="batch", values="8, 08,4,8").asked_values() == ["8", "4"]


def test_a_prefill_needs_no_second_token() -> None:
    CollectOptions(mode="prefill", new_tokens=1).check()


def test_the_command_is_rebuilt_without_folders(tmp_path: Path) -> None:
    model = str(tmp_path / "secret" / "config.json")
    options = CollectOptions(model=model, quick=True, out=tmp_path / "run")

    assert command_line(options, model, "cuda", "bfloat16", 1024) == (
        "whichwall collect --mode decode --model config.json --weights dummy --engine eager "
        "--attention auto --dtype bfloat16 --prompt-tokens 1024 --new-tokens 32 --batch-size 1 "
        "--device cuda --sample-interval-ms 100 --quick"
    )


def test_weights_of_a_folder_name_the_model_themselves(tmp_path: Path) -> None:
    folder = str(tmp_path / "mine")

    assert command_line(CollectOptions(weights=folder), "mine", "cpu", "bfloat16", 1024).startswith(
        "whichwall collect --mode decode --weights mine --engine eager"
    )
    with pytest.raises(UsageError, match="both name a model"):
        CollectOptions(model="tiny", weights=folder).check()


def test_a_hub_id_is_no_path() -> None:
    assert without_folders("Qwen/Qwen2.5-0.5B") == "Qwen/Qwen2.5-0.5B"


def test_a_run_is_named_from_mode_model_device_and_time() -> None:
    out = default_out("decode", "Qwen/Qwen2.5-0.5B", "NVIDIA H200", "20261129T120000Z")

    assert out == Path("traces/decode-qwen2.5-0.5b-nvidia-h200-20261129T120000Z")
