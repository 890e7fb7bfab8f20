"""Look at each distinct kernel of a recording once: the stages it can belong to, as arrays."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl

from whichwall.analyze.roles.attention_operands import operand_roles
from whichwall.analyze.roles.candidates import Candidates, propose, turns
from whichwall.analyze.roles.dims import Dims
from whichwall.analyze.roles.flat_norms import are_norms_flat
from whichwall.analyze.roles.measure import measure
from whichwall.analyze.roles.operators import Operator, read_operator
from whichwall.analyze.roles.order import ROLE_OF_STAGE, Numbers
from whichwall.analyze.roles.rules import RARE
from whichwall.analyze.roles.stages import Costs, Flags, Stage
from whichwall.schemas.activities import Activities
from whichwall.schemas.model import Model

# A model that builds no cos and sin in a recording looks them up, or has none.
TURNS = (Stage.TURN, Stage.LAYER_TURN)

# A look decides alone where every other role costs at least this much more: what rules call rare.
DECISIVE = 2.5

LOOK = (Activities.name, Activities.op_name, Activities.op_dims, Activities.op_types)
_OPERAND_ROLE, _ROW = "operand_role", "row"


@dataclass(frozen=True)
class Looks:
    """The distinct kernels of a recording, and which of them each activity is."""

    costs: Costs  # (looks, stages): infinite where nothing puts the kernel at the stage
    alone: Numbers  # the role that the look decides without order, -1 where order must
    by_shape: Flags  # shapes were read; else names alone
    does: list[tuple[str, ...]]  # roles of a kernel that fuses several
    of_row: Numbers


class _Distinct(NamedTuple):
    kernels: list[str]
    operators: list[Operator | None]
    operand_roles: list[str | None]  # of kernels that make ready an operand of attention
    counts: list[int]
    of_row: Numbers


def look(activities: pl.DataFrame, model: Model | None) -> Looks:
    """Return what each distinct kernel allows, by the model's widths or those of the trace.

    Of the activities only name, operator, its sizes and its types are looked at, and which
    kernels stand beside each other.
    """
    distinct = _distinct(activities)
    dims = _measured(distinct, model)
    kernels = list(zip(distinct.operators, distinct.kernels, strict=True))
    told = [
        propose(operator, kernel, dims, role)
        for (operator, kernel), role in zip(kernels, distinct.operand_roles, strict=True)
    ]
    costs = _array(told)
    if not any(turns(operator, kernel, dims) for operator, kernel in kernels):
        costs[:, TURNS] += RARE
    return Looks(
        costs=costs,
        alone=_alone(costs),
        by_shape=np.array([c.by_shape for c in told], bool),
        does=[c.does for c in told],
        of_row=distinct.of_row,
    )


def dims_of(activities: pl.DataFrame, model: Model | None) -> Dims:
    """Return the widths that roles are read against, and what each was read from."""
    return _measured(_distinct(activities), model)


def count_operators(activities: pl.DataFrame) -> Counter[Operator]:
    """Return how many activities each distinct operator launched."""
    return _counted(_distinct(activities))


def _distinct(activities: pl.DataFrame) -> _Distinct:
    # As numbers, since grouping texts of a kilobyte would write each row's out in full.
    groups = (
        activities.select(pl.col(LOOK).cast(pl.Categorical))
        .with_columns(operand_roles(activities[Activities.name]).alias(_OPERAND_ROLE))
        .with_row_index(_ROW)
        .group_by(*LOOK, _OPERAND_ROLE, maintain_order=True)
        .agg(_ROW)
        .with_columns(pl.col(LOOK).cast(pl.String))
    )
    rows = [r.to_numpy() for r in groups[_ROW]]
    of_row = np.empty(activities.height, np.int64)
    for i, its_rows in enumerate(rows):
        of_row[its_rows] = i
    operators = [
        None if name is None else read_operator(name, dims, types)
        for name, dims, types in groups.select(LOOK[1:]).iter_rows()
    ]
    return _Distinct(
        kernels=groups[Activities.name].to_list(),
        operators=operators,
        operand_roles=groups[_OPERAND_ROLE].to_list(),
        counts=[len(r) for r in rows],
        of_row=of_row,
    )


def _measured(distinct: _Distinct, model: Model | None) -> Dims:
    dims = measure(_counted(distinct), model)
    if model is not None and not model.assumed:
        return dims
    flat = are_norms_flat(distinct.operators, distinct.of_row, dims)
    return replace(dims, flat_norms=dims.flat_norms or flat)


def _counted(distinct: _Distinct) -> Counter[Operator]:
    counted: Counter[Operator] = Counter()
    for operator, count in zip(distinct.operators, distinct.counts, strict=True):
        if operator is not None:
            counted[operator] += count
    return counted


def _array(told: list[Candidates]) -> Costs:
    costs = np.full((len(told), len(Stage)), np.inf)
    for i, candidates in enumerate(told):
        for stage, cost in candidates.costs.items():
            costs[i, stage] = cost
    return costs


def _alone(costs: Costs) -> Numbers:
    """Return for each look the one role that it allows, or that every other is rare beside."""
    roles = np.unique(ROLE_OF_STAGE)
    by_role = np.stack([costs[:, r == ROLE_OF_STAGE].min(axis=1) for r in roles], axis=1)
    ranked = np.sort(by_role, axis=1)
    with np.errstate(invalid="ignore"):  # nothing at all is no decision
        decided = ranked[:, 1] - ranked[:, 0] >= DECISIVE
    return np.where(decided, by_role.argmin(axis=1), -1)
