"""Answer how a decode step grows with its context, and whether one long answer drifts."""

from collections.abc import Collection

from altair.typing import ChartType

from whichwall.analyze.charts.lines import Axes, lines
from whichwall.analyze.experiments import varied
from whichwall.analyze.quantities import count, duration, several, times
from whichwall.analyze.report.document import Block, Figure, Heading, Paragraph
from whichwall.analyze.report.experiments.drawn import NS_PER_MS, left_out, line, step_lines, swept
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.experiments.rows import (
    CACHE,
    FLOOR,
    GPU_TIME,
    RATES,
    TIMES_FLOOR,
    Row,
    number,
    of_phase,
    steps,
    table,
    timed,
)
from whichwall.analyze.report.experiments.turned import turned
from whichwall.analyze.report.experiments.words import (
    FIT,
    floors,
    not_timed,
    notes,
    nothing_timed,
    rise,
)
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.experiments import CONTEXT, Drift
from whichwall.schemas.passes import DECODE
from whichwall.schemas.points import LONG_GENERATION
from whichwall.schemas.sweep import Sweep


def answer(inputs: ReportInputs) -> str:
    """Say how the step changes from the shortest context to the longest, and what drift does."""
    rows = timed(varied(CONTEXT, inputs.sweep).iter_rows(named=True))
    if not rows:
        return nothing_timed(inputs)
    first, last = rows[0], rows[-1]
    said = (
        f"A decode step takes {duration(first[Sweep.step_ns])} with "
        f"{several(first[Sweep.context_tokens], 'token')} in the cache"
    )
    if first is not last:
        ratio = last[Sweep.step_ns] / first[Sweep.step_ns]
        said += (
            f" and {duration(last[Sweep.step_ns])} with {count(last[Sweep.context_tokens])} "
            f"({times(ratio)}), {_rise(inputs, rows)}{floors(first, last)}"
        )
    return " ".join(
        [f"{said}.", _drift(inputs.summary.drift), *not_timed(of_phase(inputs, DECODE))]
    )


def _rise(inputs: ReportInputs, rows: list[Row]) -> str:
    return rise(inputs.summary.knee, rows[0][Sweep.context_tokens], "token")


def _drift(found: Drift | None) -> str:
    if found is None:
        return "Drift over a long answer is not known: no answer of two times 32 steps was timed."
    return (
        f"In one answer of {count(found.steps + 1)} tokens the last {found.bin} steps take "
        f"{duration(found.last_ns)} each and the first {duration(found.first_ns)} "
        f"({times(found.ratio)})."
    )


def section(inputs: ReportInputs, figures: Collection[str]) -> list[Block]:
    """Return the table of contexts, and the chart of the step over them."""
    rows = [r for r in of_phase(inputs, DECODE) if r[Sweep.label] != LONG_GENERATION]
    first = number("context, tokens", Sweep.context_tokens)
    cells = (*steps("decode step"), GPU_TIME, CACHE, FLOOR, TIMES_FLOOR, *RATES)
    blocks: list[Block] = [Heading("The step against the context")]
    if CONTEXT in figures:
        says = "Solid: measured, with p10 to p90. Dashed: the floor."
        blocks.append(Figure(CONTEXT, says))
    blocks += [table(rows, first, cells), Paragraph(FIT), *turned(inputs)]
    blocks += notes(inputs, "What a GPU's memory would make of a step needs one.", floor=True)
    blocks += [Heading("One long answer"), Paragraph(_drift(inputs.summary.drift))]
    if "drift" in figures:
        blocks.append(Figure("drift", "Means of 32 steps after one another, in one long answer."))
    return blocks


def charts(inputs: ReportInputs) -> dict[str, ChartType]:
    """Return the step over the context, and over one long answer."""
    drawn: dict[str, ChartType] = {}
    rows = timed(varied(CONTEXT, inputs.sweep).iter_rows(named=True))
    if rows:
        axes = swept("tokens in the cache", "one decode step, ms", inputs.summary.knee)
        title = f"A decode step over the context, {_rise(inputs, rows)}"
        subtitle = [f"Batch {rows[0][Sweep.batch]}. Band: p10 to p90 of clean passes."]
        subtitle += left_out(of_phase(inputs, DECODE), Sweep.context_tokens)
        drawn[CONTEXT] = lines(step_lines(rows, Sweep.context_tokens), axes, title, subtitle)
    found = inputs.summary.drift
    if found is not None:
        drawn["drift"] = _drift_chart(found)
    return drawn


def _drift_chart(found: Drift) -> ChartType:
    points = [
        {"at": (place + 1) * found.bin, "ns": took} for place, took in enumerate(found.binned_ns)
    ]
    rows = line(points, "at", "measured", lambda row: row["ns"] / NS_PER_MS)
    axes = Axes("tokens generated so far", "one decode step, ms", doubling=False)
    title = f"The last {found.bin} steps of a long answer take {times(found.ratio)} the first"
    return lines(rows, axes, title, [f"Each point is the mean of {found.bin} steps."])


EXPERIMENT = Experiment(answer, section, charts)
