"""Say what would move a step: each change with its prediction, its assumption and its score."""

from collections.abc import Mapping
from typing import Any

from whichwall.analyze.quantities import count, duration, signed_percent
from whichwall.analyze.report.answer import sentence
from whichwall.analyze.report.document import Block, Heading, Paragraph, Table, Text
from whichwall.analyze.report.experiments.rows import NOTHING, Cell, Row
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.subject import Subject
from whichwall.analyze.scores import BATCHES, MADE_BY
from whichwall.schemas.moves import (
    BATCH,
    FUSED_ATTENTION,
    FUSED_ELEMENTWISE,
    FUSED_GRAPH,
    GRAPH,
    HALF_WEIGHTS,
    Move,
)
from whichwall.schemas.sweep import Sweep

NAMES = {
    GRAPH: "as a CUDA graph",
    FUSED_ATTENTION: "attention fused",
    FUSED_ELEMENTWISE: "elementwise work fused",
    FUSED_GRAPH: "elementwise work fused, as a CUDA graph",
    HALF_WEIGHTS: "half the bytes per weight",
}


def moves(inputs: ReportInputs, chosen: Subject) -> list[Block]:
    """Return a row per change; batches beyond the usual stand in the table of a sweep."""
    found = [move for move in inputs.summary.moves if move.name != BATCH or move.batch in BATCHES]
    if not found:
        return []
    scored = any(move.measured_ns is not None for move in found)
    head = ("change", "predicted step", *(_SCORES if scored else ()), "resting on")
    rows = tuple(_row(move, scored=scored) for move in found)
    said = (
        f"Predictions for the {chosen.step} of this report"
        + (", beside the same step of this run with that change made" if scored else "")
        + ". Each changes one thing and leaves the rest as it is."
    )
    align = "lr" + ("rrrr" if scored else "") + "l"
    return [
        Heading("What would move it"), Paragraph(said), Table(head=head, rows=rows, align=align)
    ]  # fmt: skip


_SCORES = ("measured", "error", "GPU busy, predicted", "GPU busy, traced")


def _row(move: Move, *, scored: bool) -> tuple[Text, ...]:
    name = f"batch {count(move.batch)}" if move.name == BATCH else NAMES[move.name]
    predicted = duration(move.predicted_ns) if move.predicted_ns is not None else NOTHING
    scores: tuple[Text, ...] = ()
    if scored:
        measured = NOTHING
        if move.measured_ns is not None:
            measured = f"{duration(move.measured_ns)} ({move.measured_by})"
        scores = (
            measured,
            _or_nothing(move.error, signed_percent(move.error)),
            _or_nothing(move.predicted_busy_ns, duration(move.predicted_busy_ns)),
            _or_nothing(move.measured_busy_ns, duration(move.measured_busy_ns)),
        )
    return (name, predicted, *scores, sentence(move.assumption))


def _or_nothing(value: float | None, said: str) -> str:
    return NOTHING if value is None else said


def predicted_by_batch(inputs: ReportInputs) -> tuple[Cell, ...]:
    """Return columns of the step predicted at each batch, where any was also measured."""
    return _columns(inputs, {move.batch: move for move in _measured(inputs, BATCH)}, Sweep.batch)


def predicted_by_engine(inputs: ReportInputs) -> tuple[Cell, ...]:
    """Return columns of the step predicted for each engine, where any was also measured."""
    found = {MADE_BY[name]: move for name in MADE_BY for move in _measured(inputs, name)}
    return _columns(inputs, found, Sweep.engine)


def _measured(inputs: ReportInputs, name: str) -> list[Move]:
    return [m for m in inputs.summary.moves if m.name == name and m.measured_ns is not None]


def _columns(inputs: ReportInputs, found: Mapping[Any, Move], by: str) -> tuple[Cell, ...]:
    if not found:
        return ()
    start = inputs.summary.steps.groups[0].point

    def predicted(row: Row) -> str:
        if row[Sweep.point] == start:
            return "from here"
        move = found.get(row[by])
        return duration(move.predicted_ns) if move else NOTHING

    def error(row: Row) -> str:
        move = None if row[Sweep.point] == start else found.get(row[by])
        return signed_percent(move.error) if move else NOTHING

    return ("predicted", predicted), ("error", error)
