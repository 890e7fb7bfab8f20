"""Say what part of the model each GPU activity works for.

Shape proposes, order decides: each distinct kernel is looked at once, for the stages of a pass
that its operator, shapes and types allow (`looks`); then every step is walked through in
launch order, and the cheapest walk settles what shapes leave open and counts the layers
(`order`). Nothing here knows a model by name.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from whichwall.analyze.roles.looks import Looks, look
from whichwall.analyze.roles.order import (
    ROLE_NAMES,
    ROLE_OF_STAGE,
    Numbers,
    Walk,
    is_strained,
    walk_all,
)
from whichwall.analyze.roles.stages import Flags
from whichwall.schemas import roles
from whichwall.schemas.activities import Activities
from whichwall.schemas.kernels import MEMCPY, MEMSET
from whichwall.schemas.model import Model
from whichwall.schemas.role_totals import RoleTotals
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import polars_schema

# A collective is known by its name; a copy that nothing explains may yet belong to something.
SURE, LIKELY = 1.0, 0.5

NO_ROLE = ROLE_NAMES.index(roles.OTHER)

# As a node of a graph, a copy or a set is a kernel of the driver, named so.
DRIVERS_COPY = r"^(memcpy|memset)\d*(_|$)"

_SEQUENCE = (Activities.point, Activities.rank, Activities.device, Activities.step)
_ROW, _QUEUED_NS = "row", "queued_ns"


def attribute(activities: pl.DataFrame, model: Model | None) -> pl.DataFrame:
    """Return the role of every activity, a row of `schemas.roles` for each, in the same order.

    Confidence is 1 - exp(-margin), where the margin is how much dearer, in units of about the
    negative logarithm of a frequency, the best explanation of the whole step is that gives the
    activity another role: 0 where another fits as well, above 0.9 where it would have to be rare.
    A kernel that nothing explains is `other` with confidence 0; a copy, `memory` with one half.
    In a step that is no decoder's, only what is certain without order has a role.
    """
    found = _find(activities, model)
    place = np.array(ROLE_NAMES)[ROLE_OF_STAGE[found.walk.stage]]
    by_look = np.where(found.looks.by_shape[found.looks.of_row], roles.BY_SHAPE, roles.BY_NAME)
    method = np.where(found.alone, by_look, roles.BY_ORDER)
    outside = found.strained | (found.walk.layer < 0)
    return activities.with_columns(
        found.choose(Roles.role, place, roles.COMMUNICATION, roles.MEMORY, roles.OTHER),
        found.choose(Roles.method, method, roles.BY_NAME, roles.BY_NAME, roles.BY_NOTHING),
        found.choose(Roles.confidence, -np.expm1(-found.walk.margin), SURE, LIKELY, 0.0),
        pl.Series(Roles.fused, _fused(found, place), dtype=pl.String),
        pl.Series(Roles.layer, found.walk.layer).set(pl.Series(outside), None),
    ).select(pl.col(name).cast(type_) for name, type_ in polars_schema(Roles).items())


@dataclass(frozen=True)
class _Found:
    """What is known of each activity."""

    looks: Looks
    walk: Walk
    alone: Flags  # its look decides without order
    told: Flags  # it has a role of the model
    strained: Flags  # its step is no decoder's
    collective: Flags
    copied: Flags

    def choose(
        self, name: str, told: npt.ArrayLike, collective: npt.ArrayLike, copied: npt.ArrayLike,
        rest: npt.ArrayLike,
    ) -> pl.Series:  # fmt: skip
        """Return a column with one value for each of the four ways in which a role is found."""
        untold = np.where(self.copied, copied, rest)
        model = np.where(self.told, told, untold)
        return pl.Series(name, np.where(self.collective, collective, model))


def _find(activities: pl.DataFrame, model: Model | None) -> _Found:
    looks = look(activities, model)
    costs, kind = np.unique(looks.costs, axis=0, return_inverse=True)
    collective = activities[Activities.communication].fill_null(value=False).to_numpy()
    copied = (
        activities[Activities.kind].is_in([MEMCPY, MEMSET])
        | activities[Activities.name].str.contains(DRIVERS_COPY)
    ).to_numpy()
    nothing = np.full((1, costs.shape[1]), np.inf)  # collectives are no part of the walk
    kinds = np.where(collective, len(costs), kind[looks.of_row])
    sequences = list(_sequences(activities))
    walked = walk_all(kinds, np.concatenate([costs, nothing]), sequences)
    strained = is_strained(walked, sequences, ~(collective | copied))
    place = ROLE_OF_STAGE[walked.stage]
    alone = looks.alone[looks.of_row] == place
    told = walked.belongs & (alone | ~strained) & ~(copied & (place == NO_ROLE))
    return _Found(looks, walked, alone, told, strained, collective, copied)


def _sequences(activities: pl.DataFrame) -> Iterator[Numbers]:
    """Return the rows of each step on each device, in the order in which they were launched.

    An activity without a launch is taken to follow the one before it on its stream; all kernels
    of a graph replay share a launch and keep the order in which they ran.
    """
    where = _SEQUENCE[:3]
    ordered = (
        activities.select(
            *_SEQUENCE, Activities.stream, Activities.start_ns, Activities.launch_start_ns
        )
        .with_row_index(_ROW)
        .sort(*where, Activities.stream, Activities.start_ns, _ROW)
        .with_columns(
            pl.col(Activities.launch_start_ns)
            .forward_fill()
            .over(*where, Activities.stream)
            .fill_null(pl.col(Activities.start_ns))
            .alias(_QUEUED_NS)
        )
        .sort(*where, _QUEUED_NS, Activities.start_ns, _ROW)
    )
    for rows in ordered.group_by(_SEQUENCE, maintain_order=True).agg(_ROW)[_ROW]:
        yield rows.to_numpy().astype(np.int64)


def _fused(found: _Found, own: npt.NDArray[np.str_]) -> list[str | None]:
    """Return what each kernel does besides its own role, for kernels that fuse several."""
    fused: list[str | None] = [None] * len(own)
    several = np.array([bool(does) for does in found.looks.does], bool)
    for row in np.flatnonzero(several[found.looks.of_row] & found.told):
        does = found.looks.does[found.looks.of_row[row]]
        fused[row] = ",".join(role for role in does if role != own[row]) or None
    return fused


def totals(activities: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Return the busy time of each role on each device, a row of `schemas.role_totals` for each.

    Busy is the union of the role's activities, never the sum of durations; shares are of the
    roles' busy times together, so that they add up to 1 also where roles overlap in time.
    """
    device = [Activities.rank, Activities.device]
    place = pl.col(Roles.role).replace_strict(
        list(roles.ROLES), list(range(len(roles.ROLES))), return_dtype=pl.Int64
    )
    seen = pl.col(Activities.end_ns).cum_max().shift(1).over(*device, Roles.role)
    fresh = pl.max_horizontal(pl.col(Activities.start_ns), seen)
    busy, every = pl.col(RoleTotals.busy_ns), pl.col(RoleTotals.busy_ns).sum().over(device)
    return (
        activities.select(*device, Activities.start_ns, Activities.end_ns)
        .hstack(found.select(Roles.role))
        .sort(*device, Roles.role, Activities.start_ns, Activities.end_ns)
        .with_columns((pl.col(Activities.end_ns) - fresh).clip(0).alias(RoleTotals.busy_ns))
        .group_by(*device, Roles.role)
        .agg(busy.sum(), pl.len().alias(RoleTotals.kernels))
        .with_columns(pl.when(every > 0).then(busy / every).alias(RoleTotals.share))
        .sort(*device, place)
        .select(pl.col(name).cast(type_) for name, type_ in polars_schema(RoleTotals).items())
    )
