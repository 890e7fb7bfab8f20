"""Passes of the model on each device: which activities are theirs, their window and busy time.

A launch belongs to the latest step begun, since sampling is launched after an engine's forward
annotation has ended. A window runs from a step's first activity to the next step's first.
"""

import polars as pl

from whichwall.analyze.intervals import covered_in_groups
from whichwall.schemas.activities import Activities
from whichwall.schemas.gaps import Gaps
from whichwall.schemas.kernels import KERNEL
from whichwall.schemas.marks import Marks
from whichwall.schemas.run import frame
from whichwall.schemas.steps import Steps

PLACE = [Activities.point, Activities.rank]
DEVICE = [*PLACE, Activities.device]
STEP = [*DEVICE, Activities.step]
_END = "step_end_ns"


def assign(activities: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Return the activities with the step of each; null before the first step begins.

    An activity without a launch on record follows the activity before it on its device.
    """
    if not marks.height:
        return activities
    begun = marks.select(*PLACE, pl.col(Marks.begin_ns), pl.col(Marks.step)).sort(Marks.begin_ns)
    launched = (
        activities.select(*PLACE, Activities.launch_start_ns)
        .with_row_index()
        .filter(pl.col(Activities.launch_start_ns).is_not_null())
        .sort(Activities.launch_start_ns)
        .join_asof(
            begun,
            left_on=Activities.launch_start_ns,
            right_on=Marks.begin_ns,
            by=PLACE,
            check_sortedness=False,
        )
        .select("index", Marks.step)
    )
    step = (
        activities.select(*DEVICE, Activities.launch)
        .with_row_index()
        .join(launched, on="index", how="left", maintain_order="left")
        .with_columns(
            pl.when(pl.col(Activities.launch).is_null())
            .then(pl.col(Marks.step).forward_fill().over(DEVICE))
            .otherwise(pl.col(Marks.step))
        )
    )
    return activities.with_columns(step[Marks.step].alias(Activities.step))


def steps(activities: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Return a row per step and device that has activities, as `Steps`; gaps are still unknown.

    A mark without any GPU activity, such as the empty last step of an engine, is no step.
    """
    if not marks.height or not activities.height:
        return frame(Steps, [])
    is_kernel = pl.col(Activities.kind) == KERNEL
    found = (
        activities.filter(pl.col(Activities.step).is_not_null())
        .group_by(STEP)
        .agg(
            pl.col(Activities.start_ns).min().alias(Steps.start_ns),
            pl.col(Activities.end_ns).max().alias(_END),
            pl.len().cast(pl.Int64).alias(Steps.activities),
            is_kernel.sum().cast(pl.Int64).alias(Steps.kernels),
            pl.col(Activities.launch).drop_nulls().n_unique().cast(pl.Int64).alias(Steps.launches),
            pl.col(Activities.dur_ns).filter(is_kernel).median().round().cast(pl.Int64)
            .alias(Steps.kernel_median_ns),
        )
        .sort([*DEVICE, Steps.start_ns], nulls_last=True)
    )  # fmt: skip
    following = pl.col(Steps.start_ns).shift(-1).over(DEVICE)
    found = found.with_columns(
        (following.fill_null(pl.col(_END)) - pl.col(Steps.start_ns)).alias(Steps.window_ns)
    )
    described = marks.select(*PLACE, Marks.step, Marks.name, Marks.found_by, Marks.phase,
                             Marks.batch, Marks.tokens, Marks.begin_ns)  # fmt: skip
    return (
        found.with_columns(
            _busy(found, activities).alias(Steps.busy_ns),
            _busy(found, activities.filter(~pl.col(Activities.communication))).alias(
                Steps.busy_without_communication_ns
            ),
        )
        .join(described, on=[*PLACE, Steps.step], how="left", maintain_order="left")
        .with_columns(pl.lit(None, pl.Int64).alias(Steps.gap_median_ns))
        .select(list(Steps.COLUMNS))
    )


def with_gaps(steps: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    """Return the steps with the median of the gaps inside each window."""
    medians = gaps.group_by(STEP).agg(
        pl.col(Gaps.dur_ns).median().round().cast(pl.Int64).alias(Steps.gap_median_ns)
    )
    return (
        steps.drop(Steps.gap_median_ns)
        .join(medians, on=STEP, how="left", maintain_order="left", nulls_equal=True)
        .select(list(Steps.COLUMNS))
    )


def _busy(found: pl.DataFrame, activities: pl.DataFrame) -> pl.Series:
    """Return the union of the activities on the device inside each step's window."""
    starts = found[Steps.start_ns].to_numpy()
    ends = starts + found[Steps.window_ns].to_numpy()
    return pl.Series(covered_in_groups(found.select(DEVICE), starts, ends, activities, DEVICE))
