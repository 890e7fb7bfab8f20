"""Prompts: as long as stated, each of its own, and beginning as told."""

import asyncio

import pytest

from whichwall.collect.endpoint.prompts import ID_RANGES, Prompter


def test_ids_are_as_many_as_asked_and_no_two_prompts_are_alike() -> None:
    prompter = Prompter(1)
    first, second = prompter.prompt(64), prompter.prompt(64)

    assert len(first) == len(second) == 64
    assert first != second
    assert set(first) <= {*ID_RANGES[0]}


@pytest.mark.parametrize("ids", [*ID_RANGES, None])
def test_a_prompt_begins_with_its_prefix_and_has_an_end_of_its_own(ids: range | None) -> None:
    prompter = Prompter(1, ids)
    prefix = prompter.prompt(32)
    first, second = (prompter.prompt(40, prefix) for _ in range(2))

    assert first[: len(prefix)] == second[: len(prefix)] == prefix
    assert first != second


def test_two_runs_ask_for_nothing_alike() -> None:
    assert Prompter(1).prompt(16) != Prompter(2).prompt(16)


def test_words_are_fitted_to_the_number_of_tokens_that_the_server_counts() -> None:
    async def count(text: str) -> int:
        return 1 + round(1.4 * len(text.split()))

    prompter = Prompter(1, None)
    found = asyncio.run(prompter.fit(100, count))

    assert found is not None
    assert abs(found - 100) <= 1
    assert abs(1 + round(1.4 * len(str(prompter.prompt(100)).split())) - 100) <= 1


def test_without_a_count_a_word_is_taken_for_a_token() -> None:
    async def count(_: str) -> None:
        return None

    prompter = Prompter(1, None)

    assert asyncio.run(prompter.fit(50, count)) is None
    assert len(str(prompter.prompt(50)).split()) == 50
