"""Server-sent events out of bytes: cut anywhere, ended in any way, and what is no event."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import PROPERTY
from whichwall.collect.endpoint.events import LONGEST_EVENT, EventStream
from whichwall.schemas.errors import InputError

TEXT = 'data: {"text": "naïve ✓ 😀"}\n\n: comment\n\nevent: x\ndata: a\ndata: b\n\ndata:[DONE]\n\n'
EVENTS = ['{"text": "naïve ✓ 😀"}'.encode(), b"a\nb", b"[DONE]"]


def read(*pieces: bytes) -> list[bytes]:
    stream = EventStream()
    found = [event for piece in pieces for event in stream.feed(piece)]
    return found + stream.end()


@PROPERTY
@given(
    st.lists(st.integers(0, len(TEXT.encode()) * 2), max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_events_are_the_same_wherever_the_network_cuts(cuts: list[int], end: str) -> None:
    data = TEXT.replace("\n", end).encode()
    places = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    pieces = [data[a:b] for a, b in pairwise(places)]

    assert read(*pieces) == EVENTS


def test_an_event_is_there_with_the_byte_that_completes_it() -> None:
    stream = EventStream()

    assert [stream.feed(piece) for piece in (b"data: a\r", b"\n\r", b"\n", b"data: b\n\n")] == [
        [], [b"a"], [], [b"b"],
    ]  # fmt: skip


def test_the_last_event_may_lack_its_end() -> None:
    assert read(b"data: a\n\ndata: [DONE]") == [b"a", b"[DONE]"]


def test_a_byte_order_mark_is_no_part_of_a_field() -> None:
    assert read(b"\xef\xbb\xbfdata: a\n\n") == [b"a"]


@pytest.mark.parametrize("data", [b"<html>\n", b"\x00\xff\xfe\n", b'{"error": "busy"}\n'])
def test_a_line_of_no_event_is_refused_with_its_beginning(data: bytes) -> None:
    with pytest.raises(InputError, match="a line of no event"):
        read(data)


def test_an_event_without_an_end_is_refused_before_memory_is_full() -> None:
    stream, quarter = EventStream(), b"data: " + b"x" * (LONGEST_EVENT // 4) + b"\n"
    for _ in range(3):
        stream.feed(quarter)

    with pytest.raises(InputError, match="an event of over"):
        stream.feed(quarter + b"x")
