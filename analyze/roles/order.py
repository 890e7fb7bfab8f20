"""Find the stage of every kernel of a sequence: the cheapest walk through a decoder's stages.

Each kernel has a cost for each stage, each move between stages has one (`stages`), and the
walk with the least sum is exact: dynamic programming from both ends gives, for every kernel and
stage, the least sum of any walk that has the kernel there. The difference between the best
and the best with another role is what the other role would have to be wrong by: the margin.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whichwall.analyze.roles.stages import ROLE_OF, Costs, Flags, Stage, in_layer, moves

ROLE_NAMES = tuple(dict.fromkeys(ROLE_OF.values()))
ROLE_OF_STAGE = np.array([ROLE_NAMES.index(ROLE_OF[s]) for s in Stage])
_STAGES_OF_ROLE = [np.flatnonzero(r == ROLE_OF_STAGE) for r in range(len(ROLE_NAMES))]

# Cost of a kernel that belongs nowhere: dearer than the oddest rule, cheaper than a jump, so
# that a stranger does not move the walk.
STRANGER = 7.0

# Sums of a few hundred thousand costs differ by rounding alone by less than this.
EQUAL = 1e-6

# Where kernels cost this much each in the mean, nearly all of them stand where rules call them
# rare: no decoder passed by, and the order says nothing. In recordings at hand decoders cost up to
# 1.5, names without shapes included; recommendation, vision and training steps, 2 to 5.
STRAINED = 2.0

# A walk holds a few hundred bytes a kernel; a step has a few thousand kernels.
LONGEST = 1 << 15

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Walk:
    """The stages of a sequence of kernels."""

    stage: Numbers  # where the kernel stands
    belongs: Flags  # false: it stands there, but nothing puts it there
    layer: Numbers  # -1 outside layers
    margin: Costs  # cost by which the best walk with another role is worse
    paid: Costs  # what the kernel costs where it stands, with the move there


def walk(costs: Costs) -> Walk:
    """Return the cheapest walk of kernels (rows) whose cost at each stage (columns) is given.

    A cost is infinite where nothing puts the kernel at the stage. A kernel may also belong
    nowhere, at the cost of a stranger: it then stands at any stage and moves nothing.
    """
    known = np.minimum(costs, STRANGER)
    ahead = _least_ahead(known)
    through = _least_behind(known) + ahead
    stage = _follow(through[0], known + ahead)
    belongs = costs[np.arange(len(stage)), stage] < STRANGER
    apart = (through - known).min(axis=1) + STRANGER
    margin = _margins(np.where(costs < STRANGER, through, np.inf), apart, stage, belongs)
    paid = known[np.arange(len(stage)), stage]
    paid[1:] += moves().cost[stage[:-1], stage[1:]]
    return Walk(stage, belongs, _layers(stage), margin, paid)


def _least_behind(known: Costs) -> Costs:
    """Return the least cost of a walk up to each kernel that ends at each stage, it included."""
    found = np.empty_like(known)
    move = np.ascontiguousarray(moves().cost.T)  # rows: to, columns: from
    best = moves().cut_cost + known[0]
    found[0] = best
    for i in range(1, len(known)):
        best = (move + best).min(axis=1) + known[i]
        found[i] = best
    return found


def _least_ahead(known: Costs) -> Costs:
    """Return the least cost of what follows each kernel when it stands at each stage."""
    found = np.empty_like(known)
    found[-1] = moves().cut_cost
    move = moves().cost
    for i in range(len(known) - 2, -1, -1):
        found[i] = (move + (found[i + 1] + known[i + 1])).min(axis=1)
    return found


def _follow(start: Costs, rest: Costs) -> Numbers:
    """Return one cheapest walk, stage by stage; of equally cheap ones that which moves on last.

    So a kernel that belongs nowhere stands with the one before it.
    """
    stage = np.empty(len(rest), np.int64)
    move = moves().cost
    here = int(start.argmin())
    stage[0] = here
    for i in range(1, len(rest)):
        costs = move[here] + rest[i]
        best = int(costs.argmin())
        if costs[here] > costs[best] + EQUAL:
            here = best
        stage[i] = here
    return stage


def _layers(stage: Numbers) -> Numbers:
    """Count layers along a walk, from 0 in every pass; -1 outside layers."""
    here, there = stage[:-1], stage[1:]
    entered = np.concatenate([in_layer(stage[:1]), moves().enters_layer[here, there]])
    begun = np.concatenate([[True], moves().begins_pass[here, there]])
    count = np.cumsum(entered)
    starts = np.flatnonzero(begun)
    before = (count - entered)[starts]
    layer = count - np.repeat(before, np.diff(np.append(starts, len(stage)))) - 1
    return np.where(in_layer(stage), layer, -1)


def _margins(through: Costs, apart: Costs, stage: Numbers, belongs: Flags) -> Costs:
    """Return for each kernel how much dearer the best walk with another role is.

    `through` is infinite where a kernel does not belong; `apart` is its best walk as a stranger.
    """
    at = np.arange(len(stage))
    by_role = np.stack([through[:, s].min(axis=1) for s in _STAGES_OF_ROLE], axis=1)
    best = np.where(belongs, through[at, stage], apart)
    by_role[at[belongs], ROLE_OF_STAGE[stage[belongs]]] = np.inf
    others = np.where(belongs, apart, np.inf)
    margin: Costs = np.maximum(np.minimum(by_role.min(axis=1), others) - best, 0.0)
    return margin


def walk_all(kind: Numbers, costs: Costs, sequences: Iterable[Numbers]) -> Walk:
    """Walk every sequence of a recording; those of the same kinds of kernels are walked once.

    `kind` gives each activity its row in `costs`; a sequence lists activities in order.
    Activities in no sequence belong nowhere.
    """
    whole = Walk(
        np.zeros(len(kind), np.int64),
        np.zeros(len(kind), bool),
        np.full(len(kind), -1),
        np.zeros(len(kind)),
        np.zeros(len(kind)),
    )
    walked: dict[bytes, Walk] = {}
    begins_pass = _only_looks_up(costs)
    for sequence in sequences:
        for rows in _pieces(sequence, begins_pass[kind[sequence]]):
            kinds = kind[rows]
            key = kinds.tobytes()
            if key not in walked:
                walked[key] = walk(costs[kinds])
            found = walked[key]
            whole.stage[rows], whole.belongs[rows] = found.stage, found.belongs
            whole.layer[rows], whole.margin[rows] = found.layer, found.margin
            whole.paid[rows] = found.paid
    return whole


def is_strained(found: Walk, sequences: Iterable[Numbers], counted: Flags) -> Flags:
    """Tell which activities lie in sequences that no decoder explains.

    Those not `counted` (collectives, copies) say nothing about it.
    """
    strained = np.zeros(len(counted), bool)
    for rows in sequences:
        paid = found.paid[rows][counted[rows]]
        strained[rows] = len(paid) > 0 and paid.mean() >= STRAINED
    return strained


def _only_looks_up(costs: Costs) -> Flags:
    """Tell which kinds of kernels can only be the embedding, with which a pass begins."""
    possible = np.isfinite(costs)
    alone: Flags = possible[:, Stage.EMBED] & (possible.sum(axis=1) == 1)
    return alone


def _pieces(sequence: Numbers, begins: Flags) -> Iterator[Numbers]:
    """Cut a sequence where passes begin, so that equal ones are met again; and to bound memory."""
    for part in np.split(sequence, np.flatnonzero(begins)):
        yield from (part[i : i + LONGEST] for i in range(0, len(part), LONGEST))
