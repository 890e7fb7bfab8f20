"""Answer which attention backends this card accepts for this model, and how fast each is."""

from collections.abc import Collection

from altair.typing import ChartType

from whichwall.analyze.charts.bars import Scale, bars
from whichwall.analyze.quantities import duration, several, significant
from whichwall.analyze.report.document import Block, Figure, Heading, Table, Text
from whichwall.analyze.report.experiments.drawn import bar
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.experiments.rows import (
    NOTHING,
    Row,
    ended,
    label,
    of_phase,
    timed,
)
from whichwall.analyze.report.experiments.words import not_timed, notes, nothing_timed
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.chart import Bars
from whichwall.schemas.experiments import ATTENTION
from whichwall.schemas.passes import DECODE, PREFILL
from whichwall.schemas.run import frame
from whichwall.schemas.sweep import Sweep

BOTH = (PREFILL, DECODE)


def backend(row: Row) -> str:
    """Return what a backend is called."""
    return str(row[Sweep.label] or row[Sweep.attention] or label(row))


def answer(inputs: ReportInputs) -> str:
    """Say how many were accepted, which is fastest in each phase, and which were refused."""
    accepted = {row[Sweep.point] for phase in BOTH for row in timed(of_phase(inputs, phase))}
    if not accepted:
        return nothing_timed(inputs)
    every = inputs.sweep[Sweep.point].n_unique()
    device = "This card" if inputs.manifest.gpus else "This machine, without a GPU,"
    said = (
        f"{device} accepts {len(accepted)} of {several(every, 'attention backend')} for this model"
    )
    fastest = [_fastest(inputs, phase) for phase in BOTH]
    said += "".join(f"; {words}" for words in fastest if words)
    return " ".join([f"{said}.", *not_timed(of_phase(inputs, PREFILL), backend)])


def _fastest(inputs: ReportInputs, phase: str) -> str:
    rows = timed(of_phase(inputs, phase))
    if not rows:
        return ""
    best = min(rows, key=lambda row: row[Sweep.step_ns])
    slowest = max(rows, key=lambda row: row[Sweep.step_ns])
    said = f"the fastest {phase} is {backend(best)}, {duration(best[Sweep.step_ns])}"
    if slowest is best:
        return said
    return f"{said}, the slowest {backend(slowest)}, {duration(slowest[Sweep.step_ns])}"


def section(inputs: ReportInputs, figures: Collection[str]) -> list[Block]:
    """Return the table of backends, and their bars."""
    blocks: list[Block] = [Heading("Attention backends, one forced at a time")]
    if ATTENTION in figures:
        blocks.append(Figure(ATTENTION, "Clean passes, thin line p10 to p90."))
    head = ("backend", "outcome", "prefill", "p10 to p90", "TFLOP/s", "decode step", "p10 to p90")
    points = inputs.sweep[Sweep.point].unique(maintain_order=True)
    rows = tuple(_row(inputs, point) for point in points)
    blocks.append(Table(head=head, rows=rows, align="llrrrrr"))
    return blocks + notes(inputs, "Which backends a GPU accepts needs one.")


def _row(inputs: ReportInputs, point: int) -> tuple[Text, ...]:
    prefill, decode = (
        next((row for row in of_phase(inputs, phase) if row[Sweep.point] == point), None)
        for phase in BOTH
    )
    known = prefill or decode
    assert known is not None  # each point has a row in at least one phase
    outcome = "accepted" if known[Sweep.step_ns] is not None else ended(known)
    rate = prefill[Sweep.achieved_tflops] if prefill else None
    return (
        backend(known),
        outcome,
        *_time(prefill),
        NOTHING if known[Sweep.step_ns] is None else significant(rate),
        *_time(decode),
    )


def _time(row: Row | None) -> tuple[str, str]:
    if row is None or row[Sweep.step_ns] is None:
        return NOTHING, NOTHING
    spread = f"{duration(row[Sweep.step_ns_p10])} to {duration(row[Sweep.step_ns_p90])}"
    return duration(row[Sweep.step_ns]), spread


def charts(inputs: ReportInputs) -> dict[str, ChartType]:
    """Return a bar per backend and phase; a refusal is written out."""
    phases = [phase for phase in BOTH if timed(of_phase(inputs, phase))]
    if not phases:
        return {}
    drawn = [
        bar(row, backend(row), row[Sweep.phase] or phases[0])
        for row in inputs.sweep.iter_rows(named=True)
        if row[Sweep.phase] in (*phases, None)
    ]
    title = _fastest(inputs, phases[0])
    title = title[:1].upper() + title[1:]
    subtitle = ["Thin line: p10 to p90 of clean passes. Tick: the floor."]
    scale = Scale("one pass, ms")
    return {ATTENTION: bars(frame(Bars, drawn), scale, title, subtitle)}


EXPERIMENT = Experiment(answer, section, charts)
