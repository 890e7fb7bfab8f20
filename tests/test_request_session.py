"""Whole request runs of the smallest model on the CPU, with and without a tokenizer."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from whichwall.collect.collect import collect
from whichwall.collect.models import Source
from whichwall.collect.options import CollectOptions
from whichwall.collect.text import load_text
from whichwall.schemas.folder import file_name
from whichwall.schemas.manifest import FILE, read_manifest
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import Points
from whichwall.schemas.presets import preset
from whichwall.schemas.requests import LOOPS, Requests
from whichwall.schemas.table import Table

BATCH, PROMPT, NEW = 2, 16, 4
# Both directions of a quick run.
ORDER = [*((0, loop) for loop in LOOPS), *((1, loop) for loop in reversed(LOOPS))]


def collected(out: Path, weights: str | None = None) -> Path:
    named: dict[str, Any] = {"model": "tiny"} if weights is None else {"weights": weights}
    asked = CollectOptions(
        mode="request", device="cpu", prompt_tokens=PROMPT, new_tokens=NEW, batch_size=BATCH,
        quick=True, out=out, **named,
    )  # fmt: skip
    return collect(asked)


def rows(run: Path, table: type[Table]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(run / file_name(table)).to_pylist()
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Collect one run of random ids for all tests that look at one."""
    return collected(tmp_path_factory.mktemp("runs") / "request")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder with a model's config, weights and tokenizer: a token a byte."""
    folder = tmp_path_factory.mktemp("weights") / "model"
    torch.manual_seed(0)
    make: Any = AutoModelForCausalLM.from_config
    make(AutoConfig.for_model(**preset("tiny"))).save_pretrained(folder)
    alphabet = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    bytewise = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    fast: Any = PreTrainedTokenizerFast
    fast(tokenizer_object=bytewise).save_pretrained(folder)
    return folder


def test_a_run_holds_requests_and_passes_and_no_trace(run: Path) -> None:
    assert sorted(path.name for path in run.iterdir()) == sorted(
        [FILE, "passes.parquet", "points.parquet", "requests.parquet"]
    )
    assert read_manifest(run).mode == "request"


def test_each_loop_is_a_point(run: Path) -> None:
    found = [
        (row[Points.point], row[Points.label], row[Points.outcome]) for row in rows(run, Points)
    ]

    assert found == [(0, "waiting", "done"), (1, "free", "done"), (2, "generate", "done")]


def test_rounds_go_through_the_loops_forwards_and_then_backwards(run: Path) -> None:
    found = rows(run, Requests)

    assert [(row[Requests.visit], row[Requests.loop]) for row in found] == ORDER
    assert [row[Requests.point] for row in found] == [LOOPS.index(loop) for _, loop in ORDER]
    assert {(row[Requests.prompt_tokens], row[Requests.new_tokens]) for row in found} == {
        (PROMPT, NEW)
    }


def test_all_requests_made_the_same_tokens(run: Path) -> None:
    (digest,) = {row[Requests.tokens_sha256] for row in rows(run, Requests)}

    assert len(digest) == 64


def test_passes_are_of_the_waiting_loop_with_its_visits(run: Path) -> None:
    found = [(row[Passes.point], row[Passes.stage], row[Passes.visit]) for row in rows(run, Passes)]

    assert found == [
        *NEW * [(0, "warmup", None)],
        *NEW * [(0, "clean", 0)],
        *NEW * [(0, "clean", 1)],
    ]


def test_without_a_tokenizer_text_stages_are_null(run: Path) -> None:
    text = {(row[Requests.tokenize_ns], row[Requests.detokenize_ns]) for row in rows(run, Requests)}

    assert text == {(None, None)}


def test_with_a_tokenizer_every_request_goes_from_text_to_text(
    weights: Path, tmp_path: Path
) -> None:
    found = rows(collected(tmp_path / "run", str(weights)), Requests)

    assert [(row[Requests.visit], row[Requests.loop]) for row in found] == ORDER
    assert {row[Requests.prompt_tokens] for row in found} == {PROMPT}
    assert all(row[Requests.tokenize_ns] > 0 for row in found)
    assert all(row[Requests.detokenize_ns] > 0 for row in found)


def test_text_is_cut_to_the_tokens_asked_for(weights: Path) -> None:
    text = load_text(Source("model", None, "local", str(weights)), batch=2, length=100, vocab=256)

    assert text is not None
    ids = text.encode()
    assert ids.shape == (2, 100)
    assert text.decode(ids[:, :16]) == 2 * ["A language model"]


@pytest.mark.parametrize("kind", ["qwen2", "llama"])
def test_a_folder_without_a_tokenizer_has_no_text(tmp_path: Path, kind: str) -> None:
    # For one of them transformers makes a tokenizer that knows no word.
    AutoConfig.for_model(**{**preset("tiny"), "model_type": kind}).save_pretrained(tmp_path)

    assert no_text(tmp_path)


def test_a_tokenizer_with_more_tokens_than_the_model_makes_no_text(weights: Path) -> None:
    assert no_text(weights, vocab=80)


def test_a_tokenizer_that_only_begins_a_text_makes_none(tmp_path: Path, weights: Path) -> None:
    folder = shutil.copytree(weights, tmp_path / "model")
    speechless = Tokenizer(models.BPE(vocab={"<s>": 0}, merges=[]))
    begin: Any = processors.TemplateProcessing
    speechless.post_processor = begin(single="<s> $A", special_tokens=[("<s>", 0)])
    speechless.save(str(folder / "tokenizer.json"))

    assert no_text(folder)


def no_text(folder: Path, vocab: int = 256) -> bool:
    source = Source("model", None, "local", str(folder))
    return load_text(source, batch=1, length=8, vocab=vocab) is None
