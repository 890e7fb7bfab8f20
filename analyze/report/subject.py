"""Choose what a report speaks of: one group of steps on one device, or the whole recording.

A run may hold several devices, points and phases. The verdict is about one of them; details are
given for that one, and a row for each of the others.
"""

from dataclasses import dataclass

import polars as pl

from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.activities import Activities
from whichwall.schemas.gaps import Gaps
from whichwall.schemas.steps import Steps
from whichwall.schemas.summary import Device, StepGroup, Summary


@dataclass(frozen=True)
class Subject:
    """What the details are about."""

    group: StepGroup | None  # null: no steps were found
    device: Device | None  # null: no GPU activity
    steps: pl.DataFrame  # Steps of the group
    work: pl.DataFrame  # a column of truth per activity: belongs to the subject
    gaps: pl.DataFrame  # Gaps of the subject

    @property
    def count(self) -> int:
        """How many steps; 1 where the whole recording is meant."""
        return max(1, self.group.count) if self.group else 1

    @property
    def step(self) -> str:
        """What one of them is called: `decode step`, `step` or `recording`."""
        if self.group is None:
            return "recording"
        return f"{self.group.phase} step" if self.group.phase else "step"

    @property
    def whole(self) -> str:
        """What the timeline shows: a step, or the recording."""
        return "step" if self.group else "recording"

    @property
    def per(self) -> str:
        """Return the words that follow a quantity: `per step`, or `in all`."""
        return "per step" if self.group else "in all"


def subject(inputs: ReportInputs) -> Subject:
    """Return what the report of these inputs is about."""
    group = _group(inputs.summary)
    device = _device(inputs.summary, group)
    if group is None:
        return Subject(
            group=None,
            device=device,
            steps=inputs.steps.clear(),
            work=inputs.activities.select(_same(device, Activities.rank, Activities.device)),
            gaps=inputs.gaps.filter(_same(device, Gaps.rank, Gaps.device)),
        )
    steps = inputs.steps.filter(
        pl.col(Steps.point) == group.point,
        _same(group, Steps.rank, Steps.device),
        pl.col(Steps.phase).eq_missing(pl.lit(group.phase, pl.String)),
    )
    numbers = steps.get_column(Steps.step).implode()
    return Subject(
        group=group,
        device=device,
        steps=steps,
        work=inputs.activities.select(
            (
                (pl.col(Activities.point) == group.point)
                & _same(group, Activities.rank, Activities.device)
                & pl.col(Activities.step).is_in(numbers)
            ).fill_null(value=False)
        ),
        gaps=inputs.gaps.filter(
            pl.col(Gaps.point) == group.point,
            _same(group, Gaps.rank, Gaps.device),
            pl.col(Gaps.step).is_in(numbers),
        ),
    )


def _group(summary: Summary) -> StepGroup | None:
    """Return the group that the verdict rests on: the first."""
    return next(iter(summary.steps.groups), None)


def _device(summary: Summary, group: StepGroup | None) -> Device | None:
    busy = [d for d in summary.devices if d.gpu_activities]
    if group:
        busy = [d for d in busy if (d.rank, d.device) == (group.rank, group.device)]
    return next(iter(busy), None)


def _same(what: StepGroup | Device | None, rank: str, device: str) -> pl.Expr:
    if what is None:
        return pl.col(rank).is_null()  # a rank is never null: nothing is the subject's
    return (pl.col(rank) == what.rank) & pl.col(device).eq_missing(pl.lit(what.device, pl.Int32))
