"""The parts of a step add up to it; what is not told is a remainder, and rules are stated."""

from hypothesis import given
from hypothesis import strategies as st

from tests.properties import PROPERTY
from tests.step_groups import a_group, role
from whichwall.analyze.account import (
    AS_TRACED,
    CACHED,
    PROFILER_OUT,
    ROLE_PARTS,
    StepFacts,
    account,
    split,
)
from whichwall.analyze.thresholds import ASSUMED_NODE_IDLE_NS
from whichwall.schemas.account import Account
from whichwall.schemas.gaps import CAUSES
from whichwall.schemas.roles import ROLES
from whichwall.schemas.summary import StepGroup

US = 1000
FLOORED = StepFacts(
    floor_ns=20 * US, floor_of="bytes", floor_by_role={"norm": 5000.0, "lm_head": 15000.0}
)


def a_step(**more: object) -> StepGroup:
    """Return a step of 100 µs clean, 300 µs traced, in which the GPU works for 40 µs."""
    plain: dict[str, object] = {
        "clean_step_ns_median": 100 * US, "window_ns_median": 300 * US, "busy_ns_median": 40 * US,
        "kernels_median": 10.0, "gaps_by_cause_ns": {"launch": 200 * US, "device": 50 * US},
        "roles": [role("norm", 30 * US), role("lm_head", 10 * US)],
    }  # fmt: skip
    return a_group(**(plain | more))


def found(group: StepGroup, facts: StepFacts | None = None) -> Account:
    result = account(group, facts or StepFacts())
    assert result is not None
    return result


def parts(one: Account) -> list[tuple[str, str | None, int]]:
    return [(part.kind, part.detail, part.ns) for part in one.parts]


times = st.integers(0, 10**12)
_floors = st.dictionaries(st.sampled_from(ROLES), st.floats(0, 1e9), max_size=5)


@PROPERTY
@given(
    step=st.none() | st.integers(1, 10**12),
    window=times,
    busy=times,
    gaps=st.dictionaries(st.sampled_from(CAUSES), times),
    roles=st.dictionaries(st.sampled_from(ROLES), times, max_size=5),
    facts=st.builds(
        StepFacts, floor_ns=st.none() | times, floor_of=st.just("bytes"), floor_by_role=_floors,
        cached_weights=st.booleans(), gpu_ns=st.none() | times,
        graph_nodes=st.integers(0, 5000), node_idle_ns=st.none() | st.floats(0, 1e4),
    ),
)  # fmt: skip
def test_the_parts_add_up_to_the_step_to_the_nanosecond(
    step: int | None,
    window: int,
    busy: int,
    gaps: dict[str, int],
    roles: dict[str, int],
    facts: StepFacts,
) -> None:
    one = account(
        a_step(
            clean_step_ns_median=step, window_ns_median=window, busy_ns_median=busy,
            gaps_by_cause_ns=gaps, roles=[role(name, ns) for name, ns in roles.items()],
        ),
        facts,
    )  # fmt: skip

    if one is not None:
        assert one.step_ns == (window if step is None else step)
        assert sum(part.ns for part in one.parts) == one.step_ns
        assert sum(p.ns for p in one.parts if p.kind in ("floor", "kernels")) == busy


@PROPERTY
@given(times, st.lists(times, min_size=1, max_size=9).filter(any))
def test_a_whole_number_is_divided_exactly_and_no_share_is_off_by_one(
    total: int, weights: list[int]
) -> None:
    shares = split(total, weights)

    assert sum(shares) == total
    whole = sum(weights)
    assert all(
        abs(share * whole - total * weight) < whole
        for share, weight in zip(shares, weights, strict=True)
    )


def test_an_eager_step_has_its_traced_gaps_scaled_to_fit_and_says_so() -> None:
    one = found(a_step(), FLOORED)

    assert parts(one) == [
        ("floor", "bytes", 20 * US),
        ("kernels", "norm", 25 * US),
        ("kernels", "lm_head", -5 * US),
        ("idle", "launch", 48 * US),
        ("idle", "device", 12 * US),
        ("remainder", None, 0),
    ]
    assert one.scale == 0.24
    assert one.notes == [
        ROLE_PARTS,
        "gaps traced as 250 µs are longer than the 60.0 µs that the clean step has for them: each "
        "is multiplied by 0.240",
    ]


def test_gaps_shorter_than_the_idle_time_are_kept_and_the_rest_is_a_remainder() -> None:
    one = found(a_step(gaps_by_cause_ns={"launch": 10 * US}))

    assert parts(one)[-2:] == [("idle", "launch", 10 * US), ("remainder", None, 50 * US)]
    assert one.scale is None


def test_the_clean_steps_time_outside_its_events_is_the_hosts() -> None:
    one = found(a_step(), StepFacts(gpu_ns=90 * US))

    assert parts(one)[-4:] == [
        ("idle", "launch", 40 * US), ("idle", "device", 10 * US), ("host", None, 10 * US),
        ("remainder", None, 0),
    ]  # fmt: skip


def test_a_graph_step_is_told_by_kernels_nodes_and_host_without_its_traced_gaps() -> None:
    facts = StepFacts(gpu_ns=90 * US, graph_nodes=10, node_idle_ns=5500.0)
    one = found(a_step(gaps_by_cause_ns={"graph": 70 * US, "launch": 9 * US}), facts)

    assert parts(one)[-4:] == [
        ("kernels", "lm_head", 10 * US), ("graph_idle", None, 55 * US), ("host", None, 10 * US),
        ("remainder", None, -5 * US),
    ]  # fmt: skip
    assert (one.expected_ns, one.scale, one.node_idle_measured) == (105 * US, 0.0, True)
    assert one.error is not None
    assert round(one.error, 6) == 0.05


def test_idle_of_a_graphs_nodes_is_assumed_where_it_was_not_measured() -> None:
    one = found(a_step(), StepFacts(graph_nodes=10))

    assert (one.node_idle_ns, one.node_idle_measured) == (ASSUMED_NODE_IDLE_NS, False)


def test_a_step_with_few_nodes_is_no_graph_step() -> None:
    assert found(a_step(), StepFacts(graph_nodes=4)).expected_ns is None


def test_the_profilers_gaps_have_no_part_of_a_clean_step() -> None:
    one = found(a_step(gaps_by_cause_ns={"profiler": 99 * US, "launch": 60 * US}))

    assert parts(one)[-2:] == [("idle", "launch", 60 * US), ("remainder", None, 0)]
    assert one.notes == [PROFILER_OUT]


def test_a_step_only_traced_is_divided_as_traced_with_the_profilers_share() -> None:
    gaps = {"profiler": 30 * US, "launch": 200 * US}
    one = found(a_step(clean_step_ns_median=None, gaps_by_cause_ns=gaps))

    assert (one.of, one.step_ns, one.notes) == ("traced", 300 * US, [AS_TRACED])
    assert parts(one)[-3:] == [
        ("idle", "profiler", 30 * US), ("idle", "launch", 200 * US), ("remainder", None, 30 * US)
    ]  # fmt: skip


def test_without_a_floor_kernels_are_what_they_took() -> None:
    assert parts(found(a_step()))[:2] == [
        ("kernels", "norm", 30 * US),
        ("kernels", "lm_head", 10 * US),
    ]


def test_a_floor_of_weights_that_a_cache_holds_is_left_out_and_that_is_said() -> None:
    one = found(a_step(), StepFacts(floor_ns=20 * US, floor_of="bytes", cached_weights=True))

    assert parts(one)[0] == ("kernels", "norm", 30 * US)
    assert CACHED in one.notes


def test_there_is_no_account_without_gpu_work_or_of_two_different_works() -> None:
    assert account(a_step(busy_ns_median=None), StepFacts()) is None
    assert account(a_step(window_ns_median=None), StepFacts()) is None
    assert account(a_step(busy_ns_median=106 * US), StepFacts()) is None
    assert account(a_step(busy_ns_median=105 * US), StepFacts()) is not None
