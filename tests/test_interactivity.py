"""What each user gets against what all get: curves on paper, and points as they were measured."""

from dataclasses import replace

import polars as pl
import pytest

from tests.frames import Row, table
from whichwall.analyze.charts.interactivity import finding, interactivity
from whichwall.analyze.interactivity import curves, floors, measured
from whichwall.analyze.predict import predict, predicted_pass
from whichwall.analyze.predict_setting import Options, setting
from whichwall.schemas.chart import Interactivity
from whichwall.schemas.sweep import Sweep


def step(batch: int, step_ns: int | None, **more: object) -> Row:
    """Return a row of `Sweep`: a decode step at a context of 1,024."""
    return {
        Sweep.point: 0, Sweep.outcome: "done", Sweep.visits: 1, Sweep.passes: 1,
        Sweep.phase: "decode", Sweep.engine: "eager", Sweep.batch: batch,
        Sweep.context_tokens: 1024, Sweep.step_ns: step_ns, Sweep.floor_ns: 1_000_000, **more,
    }  # fmt: skip


def rows(*points: tuple[int, str | None, int, float]) -> pl.DataFrame:
    """Return `Interactivity` of (context, engine, batch, tokens/s of each)."""
    found: list[Row] = [
        {
            Interactivity.context_tokens: context,
            Interactivity.engine: engine,
            Interactivity.batch: batch,
            Interactivity.tokens_per_s_each: each,
            Interactivity.tokens_per_s: batch * each,
        }
        for context, engine, batch, each in points
    ]
    return table(Interactivity, *found)


def test_a_point_is_one_over_the_step_and_the_batch_over_it() -> None:
    found = measured(table(Sweep, step(4, 20_000_000), step(1, 10_000_000)))

    assert found.rows() == [(1024, "eager", 1, 100.0, 100.0), (1024, "eager", 4, 50.0, 200.0)]


def test_points_without_a_step_a_batch_or_a_context_are_left_out() -> None:
    unknown = [
        step(2, None),
        step(2, 5, **{Sweep.context_tokens: None}),
        step(2, 5, **{Sweep.phase: "prefill"}),
    ]

    assert measured(table(Sweep, *unknown)).height == 0


def test_the_floor_of_a_batch_is_drawn_once_whatever_ran_it() -> None:
    both = [step(2, 5_000_000), step(2, 9_000_000, **{Sweep.engine: "compile"})]

    assert floors(table(Sweep, *both)).rows() == [(1024, None, 2, 1000.0, 2000.0)]


def test_a_curve_has_the_predicted_step_of_each_batch_until_memory_is_full() -> None:
    asked = setting(Options(model="llama-3.1-8b", gpu="A10"))
    found = curves(asked, predict(asked).memory, [8192])

    each = [
        1e9 / predicted_pass(replace(asked, batch=batch, context_tokens=8192), "decode").step_ns
        for batch in (1, 2, 4)
    ]
    assert found.rows() == [
        (8192, None, batch, rate, batch * rate) for batch, rate in zip((1, 2, 4), each, strict=True)
    ]


def test_the_title_says_what_one_gets_and_what_all_get() -> None:
    paper = rows((1024, None, 1, 500.0), (1024, None, 64, 100.0))

    assert finding(paper) == (
        "One sequence gets at most 500 tokens/s; 64 together get 6,400 tokens/s, 100 each"
    )


def test_the_title_speaks_of_what_was_measured_by_the_engine_that_does_most() -> None:
    both = rows((1024, None, 1, 500.0), (1024, "a", 1, 20.0), (1024, "b", 2, 30.0))

    assert finding(both) == "Each of 2 sequences gets 30.0 tokens/s with b"


def test_the_roofline_is_dashed_and_what_was_measured_is_solid() -> None:
    chart = interactivity(rows((1024, None, 1, 500.0), (1024, "a", 1, 20.0)), "title", [])

    marks = [layer["mark"] for layer in chart.to_dict()["layer"]]
    dashes = [mark.get("strokeDash") for mark in marks if mark["type"] == "line"]
    assert dashes == [[4, 3], None]


@pytest.mark.parametrize("points", [[(1024, None, 1, 5.0)], [(0, "a", 1, 5.0), (9, "a", 1, 5.0)]])
def test_a_single_point_has_axes_with_room_around_it(
    points: list[tuple[int, str | None, int, float]],
) -> None:
    chart = interactivity(rows(*points), "title", []).to_dict()

    low, high = chart["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low < 5.0 < high
