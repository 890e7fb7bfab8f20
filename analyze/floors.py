"""The floor of each phase that a run has steps of, and why one is missing."""

from dataclasses import dataclass

import polars as pl

from whichwall.analyze.floor import ceilings_for, floor_of_pass
from whichwall.analyze.medians import median
from whichwall.schemas.ceilings import GRAPH_NODE_IDLE, Ceilings
from whichwall.schemas.errors import InputError
from whichwall.schemas.manifest import Gpu, Manifest
from whichwall.schemas.model import Model
from whichwall.schemas.passes import CLEAN, DECODE, MATMUL, PROFILED
from whichwall.schemas.points import Points
from whichwall.schemas.steps import Steps
from whichwall.schemas.summary import Floor
from whichwall.schemas.timings import Timings

NS_PER_US = 1000


@dataclass(frozen=True)
class Work:
    """What one pass does, per sequence; `context_known` is false where 0 stands for unknown."""

    batch: int
    tokens: int
    context_tokens: int
    context_known: bool = True


@dataclass(frozen=True)
class Grounds:
    """A floor, or the reason why there is none."""

    floor: Floor | None
    missing: str | None
    context_known: bool = True


@dataclass(frozen=True)
class Basis:
    """What the floors of a run are worked out from."""

    manifest: Manifest
    model: Model | None  # as given, else as inferred
    points: pl.DataFrame
    ceilings: pl.DataFrame
    timings: pl.DataFrame
    steps: pl.DataFrame


def floor_of(basis: Basis, point: int, rank: int, phase: str | None) -> Grounds:
    """Return the floor of the steps of one phase at one point."""
    model = basis.model
    if phase == MATMUL:
        return Grounds(None, "a matrix product on its own is no pass of the model")
    if model is None:
        return Grounds(
            None, "the model's dimensions are not known; import with --model CONFIG.json"
        )
    if any((facts.world_size or 1) > 1 for facts in basis.manifest.ranks):
        return Grounds(None, "how the model is split over ranks is not known")
    work = _work_timed(basis.timings, point, rank, phase)
    work = work or _work_traced(basis.steps, point, rank, phase)
    if phase is None or work is None:
        return Grounds(None, "the trace does not say how many tokens a step works on")
    dtype = dtype_of(basis.points, model, point)
    try:
        found = floor_of_pass(
            model,
            phase,
            point,
            work.batch,
            work.tokens,
            work.context_tokens,
            ceilings_for(basis.ceilings, _gpu(basis.manifest), dtype),
            dtype=dtype,
        )
    except InputError as error:
        return Grounds(None, str(error))
    if found.floor_ns is None:
        return Grounds(
            found, "neither a measured nor a datasheet bandwidth is known for this device"
        )
    return Grounds(found, None, work.context_known)


def dtype_of(points: pl.DataFrame, model: Model, point: int) -> str | None:
    """Return the type that the point ran in, else the model's own."""
    stated = points.filter(pl.col(Points.point) == point)[Points.dtype].to_list()
    if stated and stated[0] is not None:
        return str(stated[0])
    return model.dtype


def node_idle_ns(ceilings: pl.DataFrame) -> float | None:
    """Return the measured idle per node of a CUDA graph; null where it was not measured."""
    of_nodes = ceilings.filter(pl.col(Ceilings.name) == GRAPH_NODE_IDLE)
    value = of_nodes[Ceilings.value].min()
    return value * NS_PER_US if isinstance(value, float) else None


def _gpu(manifest: Manifest) -> Gpu | None:
    """Return the GPU that worked: of several listed, the one with activities."""
    used = {device for facts in manifest.ranks for device in facts.devices}
    working = [gpu for gpu in manifest.gpus if gpu.ordinal in used]
    listed = working or manifest.gpus
    return listed[0] if listed else None


def _work_timed(timings: pl.DataFrame, point: int, rank: int, phase: str | None) -> Work | None:
    rows = timings.filter(
        (pl.col(Timings.point) == point)
        & (pl.col(Timings.rank) == rank)
        & pl.col(Timings.phase).eq_missing(pl.lit(phase, pl.String))
    )
    for stage in (CLEAN, PROFILED):
        found = rows.filter(pl.col(Timings.stage) == stage)
        if found.height:
            return _work_of(found.row(0, named=True), phase)
    return None


def _work_of(row: dict[str, float | None], phase: str | None) -> Work | None:
    batch, tokens, context = (
        row[Timings.batch], row[Timings.tokens], row[Timings.context_tokens]
    )  # fmt: skip
    if not batch or not tokens:
        return None
    known = context is not None or phase != DECODE
    return Work(round(batch), round(tokens / batch), round(context or 0), context_known=known)


def _work_traced(steps: pl.DataFrame, point: int, rank: int, phase: str | None) -> Work | None:
    rows = steps.filter(
        (pl.col(Steps.point) == point)
        & (pl.col(Steps.rank) == rank)
        & pl.col(Steps.phase).eq_missing(pl.lit(phase, pl.String))
    )
    batch, tokens = median(rows[Steps.batch]), median(rows[Steps.tokens])
    if batch is None or tokens is None or batch < 1:
        return None
    return Work(round(batch), max(1, round(tokens / batch)), 0, context_known=phase != DECODE)
