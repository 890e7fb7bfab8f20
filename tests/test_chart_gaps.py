import json

import polars as pl
import pytest

from whichwall.analyze.charts.gaps import finding, gaps
from whichwall.analyze.charts.theme import spec, svg
from whichwall.analyze.gap_lengths import gap_lengths, median_gap_us
from whichwall.schemas.chart import GapLengths
from whichwall.schemas.gaps import DEVICE, GRAPH, LAUNCH, Gaps
from whichwall.schemas.run import frame


def of(*rows: tuple[int, str]) -> pl.DataFrame:
    return frame(
        Gaps,
        [
            {"point": 0, "rank": 0, "start_ns": 0, "dur_ns": length, "cause": cause,
             "before_name": "a", "after_name": "b"}
            for length, cause in rows
        ],
    )  # fmt: skip


def test_bins_weigh_gaps_by_their_time_and_stack_causes_in_order() -> None:
    found = gap_lengths(of((1000, DEVICE), (1000, LAUNCH), (1000, LAUNCH), (7000, LAUNCH)))

    assert found.select(
        GapLengths.cause, GapLengths.count, GapLengths.total_ns, GapLengths.low, GapLengths.high
    ).rows() == [
        (LAUNCH, 2, 2000, 0.0, 20.0),
        (DEVICE, 1, 1000, 20.0, 30.0),
        (LAUNCH, 1, 7000, 0.0, 70.0),
    ]


def test_a_gap_lies_between_the_edges_of_its_bin() -> None:
    for length in (1, 9, 10, 999, 1000, 123_456_789):
        low, high = gap_lengths(of((length, LAUNCH))).row(0)[2:4]

        assert low <= length / 1000 * (1 + 1e-9)
        assert length / 1000 < high


def test_a_gap_of_no_length_never_reaches_the_logarithmic_axis() -> None:
    assert gap_lengths(of((0, LAUNCH))).is_empty()
    assert median_gap_us(of((0, LAUNCH))) is None


def test_the_median_leaves_out_nothing_but_empty_gaps() -> None:
    assert median_gap_us(of((0, LAUNCH), (1000, LAUNCH), (4000, DEVICE))) == 2.5


def test_the_title_states_the_cause_with_most_idle_time() -> None:
    found = gap_lengths(of((9400, GRAPH), (600, LAUNCH)))

    assert finding(found) == "94 % of the GPU's idle time lies between the nodes of a graph replay"


def test_the_picture_has_units_a_legend_and_no_broken_number() -> None:
    chart = gaps(gap_lengths(of((416, GRAPH), (21_000, LAUNCH))), 10.7, ["the subtitle"])

    picture = svg(chart)

    for text in ("length of a gap, µs (logarithmic)", "% of all idle time", "launched too late",
                 "between nodes of a graph", "median gap 10.7 µs", "98 %"):  # fmt: skip
        assert f">{text}<" in picture
    assert "NaN" not in picture
    json.dumps(spec(chart), allow_nan=False)


@pytest.mark.parametrize("causes", [(LAUNCH,), (GRAPH, LAUNCH, DEVICE)])
def test_bars_add_up_to_all_idle_time(causes: tuple[str, ...]) -> None:
    found = gap_lengths(of(*((500 * (7 * place + 1), causes[place % len(causes)])
                             for place in range(50))))  # fmt: skip

    assert (found[GapLengths.high] - found[GapLengths.low]).sum() == pytest.approx(100)
