import msgspec

from tests.report_inputs import group
from whichwall.analyze.charts.palette import PHASE_COLOURS
from whichwall.analyze.charts.phases import finding, phases
from whichwall.analyze.charts.theme import svg
from whichwall.analyze.phase_shares import phase_shares
from whichwall.schemas import roles as r
from whichwall.schemas.chart import PhaseShares
from whichwall.schemas.passes import DECODE, PREFILL
from whichwall.schemas.summary import RoleTotal, StepGroup

MS = 1_000_000


def steps(phase: str | None, count: int, *roles: RoleTotal, point: int = 0) -> StepGroup:
    return msgspec.structs.replace(
        group(), phase=phase, count=count, roles=list(roles), point=point
    )


GENERATED = steps(
    DECODE, 4, RoleTotal(r.ATTENTION, 3 * MS, 0.75, 8), RoleTotal(r.NORM, MS, 0.25, 8)
)
READ = steps(PREFILL, 1, RoleTotal(r.DOWN_PROJ, 8 * MS, 0.8, 2), RoleTotal(r.NORM, 2 * MS, 0.2, 2))


def test_roles_of_both_phases_stand_side_by_side_per_step_the_largest_first() -> None:
    assert phase_shares([GENERATED, READ]).select(
        PhaseShares.role, PhaseShares.phase, PhaseShares.share, PhaseShares.time_us
    ).rows() == [
        (r.DOWN_PROJ, DECODE, 0.0, 0.0),
        (r.DOWN_PROJ, PREFILL, 0.8, 8_000.0),
        (r.ATTENTION, DECODE, 0.75, 750.0),
        (r.ATTENTION, PREFILL, 0.0, 0.0),
        (r.NORM, DECODE, 0.25, 250.0),
        (r.NORM, PREFILL, 0.2, 2_000.0),
    ]


def test_one_phase_or_two_at_different_points_are_no_comparison() -> None:
    elsewhere = msgspec.structs.replace(READ, point=1)
    untraced = msgspec.structs.replace(READ, roles=[])
    for groups in ([], [GENERATED], [GENERATED, elsewhere], [GENERATED, untraced]):
        assert phase_shares(groups).is_empty()
    assert phase_shares([GENERATED, elsewhere, READ]).height == 6


def test_the_title_says_what_each_phase_spends_most_on() -> None:
    assert finding(phase_shares([GENERATED, READ])) == (
        "Decode spends most on attention (75 %), prefill on down_proj (80 %)"
    )


def test_the_picture_shows_both_phases_in_their_colours() -> None:
    picture = svg(phases(phase_shares([GENERATED, READ]), ["the subtitle"]))
    for text in (DECODE, PREFILL, r.ATTENTION, "the subtitle", "75.0 %  ·  750 µs"):
        assert f">{text}<" in picture.replace("\u00a0", " ")
    assert all(colour in picture for colour in PHASE_COLOURS.values())
