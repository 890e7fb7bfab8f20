"""Say how right the roles found are, against ranges that were recorded around the model's parts.

An activity's launch lies in ranges that nest; the innermost says which roles are right for it.
"""

import msgspec
import polars as pl

from whichwall.analyze.busy import reached_before
from whichwall.analyze.containment import innermost
from whichwall.analyze.roles.operator_roles import roles_of_work
from whichwall.analyze.steps import DEVICE
from whichwall.analyze.tables import read_table
from whichwall.analyze.trace import Trace, read_trace
from whichwall.schemas.activities import Activities
from whichwall.schemas.launches import Launches
from whichwall.schemas.model import Model
from whichwall.schemas.ops import Ops
from whichwall.schemas.ranges import ANNOTATION, Ranges
from whichwall.schemas.role_ranges import PREFIX, SEPARATOR, read_range
from whichwall.schemas.role_verdicts import RoleVerdicts
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import Run, polars_schema
from whichwall.schemas.summary import OPERATORS, Confusion, RoleCheck

_TIME = pl.col(RoleVerdicts.busy_ns).sum()


def check_roles(run: Run, trace: Trace) -> RoleCheck | None:
    """Return how right roles are in the pass that was recorded for it; None without one.

    Without any GPU activity, operators are judged in place of kernels: those that do work and
    whose kind is known by name.

    Args:
        run: the run; its manifest names the pass, and in an imported file it is the trace itself.
        trace: the run's own trace.
    """
    ranges = role_ranges(read_table(run, Ranges))
    if ranges.is_empty():
        return None
    apart = run.manifest.role_check
    checked = read_trace(run, aside=apart) if apart else trace
    if checked.activities.height:
        judged = verdicts(checked.activities, checked.roles, ranges)
        rest = checked.activities.height - judged.height
        return msgspec.structs.replace(summed(judged), not_judged=rest)
    judged = operator_verdicts(checked.ops, run.manifest.model, ranges)
    return msgspec.structs.replace(summed(judged), of=OPERATORS)


def role_ranges(ranges: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `Ranges` that name accepted roles, on the side of the CPU."""
    return ranges.filter(
        (pl.col(Ranges.kind) == ANNOTATION) & pl.col(Ranges.name).str.starts_with(PREFIX)
    )


def verdicts(activities: pl.DataFrame, found: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """Return a row of `RoleVerdicts` for each activity whose right roles are known.

    Args:
        activities: rows of `Activities`.
        found: rows of `Roles`, one for each activity, in the same order.
        ranges: rows of `Ranges` that name accepted roles.
    """
    calls = activities.select(
        Activities.point,
        Activities.rank,
        pl.col(Activities.launch_tid).alias(Launches.tid),
        pl.col(Activities.launch_start_ns).alias(Launches.start_ns),
    ).fill_null(0)
    fresh = pl.max_horizontal(pl.col(Activities.start_ns), reached_before(DEVICE))
    busy = activities.select((pl.col(Activities.end_ns) - fresh).clip(0)).to_series()
    return _judge(calls, found[Roles.role], found[Roles.layer], busy, ranges)


def operator_verdicts(ops: pl.DataFrame, model: Model | None, ranges: pl.DataFrame) -> pl.DataFrame:
    """Return a row of `RoleVerdicts` for each operator that does work; its time is its duration.

    Args:
        ops: rows of `Ops`.
        model: the model's dimensions, if known.
        ranges: rows of `Ranges` that name accepted roles.
    """
    if ops.is_empty():
        return pl.DataFrame(schema=polars_schema(RoleVerdicts))
    work = roles_of_work(ops, model)
    return _judge(work, work[Roles.role], work[Roles.layer], work[Ops.dur_ns], ranges)


def _judge(
    calls: pl.DataFrame, role: pl.Series, layer: pl.Series, busy_ns: pl.Series, ranges: pl.DataFrame
) -> pl.DataFrame:
    """Set what was found beside what the innermost range around each call says."""
    names = ranges[Ranges.name].gather(innermost(calls, ranges))
    read = {name: read_range(name) for name in names.drop_nulls().unique()}
    accepted = {name: SEPARATOR.join(said[0]) for name, said in read.items() if said and said[0]}
    layers = {name: said[1] for name, said in read.items() if said}
    expected = names.replace_strict(accepted, default=None, return_dtype=pl.String)
    whole = polars_schema(RoleVerdicts)[RoleVerdicts.expected_layer]
    return (
        pl.DataFrame(
            {
                RoleVerdicts.expected: expected,
                RoleVerdicts.expected_layer: names.replace_strict(
                    layers, default=None, return_dtype=whole
                ),
                RoleVerdicts.found: role,
                RoleVerdicts.found_layer: layer,
                RoleVerdicts.busy_ns: busy_ns,
            }
        )
        .filter(pl.col(RoleVerdicts.expected).is_not_null())
        .with_columns(
            pl.col(RoleVerdicts.expected)
            .str.split(SEPARATOR)
            .list.contains(pl.col(RoleVerdicts.found))
            .alias(RoleVerdicts.right)
        )
        .select(list(RoleVerdicts.COLUMNS))
    )


def summed(judged: pl.DataFrame) -> RoleCheck:
    """Return the shares of time, kernels and layers that are right, and every confusion.

    Args:
        judged: rows of `RoleVerdicts`.
    """
    right = pl.col(RoleVerdicts.right)
    whole = int(judged[RoleVerdicts.busy_ns].sum())
    in_layer = judged.filter(pl.col(RoleVerdicts.expected_layer).is_not_null())
    same_layer = pl.col(RoleVerdicts.expected_layer).eq_missing(pl.col(RoleVerdicts.found_layer))
    pairs = (
        judged.group_by(RoleVerdicts.expected, RoleVerdicts.found)
        .agg(right.first(), pl.len(), _TIME)
        .sort(
            RoleVerdicts.busy_ns, RoleVerdicts.expected, RoleVerdicts.found,
            descending=[True, False, False],
        )
    )  # fmt: skip
    return RoleCheck(
        time_right=_share(int(judged.filter(right)[RoleVerdicts.busy_ns].sum()), whole),
        kernels_right=_share(judged.filter(right).height, judged.height),
        layers_right=_share(in_layer.filter(same_layer).height, in_layer.height),
        kernels=judged.height,
        confusion=[
            Confusion(expected, found, is_right, kernels, busy_ns)
            for expected, found, is_right, kernels, busy_ns in pairs.iter_rows()
        ],
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
