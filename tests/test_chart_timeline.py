import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.report_inputs import EPOCH, EVERY_NS, KERNEL_NS, STEP_NS, US, report_inputs
from whichwall.analyze.busy_bins import MOST_MARKS, Window, busy_bins
from whichwall.analyze.charts.theme import svg
from whichwall.analyze.charts.timeline import timeline as draw
from whichwall.analyze.timeline import (
    CALLS,
    IDLE,
    MOST_STREAMS,
    OPERATORS,
    Timeline,
    median_step,
    timeline,
)
from whichwall.schemas.activities import Activities
from whichwall.schemas.chart import BusyBins, LaneIntervals, Spans
from whichwall.schemas.gaps import LAUNCH, Gaps
from whichwall.schemas.launches import Launches
from whichwall.schemas.ops import Ops
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import frame
from whichwall.schemas.steps import Steps

STEP = Window(0, 0, 0, EPOCH, EPOCH + STEP_NS)


def reduced(window: Window = STEP) -> Timeline:
    run = report_inputs()
    made = timeline(window, run.activities, run.roles, run.gaps, run.ops, run.launches)
    assert made is not None
    return made


def intervals(*rows: tuple[str, str, int, int]) -> pl.DataFrame:
    return frame(
        LaneIntervals,
        [{"lane": n, "key": k, "start_ns": s, "end_ns": e, "name": ""} for n, k, s, e in rows],
    )


def shares(bins: pl.DataFrame) -> list[tuple[int, str, float, float]]:
    return bins.select(BusyBins.bin, BusyBins.key, BusyBins.low, BusyBins.high).rows()


def test_a_bin_holds_the_share_of_time_that_each_role_covers() -> None:
    window = Window(0, 0, 0, 0, 100)
    work = intervals(("s", "norm", 0, 10), ("s", "attention", 20, 25), ("s", "norm", 30, 35))

    assert shares(busy_bins(work, window, 2, ["s"])) == [
        (0, "norm", 0.0, 0.3),
        (0, "attention", 0.3, 0.4),
    ]


def test_an_interval_over_several_bins_is_divided_among_them() -> None:
    window = Window(0, 0, 0, 0, 100)

    assert shares(busy_bins(intervals(("s", "norm", 25, 80)), window, 4, ["s"])) == [
        (1, "norm", 0.0, 1.0),
        (2, "norm", 0.0, 1.0),
        (3, "norm", 0.0, 0.2),
    ]


def test_overlapping_work_never_fills_more_than_the_bin() -> None:
    window = Window(0, 0, 0, 0, 100)
    work = intervals(("s", "norm", 0, 100), ("s", "attention", 0, 100))

    assert shares(busy_bins(work, window, 1, ["s"])) == [
        (0, "norm", 0.0, 0.5),
        (0, "attention", 0.5, 1.0),
    ]


def test_a_busy_gpu_is_reduced_to_a_bounded_number_of_marks() -> None:
    names = ("norm", "qkv_proj", "rope", "attention", "o_proj", "down_proj", "mask", "residual")
    count = 40_000
    starts = [EPOCH + 100 * place for place in range(count)]
    activities = frame(
        Activities,
        [
            {"point": 0, "rank": 0, "device": 0, "stream": place % 9, "kind": "kernel",
             "name": "k", "start_ns": start, "end_ns": start + 60, "dur_ns": 60, "step": 0}
            for place, start in enumerate(starts)
        ],
    )  # fmt: skip
    roles = frame(
        Roles,
        [
            {"rank": 0, "start_ns": start, "dur_ns": 60, "name": "k",
             "role": names[place % len(names)], "method": "shape", "confidence": 1.0}
            for place, start in enumerate(starts)
        ],
    )  # fmt: skip
    window = Window(0, 0, 0, EPOCH, starts[-1] + 60)
    empty = frame(Ops, []), frame(Launches, [])

    made = timeline(window, activities, roles, frame(Gaps, []), *empty)

    assert made is not None
    assert made.busy.height <= MOST_MARKS
    assert made.marks.height <= 200
    assert (len(made.streams), made.streams_left_out) == (MOST_STREAMS, 9 - MOST_STREAMS)


def test_the_stretch_is_the_layer_with_every_activity_gap_and_call() -> None:
    made = reduced()

    found = made.marks.group_by(Spans.lane).agg(pl.col(Spans.count).sum()).sort(Spans.lane)
    assert made.layer == 0
    assert dict(found.iter_rows()) == {"stream 7": 3, IDLE: 3, OPERATORS: 2, CALLS: 2}


def test_a_layer_met_twice_is_shown_once_and_unbroken() -> None:
    run = report_inputs()
    roles = run.roles.with_columns(pl.Series(Roles.layer, [0, 0, 0, None, 0, 0], pl.Int32))
    whole = Window(0, 0, 0, EPOCH, EPOCH + 2 * STEP_NS)

    made = timeline(whole, run.activities, roles, run.gaps, run.ops, run.launches)

    assert made is not None
    assert made.layer == 0
    assert made.stretch.end_ns < EPOCH + STEP_NS


def test_marks_are_in_microseconds_since_the_start_of_the_step() -> None:
    work = reduced().marks.filter(pl.col(Spans.lane) == "stream 7")

    expected = [(place * EVERY_NS / US, (place * EVERY_NS + KERNEL_NS) / US) for place in range(3)]
    assert work.select(Spans.from_us, Spans.to_us).rows() == expected


def test_an_operator_inside_of_another_is_not_drawn() -> None:
    run = report_inputs()
    inner = run.ops.with_columns(pl.col(Ops.start_ns) + 1, pl.col(Ops.dur_ns) - 2)
    both = pl.concat([run.ops, inner])

    made = timeline(STEP, run.activities, run.roles, run.gaps, both, run.launches)

    assert made is not None
    assert_frame_equal(made.marks, reduced().marks)


def test_neighbours_of_one_role_closer_than_a_pixel_become_one_mark() -> None:
    run = report_inputs()
    # A second copy of each kernel, one nanosecond behind it.
    late = run.activities.with_columns(
        pl.col(Activities.start_ns) + KERNEL_NS + 1, pl.col(Activities.end_ns) + KERNEL_NS + 1
    )
    activities = pl.concat([run.activities, late])

    made = timeline(
        STEP, activities, pl.concat([run.roles, run.roles]), run.gaps, run.ops, run.launches
    )

    assert made is not None
    work = made.marks.filter(pl.col(Spans.lane) == "stream 7")
    assert work.get_column(Spans.count).to_list() == [2, 2, 2]
    assert work.get_column(Spans.dur_us).to_list() == pytest.approx([8.0, 8.0, 8.0])


def test_without_gpu_work_there_is_no_timeline() -> None:
    run = report_inputs()
    elsewhere = Window(0, 0, 5, EPOCH, EPOCH + STEP_NS)

    assert timeline(elsewhere, run.activities, run.roles, run.gaps, run.ops, run.launches) is None


def test_the_median_step_is_the_one_of_median_window() -> None:
    windows = [30, 10, 20, 40, None]
    steps = frame(
        Steps,
        [
            {"point": 0, "rank": 0, "step": number, "found_by": "annotation", "window_ns": window}
            for number, window in enumerate(windows)
        ],
    )

    row = median_step(steps)
    assert row is not None
    assert row[Steps.step] == 2


def test_the_picture_shows_lanes_roles_and_cause_and_escapes_names() -> None:
    run = report_inputs(names=("<b>&", "attention_kernel", "down_kernel"))
    made = timeline(STEP, run.activities, run.roles, run.gaps, run.ops, run.launches)
    assert made is not None

    picture = svg(draw(made, "step", "the title", ["the subtitle"]))

    for text in ("the title", "CPU operators", "launch calls", "GPU stream 7", "GPU idle",
                 "attention", "launched too late"):  # fmt: skip
        assert f">{text}<" in picture
    assert "<b>" not in picture
    assert "NaN" not in picture


def test_gaps_keep_their_cause_on_the_idle_lane() -> None:
    idle = reduced().marks.filter(pl.col(Spans.lane) == IDLE)

    assert idle.get_column(Spans.key).unique().to_list() == [LAUNCH]
    # The third gap begins in the margin of the stretch and is cut at its end.
    assert idle.get_column(Spans.dur_us).to_list() == pytest.approx([26.0, 26.0, 1.28])
