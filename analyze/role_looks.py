"""Look at each distinct kernel of a recording once: the stages it can belong to, as arrays."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import polars as pl

from whichwall.analyze.dims import measure
from whichwall.analyze.operators import Operator, read_operator
from whichwall.analyze.role_candidates import Candidates, propose
from whichwall.analyze.role_order import ROLE_OF_STAGE, Numbers
from whichwall.analyze.role_stages import Costs, Flags, Stage
from whichwall.schemas.activities import Activities
from whichwall.schemas.model import Model

# A look decides alone where every other role costs at least this much more: what rules call rare.
DECISIVE = 2.5

LOOK = (Activities.name, Activities.op_name, Activities.op_dims, Activities.op_types)
_ROW = "row"


@dataclass(frozen=True)
class Looks:
    """The distinct kernels of a recording, and which of them each activity is."""

    costs: Costs  # (looks, stages): infinite where nothing puts the kernel at the stage
    alone: Numbers  # the role that the look decides without order, -1 where order must
    by_shape: Flags  # shapes were read; else names alone
    does: list[tuple[str, ...]]  # roles of a kernel that fuses several
    of_row: Numbers


def look(activities: pl.DataFrame, model: Model | None) -> Looks:
    """Return what each distinct kernel allows, by the model's widths or those of the trace.

    Of the activities only name, operator, its sizes and its types are looked at.
    """
    distinct = activities.with_row_index(_ROW).group_by(LOOK, maintain_order=True).agg(_ROW)
    rows = [r.to_numpy() for r in distinct[_ROW]]
    operators = [
        None if name is None else read_operator(name, dims, types)
        for name, dims, types in distinct.select(LOOK[1:]).iter_rows()
    ]
    counted: Counter[Operator] = Counter()
    for operator, its_rows in zip(operators, rows, strict=True):
        if operator is not None:
            counted[operator] += len(its_rows)
    dims = measure(counted, model)
    kernels = distinct[Activities.name].to_list()
    told = [propose(op, kernel, dims) for op, kernel in zip(operators, kernels, strict=True)]
    of_row = np.empty(activities.height, np.int64)
    for i, its_rows in enumerate(rows):
        of_row[its_rows] = i
    return _arrange(told, of_row)


def _arrange(told: list[Candidates], of_row: Numbers) -> Looks:
    costs = np.full((len(told), len(Stage)), np.inf)
    for i, candidates in enumerate(told):
        for stage, cost in candidates.costs.items():
            costs[i, stage] = cost
    return Looks(
        costs=costs,
        alone=_alone(costs),
        by_shape=np.array([c.by_shape for c in told], bool),
        does=[c.does for c in told],
        of_row=of_row,
    )


def _alone(costs: Costs) -> Numbers:
    """Return for each look the one role that it allows, or that every other is rare beside."""
    roles = np.unique(ROLE_OF_STAGE)
    by_role = np.stack([costs[:, r == ROLE_OF_STAGE].min(axis=1) for r in roles], axis=1)
    ranked = np.sort(by_role, axis=1)
    with np.errstate(invalid="ignore"):
        decided = ranked[:, 1] - ranked[:, 0] >= DECISIVE
    return np.where(decided, by_role.argmin(axis=1), -1)
