from whichwall.analyze.charts.palette import ROLE_COLOURS
from whichwall.analyze.charts.roles import finding, roles
from whichwall.analyze.charts.theme import svg
from whichwall.analyze.role_times import role_times
from whichwall.schemas.chart import RoleTimes
from whichwall.schemas.summary import RoleTotal

TOTALS = [
    RoleTotal("norm", 2_000_000, 0.2, 40),
    RoleTotal("down_proj", 7_996_000, 0.7996, 8),
    RoleTotal("mask", 4_000, 0.0004, 4),
    RoleTotal("memory", 0, 0.0, 2),
]


def test_totals_become_times_of_one_step_the_largest_first() -> None:
    assert role_times(TOTALS, 4).select(
        RoleTimes.role, RoleTimes.time_us, RoleTimes.kernels, RoleTimes.label
    ).rows() == [
        ("down_proj", 1999.0, 2.0, "2.00 ms  ·  80.0 %"),
        ("norm", 500.0, 10.0, "500 µs  ·  20.0 %"),
        ("mask", 1.0, 1.0, "1.00 µs  ·  < 0.1 %"),
    ]


def test_the_title_states_what_takes_most_of_the_time() -> None:
    assert finding(role_times(TOTALS, 1), "the time") == (
        "down_proj, norm and mask take 100 % of the time"
    )
    assert finding(role_times(TOTALS[:1], 1), "the time") == "norm takes 20 % of the time"


def test_the_picture_labels_each_bar_in_its_roles_colour() -> None:
    picture = svg(roles(role_times(TOTALS, 4), "the time", "µs per step", ["the subtitle"]))

    for text in ("down_proj", "norm", "mask", "µs per step", "500 µs  ·  20.0 %"):
        assert f">{text}<" in picture.replace("\u00a0", " ")
    assert ROLE_COLOURS["down_proj"] in picture
    assert ROLE_COLOURS["lm_head"] not in picture
