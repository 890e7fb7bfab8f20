"""Shared prefixes inside an engine: rounds in their order, rows, and what the cache had."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.served_runs import clean, rows
from tests.vllm_fake import faked
from whichwall.analyze.analysis import analyze_to_folder
from whichwall.analyze.validate import validate
from whichwall.collect.collect import collect
from whichwall.collect.options import CollectOptions
from whichwall.collect.prefix_rounds import FOLLOWING, KINDS, round_of
from whichwall.schemas.completions import Completions
from whichwall.schemas.manifest import read_manifest
from whichwall.schemas.points import FIRST, LATER, UNIQUE, Points


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with faked(monkeypatch) as module:
        yield module


def test_each_round_has_one_first_and_as_many_later_as_unique_prompts() -> None:
    for number in range(2):
        asked = list(round_of(number))

        assert Counter(asked) == {FIRST: 1, LATER: FOLLOWING, UNIQUE: FOLLOWING}
        assert asked.index(FIRST) < asked.index(LATER)


def test_odd_rounds_begin_with_a_unique_prompt_and_even_ones_end_with_one() -> None:
    assert [next(round_of(number)) for number in range(2)] == [FIRST, UNIQUE]
    assert [list(round_of(number))[-1] for number in range(2)] == [UNIQUE, LATER]


def test_a_run_of_an_engine_is_answered_as_one_of_a_server(fake: Any, tmp_path: Path) -> None:
    run = collect(
        CollectOptions(
            mode="prefix", engine="vllm", model="tiny", device="cpu", prompt_tokens=32, quick=True,
            out=tmp_path / "run",
        )
    )  # fmt: skip

    assert [row[Points.label] for row in rows(run, Points)] == [*KINDS]
    counted = Counter(row[Completions.point] for row in clean(run))
    assert counted == {0: 2 * FOLLOWING, 1: 2, 2: 2 * FOLLOWING}
    assert {row[Completions.prompt_tokens] for row in clean(run)} == {48}
    engine = read_manifest(run).engine
    assert engine is not None
    assert engine.name == "vllm"
    assert validate(run).is_whole
    summary = analyze_to_folder(run)[0].summary
    assert summary.prefix is not None
    assert (summary.prefix.rounds, summary.prefix.prefix_tokens) == (2, 32)
    assert (summary.prefix.cached_tokens_first, summary.prefix.cached_tokens_later) == (0, 32)
    assert "32 tokens of a later prompt came from the cache" in (summary.answer or "")
