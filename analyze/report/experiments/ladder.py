"""Answer what each rung makes of the same step: eager, static cache, graph, compiled."""

from collections.abc import Collection

from altair.typing import ChartType

from whichwall.analyze.charts.bars import Scale, bars
from whichwall.analyze.quantities import duration, times
from whichwall.analyze.report.document import Block, Figure, Heading
from whichwall.analyze.report.experiments.drawn import bar
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.experiments.rows import (
    FLOOR,
    GPU_TIME,
    MEMORY,
    RATES,
    TIMES_FLOOR,
    Cell,
    Row,
    of_phase,
    steps,
    table,
    timed,
    traced,
)
from whichwall.analyze.report.experiments.words import not_timed, notes, nothing_timed
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.moves import predicted_by_engine
from whichwall.schemas.chart import Bars
from whichwall.schemas.experiments import LADDER
from whichwall.schemas.passes import DECODE
from whichwall.schemas.run import frame
from whichwall.schemas.sweep import Sweep

# A shorter setup is not felt.
WORTH_SAYING_NS = 100 * 10**6

SETUP: Cell = ("setup", lambda row: duration(row[Sweep.setup_ns]))


def rung(row: Row) -> str:
    """Return what a rung is called: its label, else its engine."""
    return str(row[Sweep.label] or row[Sweep.engine] or f"point {row[Sweep.point]}")


def answer(inputs: ReportInputs) -> str:
    """Say which rung is fastest, by how much, and how far from the floor."""
    rows = timed(of_phase(inputs, DECODE))
    if not rows:
        return nothing_timed(inputs)
    first, best = rows[0], min(rows, key=lambda row: row[Sweep.step_ns])
    said = f"The fastest rung is {rung(best)}: {duration(best[Sweep.step_ns])} a step"
    if best[Sweep.times_floor] is not None:
        floor = duration(best[Sweep.floor_ns])
        said += f", {times(best[Sweep.times_floor])} its floor of {floor}"
    else:
        said += ", and how far that is from a floor is not known"
    if best is not first:
        faster = first[Sweep.step_ns] / best[Sweep.step_ns]
        said += f"; {rung(first)} takes {duration(first[Sweep.step_ns])}, {times(faster)} as long"
    if (best[Sweep.setup_ns] or 0) > WORTH_SAYING_NS:
        said += f". Setting it up took {duration(best[Sweep.setup_ns])}"
    return " ".join([f"{said}.", *not_timed(of_phase(inputs, DECODE), rung)])


def section(inputs: ReportInputs, figures: Collection[str]) -> list[Block]:
    """Return the table of rungs, and their bars."""
    rows = of_phase(inputs, DECODE)
    cells = (
        *steps("decode step"), *predicted_by_engine(inputs), GPU_TIME, SETUP, MEMORY, FLOOR,
        TIMES_FLOOR, *RATES, *traced(rows),
    )  # fmt: skip
    blocks: list[Block] = [Heading("The same step, rung by rung")]
    if LADDER in figures:
        blocks.append(Figure(LADDER, "Bars: clean steps, thin line p10 to p90, tick the floor."))
    blocks.append(table(rows, ("rung", rung), cells))
    return blocks + notes(inputs, "What launches cost and a graph saves needs one.", floor=True)


def charts(inputs: ReportInputs) -> dict[str, ChartType]:
    """Return a bar per rung."""
    rows = of_phase(inputs, DECODE)
    known = timed(rows)
    if not known:
        return {}
    best = min(known, key=lambda row: row[Sweep.step_ns])
    drawn = frame(Bars, [bar(row, rung(row), DECODE) for row in rows])
    title = f"{rung(best)} is the fastest rung: {duration(best[Sweep.step_ns])} a step"
    if best[Sweep.times_floor] is not None:
        title += f", {times(best[Sweep.times_floor])} its floor"
    subtitle = ["Thin line: p10 to p90 of clean steps. Tick: the floor."]
    return {LADDER: bars(drawn, Scale("one decode step, ms"), title, subtitle)}


EXPERIMENT = Experiment(answer, section, charts)
