"""What a server gives, from rows of requests: waits, rates over busy lanes, and what fails."""

from tests.experiment_runs import point
from tests.frames import Row, table
from whichwall.analyze.serving import chunks, serving, waits, windows
from whichwall.schemas.completions import Completions
from whichwall.schemas.points import Points
from whichwall.schemas.run import frame
from whichwall.schemas.serving import Served, Waits
from whichwall.schemas.tokens import Tokens

MS = 10**6
BEGIN_NS = 1_790_000_000 * 10**9


def request(index: int, start_ms: int, total_ms: int, **more: object) -> Row:
    """Return a clean request of one lane that was answered with three tokens."""
    return {
        Completions.point: 0, Completions.rank: 0, Completions.visit: 0, Completions.index: index,
        Completions.lane: 0, Completions.stage: "clean",
        Completions.start_ns: BEGIN_NS + start_ms * MS, Completions.total_ns: total_ms * MS,
        Completions.ttft_ns: 10 * MS, Completions.prompt_tokens: 8, Completions.new_tokens: 3,
        Completions.outcome: "done", **more,
    }  # fmt: skip


def came(index: int, *at_ms: float, tokens: int | None = 1) -> list[Row]:
    """Return chunks of a request by the times since it was sent."""
    return [
        {
            Tokens.point: 0, Tokens.completion: index, Tokens.index: place,
            Tokens.at_ns: round(at * MS), Tokens.tokens: tokens,
        }
        for place, at in enumerate(at_ms)
    ]  # fmt: skip


def served(requests: list[Row], tokens: list[Row], **more: object) -> Served:
    found = serving(
        table(Points, point(0, **more)), table(Completions, *requests), table(Tokens, *tokens)
    )
    return found[0]


def test_waits_of_one_request_are_as_defined() -> None:
    found = served([request(0, 0, 20)], came(0, 10, 12, 18))

    assert found.ttft == Waits(1, 10 * MS, 10 * MS, 10 * MS, None)
    assert found.tpot == Waits(1, 4 * MS, 4 * MS, 4 * MS, None)
    assert found.itl == Waits(2, 4 * MS, 2_400_000, 5_600_000, None)
    assert found.total == Waits(1, 20 * MS, 20 * MS, 20 * MS, None)


def test_several_tokens_in_a_chunk_change_itl_and_not_tpot() -> None:
    found = served([request(0, 0, 20, new_tokens=5)], came(0, 10, 14, 18, tokens=None))

    assert found.tpot is not None
    assert found.itl is not None
    assert (found.tpot.median_ns, found.itl.median_ns) == (2 * MS, 4 * MS)
    assert found.tokens_per_chunk == 5 / 3


def test_tokens_that_nobody_counts_leave_rates_and_tpot_unknown() -> None:
    found = served([request(0, 0, 20, new_tokens=None)], came(0, 10, 14, tokens=None))

    assert (found.tpot, found.tokens_per_s, found.tokens_per_chunk) == (None, None, None)
    assert found.itl is not None


def test_an_answer_in_one_chunk_has_no_time_between_tokens() -> None:
    found = served([request(0, 0, 20)], came(0, 10, tokens=3))

    assert (found.tpot, found.itl) == (None, None)


def test_only_clean_answered_requests_are_in_waits() -> None:
    requests = [
        request(0, 0, 20),
        request(1, 30, 900, stage="warmup", ttft_ns=800 * MS),
        request(2, 930, 500, outcome="dropped", ttft_ns=400 * MS, reason="lost"),
        request(3, 1430, 5, outcome="refused", ttft_ns=None, reason="status 503"),
        request(4, 1435, 5, outcome="refused", ttft_ns=None, reason="status 429"),
    ]
    found = served(requests, [*came(0, 10, 12, 18), *came(1, 800), *came(2, 400, 450)])

    assert found.ttft == Waits(1, 10 * MS, 10 * MS, 10 * MS, None)
    assert found.itl is not None
    assert found.itl.count == 2
    assert (found.requests, found.done) == (4, 1)
    assert found.failures == {"refused": 2, "dropped": 1}
    assert found.reasons == {"refused": "status 503", "dropped": "lost"}


def test_rates_are_of_the_time_in_which_every_lane_was_under_way() -> None:
    requests = [
        request(0, 0, 100),
        request(1, 50, 100, lane=1),
        request(2, 100, 100),
    ]
    # All lanes from 50 to 150 ms: five of these tokens came in it.
    tokens = [*came(0, 40, 60, 90), *came(1, 20, 60, 110), *came(2, 30, 60, 90)]
    found = served(requests, tokens, batch=2)

    assert found.window_ns == 100 * MS
    assert (found.tokens_per_s, found.tokens_per_s_each) == (50.0, 25.0)
    assert found.requests_per_s == 20.0
    assert found.lanes_busy == 2.0


def test_a_window_is_of_one_visit_and_several_add_up() -> None:
    requests = [request(0, 0, 100), request(1, 1000, 100, visit=1)]
    found = served(requests, [*came(0, 10, 20, 30), *came(1, 10, 20, 30)])

    assert windows(table(Completions, *requests)).height == 2
    assert (found.window_ns, found.tokens_per_s) == (200 * MS, 30.0)


def test_lanes_that_were_never_under_way_together_have_no_rate() -> None:
    found = served([request(0, 0, 10), request(1, 20, 10, lane=1)], came(0, 5), batch=2)

    assert (found.window_ns, found.tokens_per_s, found.lanes_busy) == (None, None, None)


def test_failed_requests_show_as_lanes_that_were_not_busy() -> None:
    requests = [request(0, 0, 50), request(1, 50, 50, outcome="refused", ttft_ns=None)]

    assert served(requests, came(0, 10, 20, 30)).lanes_busy == 0.5


def test_a_p99_takes_a_hundred_values() -> None:
    values = frame(Completions, [request(n, n, n + 1) for n in range(100)])[Completions.total_ns]

    few, enough = waits(values.head(99)), waits(values)
    assert few is not None
    assert enough is not None
    assert few.p99_ns is None
    assert enough.p99_ns == round(99.01 * MS)


def test_the_wait_before_a_chunk_is_within_its_own_stream() -> None:
    requests = table(Completions, request(0, 0, 20), request(1, 20, 20))
    found = chunks(requests, table(Tokens, *came(1, 7, 9), *came(0, 10, 12)))

    assert found["itl_ns"].to_list() == [None, 2 * MS, None, 2 * MS]


def test_a_point_that_nobody_asked_is_there_with_nothing() -> None:
    points = table(Points, point(0), point(1, outcome="refused", reason="too long"))
    found = serving(points, table(Completions, request(0, 0, 20)), table(Tokens, *came(0, 10)))

    assert [(one.requests, one.outcome, one.reason) for one in found] == [
        (1, "done", None), (0, "refused", "too long"),
    ]  # fmt: skip


def test_a_run_that_asked_no_server_has_none() -> None:
    assert serving(table(Points, point(0)), frame(Completions, []), frame(Tokens, [])) == []
