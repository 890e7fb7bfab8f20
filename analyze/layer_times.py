"""Add up busy time by layer and role, per step: what a map of the layers shows."""

import polars as pl

from whichwall.schemas.activities import Activities
from whichwall.schemas.chart import LayerTimes
from whichwall.schemas.roles import ROLES, Roles
from whichwall.schemas.run import polars_schema

CELL = [LayerTimes.layer, LayerTimes.role]
DEVICE = [Activities.point, Activities.rank, Activities.device]
NS_PER_US = 1000


def layer_times(
    activities: pl.DataFrame, roles: pl.DataFrame, mine: pl.Series, steps: int
) -> pl.DataFrame:
    """Return `LayerTimes` of the activities that are `mine`, layers and roles in order.

    Busy is the union of a cell's activities on a device; `steps` divides it, 1 where there are
    none. Activities outside layers are left out.

    Args:
        activities: rows of `Activities`.
        roles: rows of `Roles`, one for each activity, in the same order.
        mine: truth per activity.
        steps: how many steps the activities are of.
    """
    start, end = pl.col(Activities.start_ns), pl.col(Activities.end_ns)
    reached = end.cum_max().shift(1).over(*DEVICE, *CELL)
    busy = (end - pl.max_horizontal(start, reached)).clip(0)
    place = pl.col(LayerTimes.role).replace_strict(
        list(ROLES), list(range(len(ROLES))), return_dtype=pl.Int64
    )
    return (
        activities.select(*DEVICE, Activities.start_ns, Activities.end_ns)
        .with_columns(
            roles[Roles.layer].alias(LayerTimes.layer), roles[Roles.role].alias(LayerTimes.role)
        )
        .filter(mine & pl.col(LayerTimes.layer).is_not_null())
        .sort(*DEVICE, *CELL, Activities.start_ns, Activities.end_ns)
        .with_columns(busy.alias(LayerTimes.time_us))
        .group_by(CELL)
        .agg(
            pl.col(LayerTimes.time_us).sum() / steps / NS_PER_US,
            (pl.len() / steps).alias(LayerTimes.kernels),
        )
        .sort(LayerTimes.layer, place)
        .select(pl.col(name).cast(type_) for name, type_ in polars_schema(LayerTimes).items())
    )


def by_layer(times: pl.DataFrame) -> pl.DataFrame:
    """Return the time of each layer, all roles together, layers in order."""
    return (
        times.group_by(LayerTimes.layer)
        .agg(pl.col(LayerTimes.time_us).sum())
        .sort(LayerTimes.layer)
    )
