"""Each device over the whole recording, for the summary."""

import polars as pl

from whichwall.analyze.busy import DEVICE, busy, busy_without_communication
from whichwall.analyze.medians import median_ns
from whichwall.analyze.roles.attribute import totals
from whichwall.schemas.activities import Activities
from whichwall.schemas.busy import Busy
from whichwall.schemas.gaps import CAUSES, Gaps
from whichwall.schemas.role_totals import RoleTotals
from whichwall.schemas.roles import OTHER, Roles
from whichwall.schemas.summary import Device, GapTotals, RoleTotal


def devices(activities: pl.DataFrame, roles: pl.DataFrame, gaps: pl.DataFrame) -> list[Device]:
    """Return a summary per rank and device, over all points of the run."""
    whole = busy(activities).join(
        busy_without_communication(activities),
        on=DEVICE,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return [_device(row, activities, roles, gaps) for row in whole.iter_rows(named=True)]


def _device(
    row: dict[str, int], activities: pl.DataFrame, roles: pl.DataFrame, gaps: pl.DataFrame
) -> Device:
    mine = pl.all_horizontal(pl.col(name).eq_missing(row[name]) for name in DEVICE)
    own_roles, own_gaps = roles.filter(mine), gaps.filter(mine)
    by_role = role_totals(activities.filter(mine), own_roles)
    median = row[Busy.kernel_median_ns]
    return Device(
        rank=row[Activities.rank],
        device=row[Activities.device],
        gpu_activities=row[Busy.activities],
        kernels=row[Busy.kernels],
        window_ns=row[Busy.window_ns],
        busy_ns=row[Busy.busy_ns],
        busy_without_communication_ns=row[Busy.busy_without_communication_ns] or 0,
        busy_fraction=row[Busy.busy_ns] / row[Busy.window_ns] if row[Busy.window_ns] else None,
        duration_sum_ns=row[Busy.duration_sum_ns],
        kernel_median_ns=None if median is None else round(median),
        gaps=gap_totals(own_gaps),
        roles=by_role,
        attributed_share=attributed_share(by_role),
        methods=dict(own_roles.group_by(Roles.method).agg(pl.len()).sort(Roles.method).iter_rows()),
    )


def role_totals(activities: pl.DataFrame, roles: pl.DataFrame) -> list[RoleTotal]:
    """Return GPU time by role, in the order of ROLES, for one device's activities."""
    return [
        RoleTotal(
            role=row[RoleTotals.role],
            busy_ns=row[RoleTotals.busy_ns],
            share=row[RoleTotals.share],
            kernels=row[RoleTotals.kernels],
        )
        for row in totals(activities, roles).iter_rows(named=True)
    ]


def attributed_share(by_role: list[RoleTotal]) -> float | None:
    """Return GPU time with a role other than `other`, over GPU time."""
    whole = sum(total.busy_ns for total in by_role)
    if not whole:
        return None
    return sum(t.busy_ns for t in by_role if t.role != OTHER) / whole


def gap_totals(gaps: pl.DataFrame) -> GapTotals:
    """Return count, total, median, p99 and causes of one device's gaps."""
    lengths = gaps[Gaps.dur_ns]
    tail = lengths.quantile(0.99, "linear")
    by_cause = gaps.group_by(Gaps.cause).agg(pl.col(Gaps.dur_ns).sum(), pl.len())
    sums = {row[0]: (row[1], row[2]) for row in by_cause.iter_rows()}
    present = [cause for cause in CAUSES if cause in sums]
    return GapTotals(
        count=gaps.height,
        total_ns=int(lengths.sum()),
        median_ns=median_ns(lengths),
        p99_ns=None if tail is None else round(tail),
        by_cause_ns={cause: sums[cause][0] for cause in present},
        by_cause_count={cause: sums[cause][1] for cause in present},
    )
