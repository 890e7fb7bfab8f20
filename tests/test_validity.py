import pytest

from tests.frames import BASE_NS, Row, call, kernel, op, table
from whichwall.analyze.validity import SHORTEST_RECORDING_NS, is_void, recording_of
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import RankFacts
from whichwall.schemas.ops import Ops

MINUTE, YEAR = 60 * 10**9, 365 * 86_400 * 10**9
INT64_MAX = 2**63 - 1
FACTS = RankFacts(rank=0, source="kineto", time_origin="epoch", base_ns=BASE_NS, resolution_ns=1)

# A recording of two minutes: calls at both ends, a kernel inside.
HOST = [call(BASE_NS + 10, BASE_NS + 20), call(BASE_NS + 2 * MINUTE, BASE_NS + 2 * MINUTE + 20)]
SOUND = kernel(BASE_NS + 100, BASE_NS + 200)


def void_rows(
    *kernels: Row, host: list[Row] = HOST, ops: tuple[Row, ...] = (), facts: RankFacts = FACTS
) -> list[bool]:
    """Tell for each kernel whether it is void."""
    rows = table(Kernels, *kernels)
    recording = recording_of(facts, [table(Launches, *host), table(Ops, *ops)], rows)
    return rows.select(is_void(recording, facts.base_ns or 0)).to_series().to_list()


@pytest.mark.parametrize(
    ("start", "dur", "void"),
    [
        (BASE_NS, 0, True),  # neither time nor duration
        (BASE_NS, 5, False),
        (BASE_NS + 100, 0, False),  # too short for whole microseconds
        (BASE_NS + 100, -1, True),
        (BASE_NS + 100, -(2**63), True),
        (BASE_NS + 100, INT64_MAX, True),
        (BASE_NS + 100, YEAR, True),
        (BASE_NS + 100, 3 * MINUTE, False),  # past the recording, by less than the recording
        (BASE_NS + 100, 5 * MINUTE, True),
        (BASE_NS + 5 * MINUTE, 100, True),
        (BASE_NS - 3 * MINUTE, 100, True),
        (BASE_NS - MINUTE, 100, False),
        (BASE_NS - YEAR, 100, True),
        (-(2**63), 100, True),
        (INT64_MAX, 0, True),
    ],
)
def test_a_row_is_void_if_it_cannot_be_an_activity_of_this_recording(
    start: int, dur: int, void: bool
) -> None:
    assert void_rows(SOUND, kernel(start, start, dur_ns=dur)) == [False, void]


@pytest.mark.parametrize("dur", [INT64_MAX, 100 * YEAR, -(2**63)])
def test_a_host_row_that_never_ended_does_not_stretch_the_recording(dur: int) -> None:
    endless = op(BASE_NS + 30, BASE_NS + 30, "aten::mm", dur_ns=dur)
    late = kernel(BASE_NS + YEAR, BASE_NS + YEAR + 5)
    assert void_rows(SOUND, late, ops=(endless,)) == [False, True]


def test_a_host_row_without_a_time_does_not_stretch_it_either() -> None:
    host = [call(BASE_NS, BASE_NS), *[call(BASE_NS + YEAR + i, BASE_NS + YEAR + i) for i in (0, 9)]]
    early = kernel(BASE_NS + 5, BASE_NS + 6)
    assert void_rows(early, kernel(BASE_NS + YEAR, BASE_NS + YEAR + 5), host=host) == [True, False]


def test_kernels_may_go_on_after_the_last_row_of_the_host() -> None:
    host = [call(BASE_NS + 10, BASE_NS + 20)]
    later = [kernel(BASE_NS + t, BASE_NS + t + 10**6) for t in range(100, 10**9, 10**8)]
    assert void_rows(*later, host=host) == [False] * 10


def test_a_wait_longer_than_all_starts_apart_is_part_of_the_recording() -> None:
    host = [call(BASE_NS + 10, BASE_NS + 20), call(BASE_NS + 30, BASE_NS + 30 * 10**9)]
    assert void_rows(kernel(BASE_NS + 25, BASE_NS + 29 * 10**9), host=host) == [False]


def test_without_a_host_only_what_is_absurd_is_void() -> None:
    rows = [SOUND, kernel(BASE_NS + 300, BASE_NS + SHORTEST_RECORDING_NS)]
    assert void_rows(*rows, host=[]) == [False, False]
    assert void_rows(SOUND, kernel(BASE_NS + 300, BASE_NS + YEAR), host=[]) == [False, True]
    assert void_rows(SOUND, kernel(-(2**62), 0, dur_ns=-1), host=[]) == [False, True]


def test_the_profilers_own_span_is_the_recording_where_it_says_so() -> None:
    facts = RankFacts(
        rank=0, source="kineto", time_origin="epoch", base_ns=BASE_NS, resolution_ns=1,
        recording_start_ns=BASE_NS, recording_end_ns=BASE_NS + 10 * MINUTE,
    )  # fmt: skip
    assert void_rows(SOUND, kernel(BASE_NS + 5 * MINUTE, BASE_NS + 9 * MINUTE), facts=facts) == [
        False, False,
    ]  # fmt: skip


def test_nothing_at_all_is_no_recording() -> None:
    recording = recording_of(FACTS, [table(Launches)], table(Kernels))
    assert (recording.start_ns, recording.end_ns, recording.known) == (BASE_NS, BASE_NS, False)


def test_a_host_at_both_ends_of_time_is_still_a_recording() -> None:
    host = [call(-(2**60) + 1, -(2**60) + 2), call(2**62 - 2, 2**62 - 1)]
    assert void_rows(SOUND, host=host) == [False]
