"""Lay the roles of decode and prefill side by side, where a run has steps of both."""

from collections.abc import Sequence

import polars as pl

from whichwall.analyze.quantities import duration, percent
from whichwall.schemas.chart import PhaseShares
from whichwall.schemas.passes import DECODE, PREFILL
from whichwall.schemas.run import frame
from whichwall.schemas.summary import RoleTotal, StepGroup

NS_PER_US = 1000


def phase_shares(groups: Sequence[StepGroup]) -> pl.DataFrame:
    """Return `PhaseShares` of the first traced group and the first of the other phase beside it.

    Both are of one point on one device. Empty where only one phase was traced. Roles with the
    largest share in either phase come first.
    """
    traced = [group for group in groups if group.roles and group.phase in (DECODE, PREFILL)]
    pair = {group.phase: group for group in reversed(traced) if _place(group) == _place(traced[0])}
    if len(pair) < len((DECODE, PREFILL)):
        return frame(PhaseShares, [])
    totals = {phase: {total.role: total for total in group.roles} for phase, group in pair.items()}
    roles = {role for by_role in totals.values() for role in by_role}
    largest = {
        role: max(by_role[role].share for by_role in totals.values() if role in by_role)
        for role in roles
    }
    return frame(
        PhaseShares,
        [
            _row(phase, role, totals[phase].get(role), max(1, pair[phase].count))
            for role in sorted(roles, key=lambda r: (-largest[r], r))
            for phase in (DECODE, PREFILL)
        ],
    )


def _place(group: StepGroup) -> tuple[int, int, int | None]:
    return group.point, group.rank, group.device


def _row(phase: str, role: str, total: RoleTotal | None, steps: int) -> dict[str, object]:
    share = total.share if total else 0.0
    busy_ns = total.busy_ns / steps if total else 0.0
    return {
        PhaseShares.phase: phase,
        PhaseShares.role: role,
        PhaseShares.share: share,
        PhaseShares.time_us: busy_ns / NS_PER_US,
        PhaseShares.label: f"{percent(share)}  ·  {duration(busy_ns)}" if total else "none",
    }
