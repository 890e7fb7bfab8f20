"""Say what part of the model operator time works for, on a run without a GPU.

The operators of a thread nest. Those that do the work (`aten::addmm` inside `aten::linear`) are
given roles as kernels are, in the order in which they began; what an operator calls has its
role, what only calls it (and views, which do nothing) has the role of the work done there.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from whichwall.analyze.roles.candidates import rule_word
from whichwall.analyze.roles.looks import look
from whichwall.analyze.roles.operators import Operator, read_word
from whichwall.analyze.roles.order import ROLE_NAMES, ROLE_OF_STAGE, Numbers, is_strained, walk_all
from whichwall.analyze.roles.stages import Flags
from whichwall.schemas.activities import Activities
from whichwall.schemas.model import Model
from whichwall.schemas.ops import Ops
from whichwall.schemas.role_totals import OperatorRoleTotals
from whichwall.schemas.roles import OTHER, ROLES, Roles
from whichwall.schemas.run import polars_schema

# They hand the work to an operator whose shapes say more; without one, they do it themselves.
WRAPPERS = frozenset({"linear", "matmul", "to_copy", "clone"})

THREAD = (Ops.point, Ops.rank, Ops.pid, Ops.tid)
NOBODY = UNKNOWN = -1
_ROW = "row"


@dataclass(frozen=True)
class Nesting:
    """The operators of a run, those of a thread together, each before what it calls."""

    order: Numbers  # row of each
    caller: Numbers  # position of the operator that called it; NOBODY at the top
    thread: Numbers  # number of its thread
    self_ns: Numbers  # its time without the operators it called


@dataclass(frozen=True)
class OperatorRoles:
    """The operators of a run in their nesting, and the number of the role of each that works."""

    nested: Nesting
    works: Flags
    role: Numbers  # index into ROLE_NAMES, their count where nothing is told
    layer: Numbers  # -1 outside layers


def attribute_ops(ops: pl.DataFrame, model: Model | None) -> pl.DataFrame:
    """Return operator self time by role, a row of `OperatorRoleTotals` for each that occurs."""
    found = _find(ops, model)
    return _totals(_spread(found.role, found.works, found.nested), found.nested.self_ns)


def roles_of_work(ops: pl.DataFrame, model: Model | None) -> pl.DataFrame:
    """Return the operators that do work of their own, with role and layer, in order of nesting.

    Columns are those of `Ops`, and `role` and `layer` as in `Roles`.
    """
    found = _find(ops, model)
    rows = np.flatnonzero(found.works)
    names = np.array([*ROLE_NAMES, OTHER])[found.role[rows]]
    layer = pl.Series(Roles.layer, found.layer[rows], dtype=pl.Int32)
    return ops[found.nested.order[rows]].with_columns(
        pl.Series(Roles.role, names, dtype=pl.String), layer.set(layer < 0, None)
    )


def _find(ops: pl.DataFrame, model: Model | None) -> OperatorRoles:
    looks = look(
        ops.select(
            pl.lit("").alias(Activities.name),
            pl.col(Ops.name).alias(Activities.op_name),
            pl.col(Ops.input_dims).alias(Activities.op_dims),
            pl.col(Ops.input_types).alias(Activities.op_types),
        ),
        model,
    )
    nested = nest(ops)
    works = _workers(ops[Ops.name].gather(nested.order), nested.caller)
    workers = np.flatnonzero(works)
    threads = np.split(workers, np.flatnonzero(np.diff(nested.thread[workers])) + 1)
    found = walk_all(looks.of_row[nested.order], looks.costs, threads)
    place = ROLE_OF_STAGE[found.stage]
    alone = looks.alone[looks.of_row[nested.order]] == place
    told = found.belongs & (alone | ~is_strained(found, threads, works))
    return OperatorRoles(nested, works, np.where(told, place, len(ROLE_NAMES)), found.layer)


def nest(ops: pl.DataFrame) -> Nesting:
    """Find what called each operator: the innermost one open on its thread when it began."""
    ordered = ops.with_row_index(_ROW).sort(
        *THREAD, Ops.start_ns, Ops.dur_ns, _ROW, descending=[False] * 5 + [True, False]
    )
    starts, durations = ordered[Ops.start_ns].to_list(), ordered[Ops.dur_ns].to_list()
    thread = ordered.select(pl.struct(THREAD).rle_id()).to_series().to_list()
    caller = [NOBODY] * len(starts)
    own = list(durations)
    open_ops: list[int] = []
    for i, (start, duration) in enumerate(zip(starts, durations, strict=True)):
        while open_ops and (
            thread[open_ops[-1]] != thread[i]
            or starts[open_ops[-1]] + durations[open_ops[-1]] <= start
        ):
            open_ops.pop()
        if open_ops:
            caller[i] = open_ops[-1]
            own[open_ops[-1]] -= duration
        open_ops.append(i)
    return Nesting(
        order=ordered[_ROW].to_numpy().astype(np.int64),
        caller=np.array(caller, np.int64),
        thread=np.array(thread, np.int64),
        self_ns=np.maximum(np.array(own, np.int64), 0),
    )


def _workers(names: pl.Series, caller: Numbers) -> Flags:
    """Tell which operators do work of their own: the outermost whose work is known by name."""
    words = {name: read_word(name) for name in names.unique()}
    known = {name for name, word in words.items() if rule_word(Operator(word, (), ()))}
    wrapping = {name for name in known if words[name] in WRAPPERS}
    works = [False] * len(names)
    covered = [False] * len(names)
    below = [False] * len(names)

    def mark(wanted: set[str]) -> None:
        for i, (name, above) in enumerate(zip(names, caller.tolist(), strict=True)):
            covered[i] = above != NOBODY and (covered[above] or works[above])
            works[i] = works[i] or (name in wanted and not covered[i] and not below[i])

    mark(known - wrapping)
    for i in range(len(names) - 1, -1, -1):
        above = int(caller[i])
        if above != NOBODY:
            below[above] = below[above] or below[i] or works[i]
    mark(wrapping)
    return np.array(works, bool)


def _spread(role: Numbers, works: Flags, nested: Nesting) -> Numbers:
    """Give every operator a role: that of the work it is part of, calls, or follows."""
    callers = nested.caller.tolist()
    spread = np.where(works, role, UNKNOWN).tolist()
    for i in range(len(callers) - 1, -1, -1):
        above = callers[i]
        if above != NOBODY and not works[above] and spread[i] != UNKNOWN:
            spread[above] = spread[i]
    for i, above in enumerate(callers):
        if spread[i] == UNKNOWN and above != NOBODY:
            spread[i] = spread[above]
    known = np.array(spread, np.int64)
    latest = np.maximum.accumulate(np.where(known != UNKNOWN, np.arange(len(known)), 0))
    follows = nested.thread[latest] == nested.thread
    return np.where(follows & (known[latest] != UNKNOWN), known[latest], len(ROLE_NAMES))


def _totals(role: Numbers, self_ns: Numbers) -> pl.DataFrame:
    """Add up calls and self time by role."""
    names = np.array([*ROLE_NAMES, OTHER])
    order = pl.col(OperatorRoleTotals.role).replace_strict(
        list(ROLES), list(range(len(ROLES))), return_dtype=pl.Int64
    )
    own = pl.col(OperatorRoleTotals.self_ns)
    every = own.sum()
    return (
        pl.DataFrame({OperatorRoleTotals.role: names[role], OperatorRoleTotals.self_ns: self_ns})
        .group_by(OperatorRoleTotals.role)
        .agg(own.sum(), pl.len().alias(OperatorRoleTotals.ops))
        .with_columns(pl.when(every > 0).then(own / every).alias(OperatorRoleTotals.share))
        .sort(order)
        .select(
            pl.col(name).cast(type_) for name, type_ in polars_schema(OperatorRoleTotals).items()
        )
    )
