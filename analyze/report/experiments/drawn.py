"""Bring points onto the axes of a chart: milliseconds of a step with its spread, floors beside."""

from collections.abc import Callable, Iterable

import polars as pl

from whichwall.analyze.charts.lines import Axes
from whichwall.analyze.quantities import NOT_KNOWN, count, duration
from whichwall.analyze.report.experiments.rows import Row, ended_briefly
from whichwall.schemas.chart import Bars, Lines
from whichwall.schemas.knee import Knee
from whichwall.schemas.run import frame
from whichwall.schemas.sweep import Sweep

NS_PER_MS = 1e6
# What fits beside the names of a chart; its table has the whole.
MOST_LETTERS = 100
MEASURED, FLOOR = "measured", "floor"


def line(
    rows: Iterable[Row], x: str, name: str, value: Callable[[Row], float | None]
) -> pl.DataFrame:
    """Return `Lines` of one measured quantity without a band; rows without it are left out."""
    pairs = [(row[x], value(row)) for row in rows if row[x] is not None]
    return frame(
        Lines,
        [
            {Lines.x: at, Lines.y: y, Lines.series: name, Lines.floor: False}
            for at, y in pairs
            if y is not None
        ],
    )


def step_lines(rows: Iterable[Row], x: str) -> pl.DataFrame:
    """Return `Lines` of a step in ms with the band of p10 to p90, and of its floor."""
    known = [row for row in rows if row[x] is not None and row[Sweep.step_ns] is not None]
    measured = [
        {
            Lines.x: row[x],
            Lines.y: row[Sweep.step_ns] / NS_PER_MS,
            Lines.low: row[Sweep.step_ns_p10] / NS_PER_MS,
            Lines.high: row[Sweep.step_ns_p90] / NS_PER_MS,
            Lines.series: MEASURED,
            Lines.floor: False,
        }
        for row in known
    ]
    floors = [
        {
            Lines.x: row[x],
            Lines.y: row[Sweep.floor_ns] / NS_PER_MS,
            Lines.series: FLOOR,
            Lines.floor: True,
        }
        for row in known
        if row[Sweep.floor_ns] is not None
    ]
    return frame(Lines, [*measured, *floors])


def swept(x: str, y: str, found: Knee | None) -> Axes:
    """Return the axes of a sweep, with its knee pointed at."""
    if found is None:
        return Axes(x, y)
    return Axes(x, y, mark=found.at, mark_says=f"flat up to {count(found.at)}")


def bar(row: Row, name: str, group: str) -> dict[str, object]:
    """Return a row of `Bars`: a step in ms, or how the point ended."""
    if row[Sweep.step_ns] is None:
        return {Bars.name: name, Bars.group: group, Bars.label: _fitting(ended_briefly(row))}
    floor = row[Sweep.floor_ns]
    return {
        Bars.name: name,
        Bars.group: group,
        Bars.value: row[Sweep.step_ns] / NS_PER_MS,
        Bars.low: row[Sweep.step_ns_p10] / NS_PER_MS,
        Bars.high: row[Sweep.step_ns_p90] / NS_PER_MS,
        Bars.floor: None if floor is None else floor / NS_PER_MS,
        Bars.label: duration(row[Sweep.step_ns]),
    }


def _fitting(words: str) -> str:
    return words if len(words) <= MOST_LETTERS else f"{words[: MOST_LETTERS - 1]}…"


def left_out(rows: Iterable[Row], x: str) -> list[str]:
    """Return the words under a title that name the values without a time."""
    values = [row[x] for row in rows if row[Sweep.step_ns] is None]
    said = ", ".join(NOT_KNOWN if value is None else count(value) for value in values)
    return [_fitting(f"Not timed, for reasons in the table: {said}.")] if said else []
