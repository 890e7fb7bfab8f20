"""What a picture of waits shows: a curve a kind, reduced, on an axis with room around it."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.frames import table
from whichwall.analyze.charts.waits import waits
from whichwall.analyze.wait_shares import MOST_POINTS, wait_shares
from whichwall.schemas.chart import WaitShares

MS = 10**6


def test_a_share_is_of_the_waits_that_were_no_longer() -> None:
    found = wait_shares({"TTFT": pl.Series([4 * MS, 2 * MS]), "ITL": pl.Series([None, MS, 0])})

    assert_frame_equal(
        found,
        table(
            WaitShares,
            {"kind": "TTFT", "wait_ms": 2.0, "share": 0.5},
            {"kind": "TTFT", "wait_ms": 4.0, "share": 1.0},
            {"kind": "ITL", "wait_ms": 1.0, "share": 1.0},
        ),
    )


def test_many_waits_are_reduced_and_both_ends_stay() -> None:
    found = wait_shares({"ITL": pl.Series(range(MS, 6 * MS, 1000))})

    assert found.height == MOST_POINTS
    assert (found["wait_ms"][0], found["wait_ms"][-1], found["share"][-1]) == (1.0, 5.999, 1.0)


def test_a_kind_without_waits_has_no_curve() -> None:
    assert wait_shares({"ITL": pl.Series([], dtype=pl.Int64)}).is_empty()


@pytest.mark.parametrize("values", [[5 * MS], [5 * MS, 5 * MS], [MS, 900 * MS]])
def test_the_axis_has_room_around_what_was_waited(values: list[int]) -> None:
    chart = waits(wait_shares({"TTFT": pl.Series(values)}), "title", []).to_dict()

    x = chart["layer"][1]["encoding"]["x"]
    low, high = x["scale"]["domain"]
    assert low < min(values) / MS <= max(values) / MS < high
    assert all(low <= tick <= high for tick in x["axis"]["values"])
    assert len(x["axis"]["values"]) > 1
