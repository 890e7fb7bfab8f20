"""One request over a real socket: every way in which a stream can go, and what then is said."""

import asyncio
import socket
from typing import Any

import pytest

from tests.served import serving
from whichwall.collect.endpoint import client
from whichwall.collect.endpoint.address import address_of
from whichwall.collect.endpoint.answer import Answer
from whichwall.collect.endpoint.client import Client
from whichwall.collect.endpoint.dialect import Dialect
from whichwall.collect.endpoint.prompts import Prompter

TOKENS = 5


def asked(url: str, timeout_s: float = 30.0, key: str | None = None) -> Answer:
    """Send one request for five tokens."""

    async def ask() -> Answer:
        async with Client(address_of(url), key, timeout_s) as client:
            dialect = Dialect(client, "toy", Prompter(1))
            return await dialect.ask(dialect.prompter.prompt(7), TOKENS)

    return asyncio.run(ask())


def answer_of(timeout_s: float = 30.0, **manners: Any) -> Answer:
    with serving(**manners) as served:
        return asked(served.url, timeout_s)


def counts(answer: Answer) -> list[int | None]:
    return [tokens for _, tokens in answer.arrivals]


def test_an_answer_has_a_time_for_each_of_its_tokens() -> None:
    answer = answer_of(usage="running")

    assert answer.outcome == "done"
    assert counts(answer) == [1] * TOKENS
    times = [at for at, _ in answer.arrivals]
    assert times == sorted(times)
    assert 0 < times[0] <= times[-1] <= answer.total_ns
    assert (answer.counts.prompt, answer.counts.new, answer.finish) == (7, TOKENS, "length")


@pytest.mark.parametrize(
    ("manners", "tokens"),
    [
        ({"line_end": b"\r\n", "comments": True}, [1] * TOKENS),
        ({"line_end": b"\r", "cut": 1}, [1] * TOKENS),
        ({"text": " ✓é😀", "cut": 3}, [1] * TOKENS),
        ({"tokens_a_chunk": 2, "usage": "running"}, [2, 2, 1]),
        ({"tokens_a_chunk": 2}, [None] * 3),
        ({"text": "", "usage": "running"}, [1] * TOKENS),
        ({"usage": None}, [1] * TOKENS),
        ({"says_done": False}, [1] * TOKENS),
        ({"says_finish": False}, [1] * TOKENS),
        ({"stops_at": 3}, [1] * 3),
        ({"stays_open": True}, [1] * TOKENS),
        ({"stays_open": True, "says_done": False}, [1] * TOKENS),
    ],
)
def test_every_manner_of_a_whole_stream_is_understood(
    manners: dict[str, Any], tokens: list[int | None]
) -> None:
    answer = answer_of(**manners)

    assert (answer.outcome, counts(answer)) == ("done", tokens)


@pytest.mark.parametrize(
    ("manners", "outcome", "status", "reason"),
    [
        ({"after": 2, "then": "kill"}, "dropped", 200, "peer closed connection"),
        ({"after": 2, "then": "garbage"}, "garbled", 200, "<html>"),
        ({"after": 2, "then": "error"}, "failed", 200, "out of memory"),
        ({"after": 2, "then": "end"}, "cut_short", 200, "ended without saying so"),
        ({"after": 2, "then": "hang"}, "timed_out", 200, "not answered within 0.3 s"),
        ({"after": 0, "then": "hang"}, "timed_out", 200, "not answered within 0.3 s"),
        ({"statuses": (503,)}, "refused", 503, "status 503, come back later"),
        ({"statuses": (429,)}, "refused", 429, "status 429, come back later"),
        ({"statuses": (500,)}, "failed", 500, "status 500, come back later"),
        ({"refuses": frozenset({"min_tokens"})}, "failed", 400, "min_tokens"),
        ({"answers_whole": True}, "garbled", 200, "application/json"),
        ({"dies_after": 0}, "dropped", None, "disconnected"),
    ],
)
def test_every_failure_has_its_outcome_and_a_reason(
    manners: dict[str, Any], outcome: str, status: int | None, reason: str
) -> None:
    answer = answer_of(timeout_s=0.3 if manners.get("then") == "hang" else 30.0, **manners)

    assert (answer.outcome, answer.status) == (outcome, status)
    assert reason in (answer.reason or "")


def test_what_came_before_a_failure_is_kept() -> None:
    answer = answer_of(after=2, then="kill")

    assert len(answer.arrivals) == 2
    assert answer.ttft_ns is not None


def test_nobody_listening_is_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        answer = asked(f"http://127.0.0.1:{taken.getsockname()[1]}")

    assert (answer.outcome, answer.status) == ("unreachable", None)


def test_a_connection_takes_one_request_after_another() -> None:
    async def ask_twice(url: str) -> None:
        async with Client(address_of(url), None, 30.0) as client:
            dialect = Dialect(client, "toy", Prompter(1))
            for _ in range(3):
                await dialect.ask(dialect.prompter.prompt(7), TOKENS)

    with serving() as served:
        asyncio.run(ask_twice(served.url))

        assert (len(served.bodies), served.connections) == (3, 1)


def test_the_key_goes_into_a_header_and_out_of_every_reason() -> None:
    with serving(key="sk-other") as served:
        answer = asked(served.url, key="sk-mine")

        assert served.headers[0]["authorization"] == "Bearer sk-mine"
    assert answer.reason == "status 401, wrong key: Bearer ***"


@pytest.mark.parametrize("key", ["x", "null", "token"])
def test_a_key_that_is_part_of_what_a_server_sends_changes_nothing_of_it(key: str) -> None:
    with serving() as served:
        answer = asked(served.url, key=key)

    assert (answer.outcome, answer.reason, answer.counts.prompt) == ("done", None, 7)


def test_a_proxy_of_the_environment_is_not_between_two_ends_of_one_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    assert answer_of().outcome == "done"


def test_a_stream_of_far_more_chunks_than_tokens_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "CHUNKS_A_TOKEN", 0)
    answer = answer_of()

    assert answer.outcome == "garbled"
    assert answer.reason == "over 0 chunks of text, where 5 tokens were asked for"
