"""Draw what a step stands at: its waterfall, the roofline of its roles, what binds over sizes."""

import polars as pl
from altair.typing import ChartType

from whichwall.analyze.binding import binding as cells_of
from whichwall.analyze.charts.binding import binding
from whichwall.analyze.charts.roofline import Roof, roofline
from whichwall.analyze.charts.waterfall import waterfall
from whichwall.analyze.floor import MEASURED
from whichwall.analyze.floors import dtype_of
from whichwall.analyze.quantities import count, duration, percent, with_unit
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.subject import Subject
from whichwall.analyze.roofline import roofline as points_of
from whichwall.analyze.thresholds import MAJORITY
from whichwall.analyze.waterfall import part_name
from whichwall.analyze.waterfall import waterfall as lined_up
from whichwall.schemas.account import CLEAN_STEP, Account
from whichwall.schemas.chart import Binding, Roofline
from whichwall.schemas.errors import InputError
from whichwall.schemas.passes import DECODE
from whichwall.schemas.points import Points
from whichwall.schemas.summary import Floor
from whichwall.schemas.weights import dtype_bytes

_FROM = {True: "measured", False: "datasheet"}


def account_of(inputs: ReportInputs, chosen: Subject) -> Account | None:
    """Return the account of the step that a report speaks of."""
    group = chosen.group
    if group is None:
        return None
    key = (group.point, group.rank, group.device, group.phase)
    found = inputs.summary.account
    return next((a for a in found if (a.point, a.rank, a.device, a.phase) == key), None)


def waterfall_figure(inputs: ReportInputs, chosen: Subject) -> ChartType | None:
    """Return the waterfall of the step that the report speaks of."""
    found = account_of(inputs, chosen)
    if found is None or found.step_ns <= 0:
        return None
    largest = max(found.parts, key=lambda part: part.ns)
    title = (
        f"The largest part of the {found.of} {chosen.step}: {part_name(largest)}, "
        f"{duration(largest.ns)} ({percent(largest.ns / found.step_ns)})"
    )
    subtitle = "Each part begins where the one above it ends; together they are the step."
    if found.scale is not None:
        subtitle += " Traced gaps are scaled to fit."
    if found.of != CLEAN_STEP:
        subtitle += " As traced: no clean step is known."
    return waterfall(lined_up(found), title, [subtitle])


def roofline_figure(chosen: Subject, floor: Floor | None) -> ChartType | None:
    """Return the roofline of the roles of the step that the report speaks of."""
    if chosen.group is None or floor is None or not floor.bandwidth_gbps or not floor.tflops:
        return None
    points = points_of(chosen.group, floor)
    roles = points.filter(~pl.col(Roofline.step))
    if roles.is_empty():
        return None
    best = roles.sort(Roofline.of_roof, descending=True).row(0, named=True)
    title = f"{best[Roofline.name]} comes closest to the roof, {percent(best[Roofline.of_roof])}"
    whole = points.filter(Roofline.step)
    if whole.height:
        title += f"; the clean step as a whole reaches {percent(whole[Roofline.of_roof][0])} of it"
    sources = [floor.bandwidth_from == MEASURED, floor.tflops_from == MEASURED]
    limits = Roof(
        floor.bandwidth_gbps,
        floor.tflops,
        f"{with_unit(floor.bandwidth_gbps, 'GB/s')}, {_FROM[sources[0]]}",
        f"{with_unit(floor.tflops, 'TFLOP/s')}, {_FROM[sources[1]]}",
    )
    subtitle = (
        "Circles: roles while their kernels run, by the bytes and FLOPs that a step needs of them."
    )
    return roofline(points, limits, title, [subtitle])


def binding_figure(inputs: ReportInputs, chosen: Subject, floor: Floor | None) -> ChartType | None:
    """Return the map of batch and context for the model and card of a run that decodes."""
    model, group = inputs.summary.model, chosen.group
    if model is None or group is None or group.phase != DECODE or model.quantization is not None:
        return None
    if floor is None or not floor.bandwidth_gbps or not floor.tflops or floor.cached_weights:
        return None
    dtype = dtype_of(inputs.points, model, group.point)
    if dtype is None:
        return None
    try:
        each = dtype_bytes(dtype)
    except InputError:  # a type without a known width
        return None
    gpus = inputs.manifest.gpus
    memory = gpus[0].memory_bytes if gpus else None
    cells = cells_of(
        model, floor.bandwidth_gbps, floor.tflops, each, memory, _measured(inputs, group.point)
    )
    subtitle = ["The least time of a decode step. Ringed: measured, with the wall of that step."]
    if not cells.get_column(Binding.fits).fill_null(value=True).all():
        subtitle[0] += " Without colour: more than memory holds."
    return binding(cells, _binding_title(cells), subtitle)


def _measured(inputs: ReportInputs, point: int) -> dict[tuple[int, int], str]:
    """Return the wall told at each batch and context of the run."""
    found = inputs.summary.turns
    walls = {one.point: one.wall for one in found.walls} if found and found.phase == DECODE else {}
    walls = walls or {point: inputs.summary.verdict.wall}
    places = {row[Points.point]: row for row in inputs.points.iter_rows(named=True)}
    return {
        (places[point][Points.batch], places[point][Points.context_tokens]): wall
        for point, wall in walls.items()
        if wall and point in places
        and places[point][Points.batch] and places[point][Points.context_tokens]
    }  # fmt: skip


def _binding_title(cells: pl.DataFrame) -> str:
    """Say from which batch on arithmetic binds, at the shortest and at the longest context."""
    contexts = cells.get_column(Binding.context_tokens)
    shortest, longest = contexts.min(), contexts.max()
    assert isinstance(shortest, int)
    assert isinstance(longest, int)
    if not (cells[Binding.arithmetic_share] > MAJORITY).any():
        return "Bytes bind the floor of a decode step at every batch and context shown"
    said = f"{_from(cells, shortest)}; {_from(cells, longest)}"
    return said[:1].upper() + said[1:]


def _from(cells: pl.DataFrame, context: int) -> str:
    bound = cells.filter(
        (pl.col(Binding.context_tokens) == context) & (pl.col(Binding.arithmetic_share) > MAJORITY)
    )
    at = f"at {count(context)} tokens"
    if bound.is_empty():
        return f"{at} bytes bind at every batch shown"
    return f"{at} arithmetic binds from a batch of {count(bound[Binding.batch][0])} on"
