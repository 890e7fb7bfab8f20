"""Say in words where a sweep rises, how its floor moves, how points ended and what is not known."""

from collections.abc import Callable, Iterable

import polars as pl

from whichwall.analyze.quantities import NOT_KNOWN, duration, several
from whichwall.analyze.report.document import Block, Paragraph
from whichwall.analyze.report.experiments.rows import Row, ended, ended_briefly, label
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.knee import Knee
from whichwall.schemas.passes import DECODE, PREFILL
from whichwall.schemas.points import DONE, Points
from whichwall.schemas.sweep import Sweep

FIT = (
    "Where it starts to rise is found by a fit: flat up to one of the values measured, then a "
    "straight rise, or one with the square where a straight one misses by over a tenth, at the "
    "least squared relative error. A rise of no more than a tenth, or than the visits of one "
    "point differ by, is none."
)


def rise(found: Knee | None, first: int, unit: str) -> str:
    """Say where a sweep that begins at `first` starts to rise; `unit` is one of what varies."""
    if found is None:
        return "with no clear rise"
    if found.at == first:
        return "rising from the start"
    return f"flat up to {several(found.at, unit)}"


def floors(first: Row, last: Row) -> str:
    """Say how the floor changes over a sweep, if it is known."""
    low, high = first[Sweep.floor_ns], last[Sweep.floor_ns]
    if low is None or high is None:
        return ""
    return f", while its floor goes from {duration(low)} to {duration(high)}"


def not_timed(rows: Iterable[Row], name: Callable[[Row], str] = label) -> list[str]:
    """Return a sentence of the points that have no time, with the reason for each."""
    said = [f"{name(row)} ({ended_briefly(row)})" for row in rows if row[Sweep.step_ns] is None]
    return [f"Not timed: {'; '.join(said)}."] if said else []


def nothing_timed(inputs: ReportInputs) -> str:
    """Say that a question has no answer, and why."""
    rows = inputs.sweep.iter_rows(named=True)
    return " ".join(["Not known: no point of this run was timed.", *not_timed(rows)])


def notes(inputs: ReportInputs, needs_gpu: str, *, floor: bool = False) -> list[Block]:
    """Return what limits a table: no GPU, weights that come from a cache, a floor that lacks.

    Of a floor only where the table has one.
    """
    found: list[str] = []
    if not inputs.manifest.gpus:
        found.append(f"This run used no GPU. {needs_gpu}")
    rows = inputs.sweep.filter(pl.col(Sweep.phase).is_in([PREFILL, DECODE]))
    if floor and rows.height and rows[Sweep.floor_ns].null_count() == rows.height:
        found.append(f"The floor is {NOT_KNOWN}: {no_floor(inputs)}")
    if floor and rows[Sweep.cached_weights].any():
        found.append(
            "The weights are under four times the last-level cache and need not come from memory "
            "at every step: a floor of bytes is none here."
        )
    broken = rows.filter(pl.col(Sweep.outcome) != DONE)
    found += [
        f"{label(row)}, after it had been timed: {ended(row)}."
        for row in broken.unique(Sweep.point, keep="first", maintain_order=True).iter_rows(
            named=True
        )
    ]
    said = inputs.points.filter(
        (pl.col(Points.outcome) == DONE) & pl.col(Points.reason).is_not_null()
    )
    found += [f"{label(row)}: {row[Points.reason]}." for row in said.iter_rows(named=True)]
    return [Paragraph(text) for text in found]


def no_floor(inputs: ReportInputs) -> str:
    """Say why there is no floor."""
    model = inputs.summary.model or inputs.manifest.model
    if model is None:
        return "the model's dimensions are not known, so its bytes and FLOPs cannot be counted."
    if any((facts.world_size or 1) > 1 for facts in inputs.manifest.ranks):
        return "how the model is split over ranks is not known."
    if model.quantization is not None:
        return f"the weights are quantized ({model.quantization}), so their bytes are not known."
    return "no bandwidth is known for this device, neither measured nor from a datasheet."
