"""What a roofline shows: roles under the roof, named without overlaps."""

import re

import msgspec
import polars as pl
import pytest

from tests.frames import table
from tests.step_groups import a_group, role
from tests.test_walls import a_floor
from whichwall.analyze.charts.roofline import LABEL_PX, Roof
from whichwall.analyze.charts.roofline import roofline as drawn
from whichwall.analyze.charts.theme import svg
from whichwall.analyze.roofline import ridge, roof, roofline
from whichwall.schemas.chart import Roofline

FLOOR = msgspec.structs.replace(a_floor(1000), tflops=800.0)  # and 4,000 GB/s


def test_a_role_stands_at_its_intensity_and_its_share_of_the_roof() -> None:
    group = a_group(
        achieved_gbps=40.0,
        achieved_tflops=0.04,
        roles=[
            role("lm_head", 10, achieved_gbps=2000.0, achieved_tflops=2.0),
            role("down_proj", 10, achieved_gbps=1000.0, achieved_tflops=400.0),
            role("norm", 10),
        ],
    )

    assert roofline(group, FLOOR).rows() == [
        ("lm_head", False, 1.0, 2.0, 0.5),
        ("down_proj", False, 400.0, 400.0, 0.5),
        ("clean decode step", True, 1.0, 0.04, 0.01),
    ]


def test_without_a_ceiling_there_is_no_roof_to_stand_under() -> None:
    group = a_group(roles=[role("lm_head", 10, achieved_gbps=2000.0, achieved_tflops=2.0)])

    assert roofline(group, msgspec.structs.replace(FLOOR, tflops=None)).is_empty()
    assert roofline(group, msgspec.structs.replace(FLOOR, bandwidth_gbps=None)).is_empty()


def test_the_roof_bends_at_the_ridge() -> None:
    assert ridge(4000.0, 800.0) == 200.0
    assert roof(200.0, 4000.0, 800.0) == roof(5000.0, 4000.0, 800.0) == 800.0
    assert roof(100.0, 4000.0, 800.0) == 400.0


def many(intensity: float, rates: list[float]) -> pl.DataFrame:
    return table(
        Roofline,
        *(
            {"name": f"role {place}", "step": False, "intensity": intensity, "tflops": rate,
             "of_roof": 0.5}
            for place, rate in enumerate(rates)
        ),
    )  # fmt: skip


@pytest.mark.parametrize("intensity", [0.5, 1.0, 900.0])
def test_names_of_points_at_one_place_do_not_overlap(intensity: float) -> None:
    limits = Roof(4000.0, 800.0, "4,000 GB/s", "800 TFLOP/s")
    picture = svg(drawn(many(intensity, [1.0] * 9), limits, "the title", []))

    heights = [
        float(y)
        for y, text in re.findall(r"translate\([\d.]+,([\d.]+)\)[^>]*>(role \d)", picture)
        if text
    ]
    assert len(heights) == 9
    apart = [b - a for a, b in zip(sorted(heights), sorted(heights)[1:], strict=False)]
    assert min(apart) >= LABEL_PX - 0.01
