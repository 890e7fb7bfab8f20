"""Steps of one phase, at one point, on one device: medians, rates, floor and shares."""

from dataclasses import dataclass
from statistics import median as median_of
from typing import NamedTuple

import polars as pl

from whichwall.analyze.devices import attributed_share
from whichwall.analyze.floor import achieved
from whichwall.analyze.medians import median, median_ns
from whichwall.analyze.steps import STEP
from whichwall.analyze.walls import shares
from whichwall.schemas.gaps import CAUSES, Gaps
from whichwall.schemas.marks import MIXED
from whichwall.schemas.passes import CLEAN, DECODE, MATMUL, PREFILL
from whichwall.schemas.steps import Steps
from whichwall.schemas.summary import Floor, RoleTotal, StepGroup
from whichwall.schemas.timings import Timings

GROUP = [Steps.point, Steps.rank, Steps.device, Steps.phase]
FROM_PASSES, FROM_OPTION, FROM_COMPLETIONS = "passes", "option", "completions"
# In this order a phase is the one that a run is judged by.
PHASES = (DECODE, PREFILL, MIXED, MATMUL, None)
_PER_STEP = "per_step_ns"


@dataclass(frozen=True)
class Clean:
    """A clean step time, and where it comes from."""

    median_ns: int
    p10_ns: int | None
    p90_ns: int | None
    source: str


def clean_of(
    timings: pl.DataFrame, point: int, rank: int, phase: str | None, option_ns: int | None
) -> Clean | None:
    """Return the clean step of a phase: the option where it applies, else the passes.

    The option speaks of the step that the user timed: decode, or a trace's only, unnamed phase.
    """
    if option_ns is not None and phase in (DECODE, None):
        return Clean(option_ns, None, None, FROM_OPTION)
    row = timings.filter(
        (pl.col(Timings.point) == point)
        & (pl.col(Timings.rank) == rank)
        & pl.col(Timings.phase).eq_missing(pl.lit(phase, pl.String))
        & (pl.col(Timings.stage) == CLEAN)
    )
    if not row.height:
        return None
    found = row.row(0, named=True)
    return Clean(
        found[Timings.wall_ns_median],
        found[Timings.wall_ns_p10],
        found[Timings.wall_ns_p90],
        FROM_PASSES,
    )


class Key(NamedTuple):
    """What the steps of one group have in common."""

    point: int
    rank: int
    device: int | None
    phase: str | None


def groups_of(steps: pl.DataFrame) -> list[tuple[Key, pl.DataFrame]]:
    """Return the steps of each group with its key, in a fixed order."""
    ordered = steps.sort([*GROUP, Steps.start_ns], nulls_last=True)
    return [
        (Key(*key), rows)
        for key, rows in ordered.partition_by(GROUP, as_dict=True, maintain_order=True).items()
    ]


def traced_group(
    key: Key,
    rows: pl.DataFrame,
    gaps: pl.DataFrame,
    clean: Clean | None,
    floor: Floor | None,
    roles: list[RoleTotal],
) -> StepGroup:
    """Return the summary of steps that have GPU work."""
    return _group(
        key,
        rows.height,
        clean,
        floor,
        batch=median_ns(rows[Steps.batch]),
        window_ns=median_ns(rows[Steps.window_ns]),
        busy_ns=median_ns(rows[Steps.busy_ns]),
        working_ns=median_ns(rows[Steps.busy_without_communication_ns]),
        kernels=median(rows[Steps.kernels]),
        launches=median(rows[Steps.launches]),
        kernel_ns=median_ns(rows[Steps.kernel_median_ns]),
        gap_ns=median_ns(rows[Steps.gap_median_ns]),
        gaps_by_cause_ns=gaps_per_step(rows, gaps),
        roles=roles,
    )


def untraced_group(
    point: int, rank: int, phase: str, count: int, clean: Clean | None, floor: Floor | None
) -> StepGroup:
    """Return the summary of passes that were timed and not traced on a GPU."""
    return _group(Key(point, rank, None, phase), count, clean, floor, gaps_by_cause_ns={}, roles=[])


def _group(
    key: Key,
    count: int,
    clean: Clean | None,
    floor: Floor | None,
    *,
    batch: int | None = None,
    window_ns: int | None = None,
    busy_ns: int | None = None,
    working_ns: int | None = None,
    kernels: float | None = None,
    launches: float | None = None,
    kernel_ns: int | None = None,
    gap_ns: int | None = None,
    gaps_by_cause_ns: dict[str, int],
    roles: list[RoleTotal],
) -> StepGroup:
    """Put together what was traced (medians, null without GPU work), the clean step and floor."""
    if batch is None and floor is not None:
        batch = floor.batch
    step = clean.median_ns if clean else None
    gbps, tflops = achieved(floor, step) if floor else (None, None)
    least = floor.floor_ns if floor else None
    return StepGroup(
        rank=key.rank,
        device=key.device,
        point=key.point,
        phase=key.phase,
        count=count,
        batch=batch,
        window_ns_median=window_ns,
        busy_ns_median=busy_ns,
        busy_without_communication_ns_median=working_ns,
        busy_fraction_traced=busy_ns / window_ns if window_ns and busy_ns is not None else None,
        busy_fraction_clean=busy_ns / step if step and busy_ns is not None else None,
        clean_step_ns_median=step,
        clean_step_ns_p10=clean.p10_ns if clean else None,
        clean_step_ns_p90=clean.p90_ns if clean else None,
        clean_from=clean.source if clean else None,
        kernels_median=kernels,
        launches_median=launches,
        kernel_median_ns=kernel_ns,
        gap_median_ns=gap_ns,
        gaps_by_cause_ns=gaps_by_cause_ns,
        tokens_per_s=_tokens_per_s(key.phase, batch, floor, step),
        achieved_gbps=gbps,
        achieved_tflops=tflops,
        times_floor=step / least if step and least else None,
        shares=shares(step, busy_ns, floor) if step and busy_ns is not None else None,
        roles=roles,
        attributed_share=attributed_share(roles),
    )


def gaps_per_step(steps: pl.DataFrame, gaps: pl.DataFrame) -> dict[str, int]:
    """Return, per cause, the median over the steps of its total in a step, ns."""
    wanted = steps.select(STEP)
    per_step = (
        gaps.join(wanted, on=STEP, how="semi", nulls_equal=True)
        .group_by([*STEP, Gaps.cause])
        .agg(pl.col(Gaps.dur_ns).sum().alias(_PER_STEP))
    )
    found = {}
    for cause in CAUSES:
        totals = per_step.filter(pl.col(Gaps.cause) == cause)[_PER_STEP].to_list()
        if totals:
            # A step without such a gap counts as 0: that was seen, not unknown.
            totals += [0] * (wanted.height - len(totals))
            found[cause] = round(median_of(totals))
    return found


def _tokens_per_s(
    phase: str | None, batch: int | None, floor: Floor | None, step_ns: int | None
) -> float | None:
    """Return tokens fed (prefill) or generated (decode) a second."""
    if not step_ns or batch is None:
        return None
    if phase == DECODE:
        return batch * 1e9 / step_ns
    return batch * floor.tokens * 1e9 / step_ns if floor else None
