"""How a server wants to be asked: what it refuses is left out once, and remembered."""

import asyncio
from typing import Any

import pytest

from tests.served import Body, serving
from whichwall.collect.endpoint.address import address_of
from whichwall.collect.endpoint.client import Client
from whichwall.collect.endpoint.server import Met, meet
from whichwall.schemas.errors import CollectError, UsageError, WhichwallError

SPECIAL = {"ignore_eos", "min_tokens", "stream_options"}


def met(model: str | None = None, **manners: Any) -> tuple[Met, list[Body]]:
    async def go(url: str) -> Met:
        async with Client(address_of(url), None, 5.0) as client:
            return await meet(client, model, seed=1)

    with serving(**manners) as served:
        return asyncio.run(go(served.url)), served.bodies


def test_a_server_is_asked_for_so_many_tokens_greedily_in_a_stream_that_is_counted() -> None:
    _, (body,) = met()

    assert body.pop("prompt")
    assert body == {
        "model": "toy", "max_tokens": 2, "min_tokens": 2, "ignore_eos": True, "temperature": 0,
        "stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }  # fmt: skip


@pytest.mark.parametrize(
    "refuses",
    [{"ignore_eos"}, {"min_tokens", "ignore_eos"}, {"stream_options"}, {"continuous_usage_stats"}],
)
def test_a_field_that_is_refused_by_name_is_left_out_and_no_other(refuses: set[str]) -> None:
    found, bodies = met(refuses=frozenset(refuses))

    assert set(found.refused) == refuses
    assert len(bodies) == 1 + len(refuses)
    assert SPECIAL - {*bodies[-1]} == refuses - {"continuous_usage_stats"}


def test_a_refusal_that_names_no_field_has_all_of_them_left_out() -> None:
    found, _ = met(statuses=(400,) * 3)

    assert set(found.refused) == {*SPECIAL, "continuous_usage_stats"}
    assert found.prompter.ids is not None


@pytest.mark.parametrize(
    ("manners", "of_ids"),
    [({}, True), ({"vocabulary": 256}, True), ({"takes_ids": False}, False)],
)
def test_prompts_are_ids_where_the_server_takes_them(manners: dict[str, Any], of_ids: bool) -> None:
    found, bodies = met(**manners)

    assert isinstance(bodies[-1]["prompt"], list) is of_ids
    assert (found.prompter.ids is not None) is of_ids
    assert found.refused == []


@pytest.mark.parametrize(
    ("manners", "error", "said"),
    [
        ({"models": ("a", "b")}, UsageError, "serves 2 models; give one of them as --model: a, b"),
        ({"models": ()}, UsageError, "lists no model at /v1/models; name it by --model"),
        ({"key": "sk-1"}, UsageError, "wants another key (status 401, wrong key: nothing)"),
        ({"statuses": (503,)}, CollectError, "takes no request now (status 503, come back later)"),
        ({"statuses": (404,)}, CollectError, "offers no completion of toy at /v1/completions"),
        ({"statuses": (400,) * 9}, CollectError, "refuses every form of a request (status 400"),
        ({"answers_whole": True}, CollectError, "refuses every form of a request (an answer in"),
        ({"dies_after": 0}, CollectError, "did not answer the first request"),
    ],
)
def test_a_server_that_cannot_be_measured_is_told_in_a_line(
    manners: dict[str, Any], error: type[WhichwallError], said: str
) -> None:
    with pytest.raises(error) as refused:
        met(**manners)

    assert said in str(refused.value)


def test_a_model_is_named_or_the_only_one() -> None:
    assert met()[0].served.name == "toy"
    assert met(model="b", models=("a", "b"))[0].served.name == "b"
    assert met(model="alias")[0].served.name == "alias"


def test_what_a_server_says_of_itself_is_kept() -> None:
    found, _ = met(longest=4096, version="1.2")

    assert (found.served.made_by, found.served.longest, found.version) == ("tests", 4096, "1.2")
