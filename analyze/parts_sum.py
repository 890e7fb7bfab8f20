"""Add parts of the model, each timed on its own, up to a pass, and compare with the clean pass."""

import polars as pl

from whichwall.schemas.experiments import PartsSum, PartTime
from whichwall.schemas.parts import PARTS, Parts
from whichwall.schemas.passes import CLEAN, PHASES
from whichwall.schemas.timings import Timings


def parts_sums(parts: pl.DataFrame, timings: pl.DataFrame) -> list[PartsSum]:
    """Return a sum per point and phase, on the first rank, its parts as a token meets them."""
    found = []
    for point in parts[Parts.point].unique().sort():
        mine = parts.filter(pl.col(Parts.point) == point)
        mine = mine.filter(pl.col(Parts.rank) == pl.col(Parts.rank).min())
        for phase in PHASES:
            rows = mine.filter(pl.col(Parts.phase) == phase)
            if rows.height:
                found.append(_sum(point, phase, rows, timings))
    return found


def _sum(point: int, phase: str, rows: pl.DataFrame, timings: pl.DataFrame) -> PartsSum:
    order = {part: place for place, part in enumerate(PARTS)}
    timed = [
        PartTime(
            part=row[Parts.part],
            calls=row[Parts.calls],
            wall_ns=row[Parts.wall_ns],
            gpu_ns=row[Parts.gpu_ns],
            parameters=row[Parts.parameters],
        )
        for row in sorted(rows.iter_rows(named=True), key=lambda row: order[row[Parts.part]])
    ]
    wall = sum(part.calls * part.wall_ns for part in timed)
    on_gpu = [None if part.gpu_ns is None else part.calls * part.gpu_ns for part in timed]
    known = [took for took in on_gpu if took is not None]
    gpu = sum(known) if len(known) == len(timed) else None
    step, step_gpu = _step(point, phase, int(rows[Parts.rank][0]), timings)
    return PartsSum(
        point=point,
        phase=phase,
        parts=timed,
        sum_wall_ns=wall,
        sum_gpu_ns=gpu,
        step_ns=step,
        step_gpu_ns=step_gpu,
        rest_wall_ns=None if step is None else step - wall,
        rest_gpu_ns=None if step_gpu is None or gpu is None else step_gpu - gpu,
    )


def _step(
    point: int, phase: str, rank: int, timings: pl.DataFrame
) -> tuple[int | None, int | None]:
    clean = timings.filter(
        (pl.col(Timings.point) == point)
        & (pl.col(Timings.rank) == rank)
        & (pl.col(Timings.phase) == phase)
        & (pl.col(Timings.stage) == CLEAN)
    )
    if clean.is_empty():
        return None, None
    wall, gpu = clean.select(Timings.wall_ns_median, Timings.gpu_ns_median).row(0)
    return wall, gpu
