"""Bring the totals per role to one step, with the words that label them."""

from collections.abc import Sequence

import polars as pl

from whichwall.analyze.quantities import duration, percent
from whichwall.schemas.chart import RoleTimes
from whichwall.schemas.run import frame
from whichwall.schemas.summary import RoleTotal


def role_times(totals: Sequence[RoleTotal], steps: int) -> pl.DataFrame:
    """Return `RoleTimes` of the roles that took time, the largest first.

    `steps` divides the totals; give 1 where there are no steps.
    """
    rows: list[dict[str, object]] = [
        {
            RoleTimes.role: total.role,
            RoleTimes.time_us: total.busy_ns / steps / 1000,
            RoleTimes.share: total.share,
            RoleTimes.kernels: total.kernels / steps,
            RoleTimes.label: f"{duration(total.busy_ns / steps)}  ·  {percent(total.share)}",
        }
        for total in sorted(totals, key=lambda t: (-t.busy_ns, t.role))
        if total.busy_ns > 0
    ]
    return frame(RoleTimes, rows)
