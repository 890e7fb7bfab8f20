"""What a stream brings: when tokens came and how many, and how an answer ended."""

import json
from typing import Any

import pytest

from whichwall.collect.endpoint.answer import Answer
from whichwall.collect.endpoint.chunks import read_chunk, said
from whichwall.schemas.errors import InputError


def chunk(text: str = " a", finish: str | None = None, **more: Any) -> bytes:
    return json.dumps({"choices": [{"text": text, "finish_reason": finish}], **more}).encode()


def usage(new: int, prompt: int = 5) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": new}}


def answered(*events: bytes, asked: int = 3) -> Answer:
    answer = Answer(start_ns=0)
    for place, event in enumerate(events, 1):
        answer.take(event, place * 10)
    answer.close(asked)
    return answer


LAST = json.dumps({"choices": [], **usage(3)}).encode()


@pytest.mark.parametrize(
    ("events", "arrivals", "new"),
    [
        # A running count, and a chunk that brings none.
        ([chunk("", **usage(0)), chunk("", **usage(1)), chunk("", "length", **usage(3))],
         [(20, 1), (30, 2)], 3),
        # A count at the end: as many chunks as tokens.
        ([chunk(), chunk(), chunk(finish="length"), LAST], [(10, 1), (20, 1), (30, 1)], 3),
        # A count at the end: fewer chunks than tokens.
        ([chunk(), chunk(finish="length"), LAST], [(10, None), (20, None)], 3),
        # A count with the last text.
        ([chunk(), chunk(finish="length", **usage(3))], [(10, None), (20, None)], 3),
        # All of it at once.
        ([chunk(finish="length", **usage(3))], [(10, 3)], 3),
        # No count: as long as was asked for, since it says so.
        ([chunk(), chunk(finish="length")], [(10, None), (20, None)], 3),
        # No count, and no word of its length.
        ([chunk(), chunk(finish="stop")], [(10, None), (20, None)], None),
    ],
)  # fmt: skip
def test_tokens_are_counted_as_far_as_the_server_tells(
    events: list[bytes], arrivals: list[tuple[int, int | None]], new: int | None
) -> None:
    answer = answered(*events)

    assert (answer.outcome, answer.arrivals, answer.counts.new) == ("done", arrivals, new)


def test_ids_tell_tokens_where_there_is_no_text() -> None:
    event = json.dumps({"choices": [{"text": "", "token_ids": [4, 5], "finish_reason": "stop"}]})

    assert answered(event.encode()).arrivals == [(10, 2)]


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([chunk()], "cut_short"),
        ([chunk(), b"[DONE]"], "done"),
        ([chunk(finish="stop")], "done"),
        ([b"[DONE]"], "garbled"),
        ([chunk(""), LAST], "cut_short"),
        ([chunk("", "length"), LAST], "garbled"),
        ([chunk(), chunk(finish="abort")], "failed"),
        ([chunk(), b'{"error": {"message": "no"}}'], "failed"),
    ],
)
def test_an_answer_is_done_if_it_has_tokens_and_an_end(events: list[bytes], outcome: str) -> None:
    assert answered(*events).outcome == outcome


@pytest.mark.parametrize(
    "event", [b"", b"x", b"[1]", b"{}", b'{"choices": 3}', b'{"a": 1}', b"[" * 100_000, b"9" * 9999]
)  # fmt: skip
def test_what_is_no_event_of_a_completion_is_refused(event: bytes) -> None:
    with pytest.raises(InputError):
        read_chunk(event)


@pytest.mark.parametrize("text", [b'"\\ud83d"', b'"\xf0\x9f"'])
def test_a_text_that_ends_inside_a_letter_is_a_text(text: bytes) -> None:
    assert read_chunk(b'{"choices": [{"text": ' + text + b"}]}").has_text


@pytest.mark.parametrize("odd", ["12", 1.5, True, -1, 1 << 40, [], {}])
def test_an_odd_count_is_unknown(odd: object) -> None:
    found = read_chunk(json.dumps({"choices": [], "usage": {"prompt_tokens": odd}}).encode())

    assert found.counts.prompt is None


@pytest.mark.parametrize(
    "more",
    [
        {"usage": {"prompt_tokens_details": {"cached_tokens": 16}}},
        {"usage": {}, "timings": {"cache_n": 16}},
    ],
)
def test_cached_tokens_are_found_under_each_name(more: dict[str, Any]) -> None:
    assert read_chunk(json.dumps({"choices": [], **more}).encode()).counts.cached == 16


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"message": "no\nroom"}, "no room"),
        ({"error": {"message": "deep"}}, "deep"),
        ("plain", "plain"),
        ([{"loc": ["body"]}], '[{"loc": ["body"]}]'),
        ({}, "an error without a reason"),
    ],
)
def test_an_error_is_said_in_a_line_whatever_its_shape(error: object, words: str) -> None:
    assert said(error) == words
