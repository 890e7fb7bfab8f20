"""Say what part of the model each GPU activity works for.

Shape proposes, order decides: each distinct kernel is looked at once, for the stages of a pass
that its operator, shapes and types allow (`role_looks`); then every step is walked through in
launch order, and the cheapest walk settles what shapes leave open and counts the layers
(`role_order`). Nothing here knows a model by name.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from whichwall.analyze.operator_roles import attribute_ops
from whichwall.analyze.role_looks import Looks, look
from whichwall.analyze.role_order import ROLE_NAMES, ROLE_OF_STAGE, Numbers, Walk, walk_all
from whichwall.schemas import roles
from whichwall.schemas.activities import Activities
from whichwall.schemas.kernels import MEMCPY, MEMSET
from whichwall.schemas.model import Model
from whichwall.schemas.role_totals import RoleTotals
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import polars_schema

__all__ = ["attribute", "attribute_ops", "totals"]

# A collective is known by its name; a copy that nothing explains may yet belong to something.
SURE, LIKELY = 1.0, 0.5

_SEQUENCE = (Activities.point, Activities.rank, Activities.device, Activities.step)
_ROW, _QUEUED_NS, _SEEN_NS = "row", "queued_ns", "seen_ns"


def attribute(activities: pl.DataFrame, model: Model | None) -> pl.DataFrame:
    """Return the role of every activity, a row of `schemas.roles` for each, in the same order.

    Confidence is 1 - exp(-margin), where the margin is how much dearer, in units of about the
    negative logarithm of a frequency, the best explanation of the whole step is that gives the
    activity another role: 0 where another fits as well, above 0.9 where it would have to be rare.
    A kernel that nothing explains is `other` with confidence 0; a copy, `memory` with one half.
    """
    looks = look(activities, model)
    costs, kind = np.unique(looks.costs, axis=0, return_inverse=True)
    found = walk_all(kind[looks.of_row], costs, _sequences(activities))
    return _frame(activities, looks, found)


def _sequences(activities: pl.DataFrame) -> Iterator[Numbers]:
    """Return the rows of each step on each device, in the order in which they were launched.

    An activity without a launch is taken to follow the one before it on its stream; all kernels
    of a graph replay share a launch and keep the order in which they ran.
    """
    where = _SEQUENCE[:3]
    ordered = (
        activities.with_row_index(_ROW)
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


def _frame(activities: pl.DataFrame, looks: Looks, found: Walk) -> pl.DataFrame:
    """Lay roles, methods and confidence beside what identifies each activity."""
    role = np.array([*ROLE_NAMES, ""])[np.where(found.belongs, ROLE_OF_STAGE[found.stage], -1)]
    alone = found.belongs & (looks.alone[looks.of_row] == ROLE_OF_STAGE[found.stage])
    by_look = np.where(looks.by_shape[looks.of_row], roles.BY_SHAPE, roles.BY_NAME)
    fused = pl.Series(
        [
            ",".join(r for r in looks.does[look] if r != own) or None
            for look, own in zip(looks.of_row, role, strict=True)
        ],
        dtype=pl.String,
    )
    communication = pl.col(Activities.communication).fill_null(value=False)
    unexplained = pl.col(Roles.role) == ""
    copied = unexplained & pl.col(Activities.kind).is_in([MEMCPY, MEMSET])
    layer = pl.Series(found.layer)
    return (
        activities.with_columns(
            pl.Series(Roles.role, role),
            fused.alias(Roles.fused),
            layer.set(layer < 0, None).alias(Roles.layer),
            pl.Series(Roles.method, np.where(alone, by_look, roles.BY_ORDER)),
            pl.Series(Roles.confidence, -np.expm1(-found.margin)),
        )
        .with_columns(
            _cases(
                communication,
                copied,
                unexplained,
                roles.COMMUNICATION,
                roles.MEMORY,
                roles.OTHER,
                Roles.role,
            ),
            _cases(
                communication,
                copied,
                unexplained,
                roles.BY_NAME,
                roles.BY_NAME,
                roles.BY_NOTHING,
                Roles.method,
            ),
            _cases(communication, copied, unexplained, SURE, LIKELY, 0.0, Roles.confidence),
        )
        .select(pl.col(name).cast(type_) for name, type_ in polars_schema(Roles).items())
    )


def _cases(
    communication: pl.Expr,
    copied: pl.Expr,
    unexplained: pl.Expr,
    a: object,
    b: object,
    c: object,
    column: str,
) -> pl.Expr:
    return (
        pl.when(communication)
        .then(pl.lit(a))
        .when(copied)
        .then(pl.lit(b))
        .when(unexplained)
        .then(pl.lit(c))
        .otherwise(pl.col(column))
        .alias(column)
    )


def totals(activities: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Return the busy time of each role on each device, a row of `schemas.role_totals` for each.

    Busy is the union of the role's activities, never the sum of durations; shares are of the
    roles' busy times together, so that they add up to 1 also where roles overlap in time.
    """
    key = (Activities.rank, Activities.device, Roles.role)
    order = pl.col(Roles.role).replace_strict(
        list(roles.ROLES), list(range(len(roles.ROLES))), return_dtype=pl.Int64
    )
    return (
        activities.select(
            Activities.rank, Activities.device, Activities.start_ns, Activities.end_ns
        )
        .hstack(found.select(Roles.role))
        .sort(*key, Activities.start_ns, Activities.end_ns)
        .with_columns(pl.col(Activities.end_ns).cum_max().shift(1).over(key).alias(_SEEN_NS))
        .with_columns(
            (pl.col(Activities.end_ns) - pl.max_horizontal(Activities.start_ns, _SEEN_NS))
            .clip(lower_bound=0)
            .alias(RoleTotals.busy_ns)
        )
        .group_by(key)
        .agg(pl.col(RoleTotals.busy_ns).sum(), pl.len().alias(RoleTotals.kernels))
        .with_columns(
            (pl.col(RoleTotals.busy_ns) / pl.col(RoleTotals.busy_ns).sum().over(key[:2]))
            .fill_nan(None)
            .alias(RoleTotals.share)
        )
        .sort(*key[:2], order)
        .select(pl.col(name).cast(type_) for name, type_ in polars_schema(RoleTotals).items())
    )
