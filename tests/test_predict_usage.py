"""`whichwall predict` as people use it: what it prints, and what it says to wrong use."""

from pathlib import Path

import msgspec
import pytest

from tests.conftest import ROOT
from tests.test_layers import imported_after
from tests.test_usage import refused, run
from whichwall.schemas.hardware import SHEETS
from whichwall.schemas.prediction import Prediction

RUN = ROOT / "traces" / "h200-decode-qwen2.5-0.5b"
ON_H200 = ("--model", "qwen2.5-0.5b", "--gpu", "H200")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--model: give a preset"),
        (["--model", "qwen"], "no model preset 'qwen'; did you mean qwen"),
        (["--model", "gone/config.json", "--gpu", "H200"], "gone/config.json"),
        (["--model", "gpt2"], "none is given; give one of --gpu NAME"),
        (["--model", "gpt2", "--gpu", "H20"], "did you mean H200 SXM?"),
        (["--model", "gpt2", "--gpu", "abacus"], "known: T4"),
        ([*ON_H200, "--bandwidth-gbs", "5"], "--gpu and --bandwidth-gbs say it twice"),
        (["--model", "gpt2", "--tflops", "5"], "--tflops: goes with --bandwidth-gbs"),
        (["--model", "gpt2", "--bandwidth-gbs", "nan"], "--bandwidth-gbs nan: expected a number"),
        (["--model", "gpt2", "--bandwidth-gbs", "-1"], "--bandwidth-gbs -1: expected a number"),
        ([*ON_H200, "--memory-gb", "0"], "--memory-gb 0: expected"),
        ([*ON_H200, "--batch", "0"], "--batch"),
        ([*ON_H200, "--context", "-1"], "--context"),
        ([*ON_H200, "--context", "0"], "--prompt-tokens 0: a prefill has at least one token"),
        ([*ON_H200, "--dtype", "int3"], "--dtype int3"),
        ([*ON_H200, "--kv-dtype", "int4"], "--kv-dtype int4: expected a type of whole bytes"),
        ([*ON_H200, "--tensor-parallel", "3"], "--tensor-parallel 3: attention heads"),
        ([*ON_H200, "--latent", "absorbed"], "qwen2.5-0.5b has no latent attention"),
        (["--model", "gpt2", "--gpu", "T4", "--context", "2000"], "1,024 positions"),
        (["--model", "gpt2", "--ceilings", "gone"], "gone"),
        ([*ON_H200, "--contexts", "5"], "--contexts: goes with --chart"),
        ([*ON_H200, "--measured", "x"], "--measured: goes with --chart"),
        ([*ON_H200, "--chart", "x.jpeg"], "--chart x.jpeg: expected a name that ends in .svg"),
        ([*ON_H200, "--chart", "x.svg", "--contexts", "many"], "--contexts many"),
        ([*ON_H200, "--chart", "x.svg", "--contexts", "1,2,3,4,5,6"], "6 curves"),
        ([*ON_H200, "--chart", "gone/x.svg"], "cannot write it"),
    ],
)
def test_wrong_use_is_one_line_that_says_what_to_do(words: list[str], said: str) -> None:
    assert said in refused(run("predict", *words))


def test_the_cards_of_the_table_are_listed_with_their_sources() -> None:
    lines = run("predict", "--gpu", "list").stdout.splitlines()

    assert len(lines) == len(SHEETS)
    assert lines[0].startswith("T4: 16 GB, 320 GB/s, float16 65.0 TFLOP/s")
    assert lines[0].endswith(SHEETS[0].source)


def test_json_is_the_whole_prediction() -> None:
    found = msgspec.json.decode(run("predict", *ON_H200, "--json").stdout, type=Prediction)

    assert [one.phase for one in found.passes] == ["prefill", "decode"]
    assert found.parameters == 494_032_768


def test_what_is_piped_is_plain_and_no_wider_than_a_hundred() -> None:
    text = run("predict", "--model", "qwen3-30b-a3b", "--gpu", "H200", "--batch", "64").stdout

    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_text_says_step_floors_balance_crossover_and_memory() -> None:
    text = run("predict", *ON_H200, "--phase", "decode").stdout

    for said in (
        "step 208 µs = Σ max(T_mem, T_comp)",
        "bytes floor 208 µs (1.00 GB), arithmetic floor 1.09 µs (1.08 GFLOP)",
        "4,797 tokens/s",
        "206 FLOP/byte",
        "stop binding at a batch of 207",
        "weights 988 MB; cache 12.3 kB per token and conversation",
        "launches and the gaps between kernels",
    ):
        assert said in text


def test_an_unknown_link_is_said_and_a_known_one_is_in_the_step() -> None:
    words = ["predict", "--model", "llama-3.1-8b", "--gpu", "H200", "--tensor-parallel", "8"]

    unknown = run(*words).stdout
    known = run(*words, "--link-gbs", "450").stdout

    assert "in a time not known (no rate of the link), so not in the step" in unknown.replace(
        "\n   ", " "
    )
    assert "state --link-gbs" in unknown
    assert "which the step includes" in known.replace("\n   ", " ")


def test_measured_limits_of_a_run_are_used_and_said_to_be() -> None:
    said = run("predict", "--model", "qwen2.5-0.5b", "--ceilings", RUN, "--json").stdout
    found = msgspec.json.decode(said, type=Prediction).limits

    assert (found.name, found.bandwidth_from, found.tflops_from) == (
        "NVIDIA H200", "measured", "measured",
    )  # fmt: skip
    assert 3000 < found.bandwidth_gbps < 4800


def test_a_run_that_measured_nothing_is_named(tmp_path: Path) -> None:
    from tests.frames import MANIFEST
    from whichwall.schemas.folder import RunWriter

    with RunWriter(tmp_path / "bare") as writer:
        writer.finish(MANIFEST)

    line = refused(run("predict", "--model", "gpt2", "--ceilings", tmp_path / "bare"))
    assert "measured no bandwidth" in line


def test_quantized_weights_of_a_config_need_a_stated_width(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "vocab_size": 512,
        "num_hidden_layers": 2, "num_attention_heads": 4,
        "quantization_config": {"quant_method": "awq"},
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_bytes(msgspec.json.encode(config))

    assert "state --dtype" in refused(run("predict", "--model", path, "--gpu", "H200"))
    assert run("predict", "--model", path, "--gpu", "H200", "--dtype", "int4").exit_code == 0


@pytest.mark.parametrize(
    ("name", "begins"), [("a.svg", b"<svg"), ("a.png", b"\x89PNG"), ("a.html", b"<!DOCTYPE html>")]
)
def test_a_chart_is_written_as_its_name_ends(name: str, begins: bytes, tmp_path: Path) -> None:
    path = tmp_path / name

    result = run("predict", *ON_H200, "--chart", path, "--measured", RUN)

    assert result.exit_code == 0, result.output
    assert path.read_bytes().startswith(begins)


def test_points_of_another_model_are_refused(tmp_path: Path) -> None:
    words = ["--model", "gpt2", "--gpu", "H200", "--chart", str(tmp_path / "a.svg")]
    line = refused(run("predict", *words, "--measured", RUN))

    assert "a run of qwen2.5-0.5b, while --model is gpt2" in line


def test_predicting_loads_neither_torch_nor_charts() -> None:
    words = ["predict", *ON_H200]
    called = f"from whichwall.cli import main; main({words!r}, standalone_mode=False)"
    script = (
        "import contextlib, io\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    {called}"
    )

    assert not imported_after(script) & {"torch", "transformers", "altair", "vl_convert"}
