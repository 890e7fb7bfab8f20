"""Roles of kernels without operators, by the roles that their twins have in a reference."""

import polars as pl
import pytest

from tests.decoder import CALLS, EXPECTED, GATE, LAYER, MODEL, SUM, Call, recording, row, told
from whichwall.analyze.roles.attribute import attribute
from whichwall.analyze.roles.captured import Captured
from whichwall.analyze.roles.reference import Reference, refer
from whichwall.schemas import roles as r
from whichwall.schemas.activities import Activities
from whichwall.schemas.errors import InputError
from whichwall.schemas.kernels import MEMCPY
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import frame

# Kernels are named after what launches them, and the size of their grid.
COPY: dict[str, object] = {
    Activities.kind: MEMCPY,
    Activities.name: "Memcpy DtoD (Device -> Device)",
}


def geometry(call: Call) -> dict[str, object]:
    op, dims, _ = call
    return {Activities.name: f"kernel of {op}", Activities.grid_x: sum(map(ord, str(dims)))}


def eager(calls: list[Call] = CALLS) -> Reference:
    activities = frame(Activities, [row(i, c, **geometry(c)) for i, c in enumerate(calls)])
    return Reference("eager", activities, attribute(activities, MODEL), Captured([]), MODEL)


def node(i: int, call: Call | None, launch: int = 0, **more: object) -> dict[str, object]:
    known = geometry(call) if call else {}
    where = {"step": None, "launch": launch, "launch_start_ns": 0, "graph_replay": True}
    return row(i, None, **where, **known, **more)


def replay(calls: list[Call]) -> pl.DataFrame:
    return frame(Activities, [node(i, call) for i, call in enumerate(calls)])


def referred(activities: pl.DataFrame, reference: Reference) -> pl.DataFrame:
    return refer(activities, attribute(activities, MODEL), reference)


def test_a_replay_of_the_same_kernels_has_the_roles_and_layers_of_its_eager_twin() -> None:
    found = referred(replay(CALLS), eager())
    assert told(found) == EXPECTED
    assert set(found[Roles.method]) == {r.BY_REFERENCE}
    assert found.columns == list(Roles.COLUMNS)


def test_each_of_several_replays_is_aligned() -> None:
    rows = [node(100 * n + i, call, launch=n) for n in range(3) for i, call in enumerate(CALLS)]
    assert told(referred(frame(Activities, rows), eager())) == EXPECTED * 3


def test_a_graph_of_several_passes_counts_the_layers_of_each_from_0() -> None:
    assert told(referred(replay(CALLS * 3), eager())) == EXPECTED * 3


def test_a_kernel_more_keeps_what_is_known_of_it_and_does_not_disturb_the_rest() -> None:
    at = CALLS.index(GATE)
    rows = [node(i, call) for i, call in enumerate(CALLS[:at])]
    rows += [node(at, None) | COPY]
    rows += [node(at + 1 + i, call) for i, call in enumerate(CALLS[at:])]

    found = referred(frame(Activities, rows), eager())

    assert told(found)[:at] + told(found)[at + 1 :] == EXPECTED
    assert found.row(at, named=True)[Roles.role] == r.MEMORY
    assert found.row(at, named=True)[Roles.method] == r.BY_NAME


def test_a_kernel_less_does_not_disturb_the_rest() -> None:
    at = CALLS.index(SUM)
    calls, expected = CALLS[:at] + CALLS[at + 1 :], EXPECTED[:at] + EXPECTED[at + 1 :]
    assert told(referred(replay(calls), eager())) == expected


def test_what_has_no_twin_between_two_of_one_role_works_for_it_at_even_odds() -> None:
    at = CALLS.index(GATE) - 1  # inside the norm ahead of the MLP
    rows = [node(i, call) for i, call in enumerate(CALLS[:at])]
    rows += [node(at, None, name="an unheard of kernel")]
    rows += [node(at + 1 + i, call) for i, call in enumerate(CALLS[at:])]

    found = referred(frame(Activities, rows), eager()).row(at, named=True)

    assert (found[Roles.role], found[Roles.method]) == (r.NORM, r.BY_REFERENCE)
    assert found[Roles.confidence] == 0.5


def test_a_piece_of_one_layer_of_several_has_roles_and_no_layer() -> None:
    piece = [call for call, _ in LAYER]
    found = referred(replay(piece[-8:]), eager())
    assert found[Roles.role].to_list() == [role for _, role in LAYER[-8:]]
    assert found[Roles.layer].null_count() == found.height


def test_a_match_is_surer_among_neighbours_that_match() -> None:
    whole = referred(replay(CALLS), eager())
    at = CALLS.index(GATE)
    strangers = [node(i, None, name=f"other {i}") for i in range(len(CALLS))]
    strangers[at] = node(at, GATE)
    lonely = referred(frame(Activities, strangers), eager())
    assert lonely.row(at, named=True)[Roles.role] == r.GATE_UP_PROJ
    assert lonely[Roles.confidence][at] < whole[Roles.confidence][at]


def test_a_grid_of_another_size_is_the_same_kernel_but_less_surely() -> None:
    rows = [node(i, call) for i, call in enumerate(CALLS)]
    for changed in rows:
        changed[Activities.grid_x] = 1
    found = referred(frame(Activities, rows), eager())
    assert told(found) == EXPECTED
    same = referred(replay(CALLS), eager())
    assert found[Roles.confidence].sum() < same[Roles.confidence].sum()


def test_of_several_passes_the_one_most_alike_is_the_reference() -> None:
    other: list[Call] = [("aten::tanh", [[1, 1, n]], ["float"]) for n in range(2, 40)]
    activities = frame(
        Activities,
        [row(i, call, **geometry(call), step=0) for i, call in enumerate(other)]
        + [row(100 + i, call, **geometry(call), step=1) for i, call in enumerate(CALLS)],
    )
    roles = attribute(activities, MODEL)
    reference = Reference("both", activities, roles, Captured([]), MODEL)
    assert told(referred(replay(CALLS), reference)) == EXPECTED


def test_kernels_with_operators_of_their_own_need_no_reference() -> None:
    activities = recording(CALLS)
    own = attribute(activities, MODEL)
    assert refer(activities, own, eager()) is own


def test_runs_without_a_kernel_in_common_are_refused_by_name() -> None:
    rows = [node(i, None, name=f"hip kernel {i}") for i in range(3)]
    with pytest.raises(InputError, match=r"^eager: no kernel has the name of one in the run"):
        referred(frame(Activities, rows), eager())
