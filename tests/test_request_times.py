"""One request in stages, and the loops that make its tokens beside each other."""

from tests.experiment_runs import Clock
from tests.frames import Row, table
from whichwall.analyze.request_times import request_times
from whichwall.schemas.experiments import LoopTime, RequestTimes
from whichwall.schemas.passes import Passes
from whichwall.schemas.requests import FREE, GENERATE, WAITING, Requests


def request(loop: str, start_ns: int, model_ns: int, **more: object) -> Row:
    return {
        Requests.point: 0,
        Requests.rank: 0,
        Requests.visit: 0,
        Requests.loop: loop,
        Requests.start_ns: start_ns,
        Requests.model_ns: model_ns,
        Requests.prompt_tokens: 16,
        Requests.new_tokens: 4,
        **more,
    }


def timed(requests: list[Row], passes: list[Row]) -> RequestTimes | None:
    return request_times(table(Requests, *requests), table(Passes, *passes))


def test_a_request_is_divided_by_the_passes_that_began_inside_it() -> None:
    inside = Clock(1_050).request(0, 900, [100, 110, 130])
    outside = Clock(90_000).request(0, 900, [500, 500, 500])
    waiting = request(WAITING, 1_000, 1_240, tokenize_ns=50, prefill_ns=900, detokenize_ns=10)

    assert timed([waiting], [*inside, *outside]) == RequestTimes(
        prompt_tokens=16,
        new_tokens=4,
        tokenize_ns=50,
        prefill_ns=900,
        steps_ns=340,
        detokenize_ns=10,
        total_ns=1_300,
        step_ns_first=100,
        step_ns_median=110,
        step_ns_slowest=130,
        loops=[LoopTime(WAITING, 1, 1_240, 1_240, 1_240, None)],
        same_tokens=None,
        requests_told=0,
        requests_alike=0,
    )


def test_loops_are_compared_with_the_one_that_waits_only_at_the_end() -> None:
    found = timed(
        [request(loop, 0, took) for loop, took in ((WAITING, 110), (FREE, 100), (GENERATE, 120))],
        [],
    )

    assert found is not None
    assert [(loop.loop, loop.to_free) for loop in found.loops] == [
        (WAITING, 1.1), (FREE, 1.0), (GENERATE, 1.2),
    ]  # fmt: skip


def test_without_a_tokenizer_the_stages_of_text_are_not_known() -> None:
    found = timed([request(WAITING, 0, 100)], [])

    assert found is not None
    assert (found.tokenize_ns, found.detokenize_ns, found.total_ns) == (None, None, 100)


def test_tokens_are_the_same_where_all_digests_of_a_visit_are() -> None:
    def same(*digests: str) -> bool | None:
        loops = [
            request(loop, 0, 100, point=place, tokens_sha256=digest)
            for place, (loop, digest) in enumerate(zip((WAITING, FREE), digests, strict=False))
        ]
        found = timed(loops, [])
        assert found is not None
        return found.same_tokens

    assert (same("a", "a"), same("a", "b"), same("a")) == (True, False, None)


def test_requests_with_the_tokens_of_most_are_counted() -> None:
    loops = [request(WAITING, visit, 100, tokens_sha256=told) for visit, told in enumerate("aab")]

    found = timed(loops, [])

    assert found is not None
    assert (found.requests_alike, found.requests_told) == (2, 3)


def test_without_requests_there_is_nothing_to_say() -> None:
    assert timed([], Clock().request(0, 900, [100])) is None
