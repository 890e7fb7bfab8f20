"""Find the operators of a graph replay in the capture of that graph, where it is on record.

Under stream capture an operator launches nothing, but its calls are on record: the k-th call is
the k-th node of each replay. A graph belongs to a capture with as many calls as it has nodes,
whose operators do what the kernels' names say; where nodes are more or fewer, both are aligned
by that.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from whichwall.analyze.completeness import BEGIN_CAPTURE, END_CAPTURE, NOT_A_LAUNCH, THREAD
from whichwall.analyze.containment import innermost
from whichwall.analyze.links import BY_CAPTURE
from whichwall.analyze.roles.align import NOBODY, Numbers, align
from whichwall.analyze.roles.candidates import rule_word
from whichwall.analyze.roles.kernel_words import (
    BATCHED_MATMULS,
    COMPARISONS,
    MATMULS,
    kernel_word,
)
from whichwall.analyze.roles.operators import Operator, read_word
from whichwall.schemas.activities import Activities
from whichwall.schemas.launches import Launches
from whichwall.schemas.ops import Ops

# Calls that become a node of the graph.
NODE_CALL = r"(?i)^(cuda|cu|hip).*(launch|memcpy|memset)"

# Names of kernels say what they do for most, and now and then too much; of a wrong capture they
# agree by chance only.
AGREEING = 0.8
# A graph whose nodes are so many more or fewer than a capture's calls is not of that capture.
NODES_OFF = 0.05

_END, _OPEN, _CAPTURE = "call_end_ns", "open_captures", "capture"


@dataclass(frozen=True)
class Captured:
    """The operators behind the calls of each capture on record, in order."""

    ops: list[pl.DataFrame]  # op, op_name, op_dims, op_types; null where no operator launched

    def named(self) -> "Captured":
        """Return the same without row numbers, which mean nothing in another run."""
        bare = pl.lit(None, pl.Int64).alias(Activities.op)
        return Captured([calls.with_columns(bare) for calls in self.ops])


def captured(launches: pl.DataFrame, ops: pl.DataFrame) -> Captured:
    """Return what every stream capture of a trace recorded.

    Args:
        launches: rows of `Launches`, in file order.
        ops: rows of `Ops`, in file order; row numbers become `op`.
    """
    name = pl.col(Launches.name)
    begins = name.str.contains(BEGIN_CAPTURE)
    if not launches.select(begins.any()).item():
        return Captured([])
    calls = (
        launches.with_columns((pl.col(Launches.start_ns) + pl.col(Launches.dur_ns)).alias(_END))
        .sort([*THREAD, Launches.start_ns, _END], descending=[False] * 4 + [True], nulls_last=True)
        .with_columns(
            (begins.cast(pl.Int32) - name.str.contains(END_CAPTURE).cast(pl.Int32))
            .cum_sum().over(THREAD).alias(_OPEN),
            begins.cum_sum().alias(_CAPTURE),
        )
        .filter(
            (pl.col(_OPEN) > 0) & name.str.contains(NODE_CALL) & ~name.str.contains(NOT_A_LAUNCH)
        )
    )  # fmt: skip
    holds_next = (pl.col(Launches.start_ns).shift(-1) < pl.col(_END)).over([*THREAD, _CAPTURE])
    calls = calls.filter(~holds_next.fill_null(value=False))
    described = ops.select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias(Activities.op),
        pl.col(Ops.name).alias(Activities.op_name),
        pl.col(Ops.input_dims).alias(Activities.op_dims),
        pl.col(Ops.input_types).alias(Activities.op_types),
    )
    found = calls.select(_CAPTURE, innermost(calls.select(launches.columns), ops)
                         .alias(Activities.op))  # fmt: skip
    joined = found.join(described, on=Activities.op, how="left", maintain_order="left")
    return Captured(joined.partition_by(_CAPTURE, maintain_order=True, include_key=False))


def with_captured(activities: pl.DataFrame, found: Captured) -> pl.DataFrame:
    """Return the activities, nodes of replays with the operators of their capture."""
    open_ = pl.col(Activities.graph_replay) & pl.col(Activities.op_link).ne_missing(BY_CAPTURE)
    names = activities.filter(open_)[Activities.name].unique()
    if not found.ops or not len(names):
        return activities
    words = {name: kernel_word(name) for name in names}
    capture, call = (np.full(activities.height, NOBODY, np.int64) for _ in range(2))
    done: dict[tuple[str | None, ...], tuple[int, Numbers] | None] = {}
    for rows in _replays(activities, open_):
        nodes = tuple(words[name] for name in activities[Activities.name].gather(rows))
        if nodes not in done:
            done[nodes] = _capture_of(nodes, found)
        best = done[nodes]
        if best is not None:
            capture[rows], call[rows] = best
    return _described(activities, found, capture, call)


def _replays(activities: pl.DataFrame, wanted: pl.Expr) -> list[Numbers]:
    """Return the rows of each replay wanted, in the order in which its nodes ran."""
    groups = (
        activities.with_row_index("row")
        .filter(wanted)
        .sort(Activities.start_ns, "row")
        .group_by(Activities.launch, maintain_order=True)
        .agg("row")
    )
    return [rows.to_numpy().astype(np.int64) for rows in groups["row"]]


def _capture_of(nodes: tuple[str | None, ...], found: Captured) -> tuple[int, Numbers] | None:
    """Return the capture that fits these nodes best, and the call of each node; None: no fit."""
    best: tuple[float, int, Numbers] | None = None
    for number, calls in enumerate(found.ops):
        if abs(len(nodes) - calls.height) > NODES_OFF * calls.height:
            continue
        words = [_call_word(name) for name in calls[Activities.op_name]]
        place = _placed(nodes, words)
        share = _agreement(nodes, words, place)
        if share >= AGREEING and (best is None or share > best[0]):
            best = (share, number, place)
    return None if best is None else (best[1], best[2])


def _call_word(op_name: str | None) -> str | None:
    """Return what a kernel of the operator is called where its name tells only so much."""
    word = rule_word(Operator(read_word(op_name), (), ())) if op_name else None
    if word in MATMULS or word in BATCHED_MATMULS:
        return "mm"
    return "eq" if word in COMPARISONS else word


def _placed(nodes: tuple[str | None, ...], words: list[str | None]) -> Numbers:
    """Return the call of each node: the one of its number, or where counts differ, by alignment."""
    if len(nodes) == len(words):
        return np.arange(len(nodes))
    kinds = {word: i for i, word in enumerate(dict.fromkeys([*nodes, *words]))}
    worth = np.eye(len(kinds), dtype=np.int32)
    left, right = (np.array([kinds[w] for w in side], np.int64) for side in (nodes, words))
    return align(left, right, worth)


def _agreement(nodes: tuple[str | None, ...], words: list[str | None], place: Numbers) -> float:
    """Return the share of nodes that do what their call's operator does, of those that tell."""
    pairs = [
        (node, words[at]) for node, at in zip(nodes, place.tolist(), strict=True) if at != NOBODY
    ]
    telling = [node == word for node, word in pairs if node and word]
    return sum(telling) / len(telling) if telling else 0.0


def _described(
    activities: pl.DataFrame, found: Captured, capture: Numbers, call: Numbers
) -> pl.DataFrame:
    every = pl.concat(found.ops)
    starts = np.cumsum([0, *(calls.height for calls in found.ops)])
    has = (capture != NOBODY) & (call != NOBODY)
    taken = every[np.where(has, starts[capture] + call, 0)]
    told = pl.Series(has) & taken[Activities.op_name].is_not_null()
    return activities.with_columns(
        *(
            pl.when(told).then(taken[name]).otherwise(pl.col(name)).alias(name)
            for name in (Activities.op, Activities.op_name, Activities.op_dims, Activities.op_types)
        ),
        pl.when(told).then(pl.lit(BY_CAPTURE)).otherwise(pl.col(Activities.op_link))
        .alias(Activities.op_link),
    )  # fmt: skip
