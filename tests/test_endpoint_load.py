"""Lanes that keep a server busy, and what their visits come to."""

import asyncio

import pytest

from whichwall.collect.endpoint import load
from whichwall.collect.endpoint.answer import Answer
from whichwall.collect.endpoint.load import MOST_IN_A_ROW, Sent, Span, keep_busy
from whichwall.collect.endpoint.plan import ServedPoint
from whichwall.collect.endpoint.results import find_busy, find_manner, point_row
from whichwall.collect.endpoint.visits import why_not
from whichwall.collect.journal import Visit
from whichwall.schemas.manifest import ServerFacts
from whichwall.schemas.points import Points

POINT = ServedPoint(0, 1, 8, 4)


class Server:
    """Answers as told, one outcome after the other, the last for ever; notes how many wait."""

    def __init__(self, *outcomes: str) -> None:
        self.outcomes = [*outcomes]
        self.waiting = self.most = self.asked = 0

    async def ask(self) -> Answer:
        self.asked += 1
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await asyncio.sleep(0)
        self.waiting -= 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        return Answer(start_ns=self.asked, outcome=outcome, reason=f"was {outcome}")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "PAUSE_S", 0.0)


def sent(server: Server, lanes: int, least: int) -> list[Sent]:
    return asyncio.run(keep_busy(server.ask, lanes, Span(0.0, least)))


def test_each_lane_has_one_request_on_its_way_and_sends_as_many_as_it_must() -> None:
    server = Server("done")

    assert [one.lane for one in sent(server, 3, 2)] == [0, 1, 2, 0, 1, 2]
    assert server.most == 3


def test_a_lane_goes_on_after_a_failure() -> None:
    assert len(sent(Server("refused", "failed", "done"), 1, 4)) == 4


def test_a_lane_ends_after_failures_in_a_row() -> None:
    assert len(sent(Server("done", "refused"), 1, 9)) == 1 + MOST_IN_A_ROW


def test_a_lane_ends_with_a_request_that_timed_out() -> None:
    assert len(sent(Server("done", "timed_out", "done"), 1, 9)) == 2


def test_failures_are_told_by_kind_with_a_reason() -> None:
    answers = [Answer(0, outcome=kind, reason=f"was {kind}") for kind in ("failed", "refused")]

    assert why_not([*answers, answers[1], Answer(0)]) == (
        "2 requests refused (was refused); 1 request failed (was failed)"
    )
    assert why_not([]) == "no request was sent"


@pytest.mark.parametrize(
    ("visits", "gone", "outcome"),
    [
        ([Visit(0, 0, "done"), Visit(0, 1, "done")], None, "done"),
        ([Visit(0, 0, "done"), Visit(0, 1, "refused", "busy")], None, "refused"),
        ([Visit(0, 0, "done")], "lost", "interrupted"),
        ([Visit(0, 0, "done"), Visit(0, 1, "refused", "busy")], "lost", "interrupted"),
        ([Visit(0, 0, "refused", "busy"), Visit(1, 0, "done")], "lost", "refused"),
        ([Visit(0, 0, "done"), Visit(0, 1, "done"), Visit(1, 0, "refused")], "lost", "done"),
        ([], "lost", "interrupted"),
    ],
)
def test_a_point_is_done_if_every_visit_was(
    visits: list[Visit], gone: str | None, outcome: str
) -> None:
    assert point_row(POINT, visits, 2, gone)[Points.outcome] == outcome


def test_a_client_at_its_limit_is_told_by_point() -> None:
    (said,) = find_busy({0: 0.2, 1: 0.95}, {0: "1 in flight", 1: "64 in flight"})

    assert (said.code, said.count) == ("client_busy", 1)
    assert "64 in flight" in said.message


def test_what_is_lacking_where_a_field_is_refused_is_told_by_field() -> None:
    facts = ServerFacts(url="http://a", model="m", is_here=False, fields_refused=["ignore_eos"])

    (said,) = find_manner(facts)

    assert said.message == (
        "the server refuses ignore_eos and was asked without: its answers may be shorter than "
        "asked for"
    )
