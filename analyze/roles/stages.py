"""The stages that a pass of a decoder goes through, and what it costs to move between them.

A stage is a place in the pass; its role is what it does there. The same kernel can fit several
stages (the two norms of a layer, the query and the output projection), so the place is found
from the order: following the usual flow is free, leaving out a stage that models have costs,
and going back costs, each in the units of `rules`: about the negative logarithm of how
often it happens. No cost belongs to any one model.
"""

from dataclasses import dataclass
from enum import IntEnum, auto
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from whichwall.schemas import roles

Costs = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Stage(IntEnum):
    """Places in a pass, in the usual order."""

    EMBED = 0
    NORM_EMBED = auto()  # of what was looked up, before any layer
    POSITION = auto()  # whole numbers: ids, positions and lengths made ready
    MASK = auto()
    PLAN = auto()  # dividing attention's work, before the layers
    PLAN_CACHE = auto()  # finding the places of the cache to write to
    TURN = auto()  # building cos and sin
    NORM_IN = auto()
    QKV = auto()
    SCALE = auto()  # of queries, ahead of their scores
    LAYER_TURN = auto()  # building cos and sin inside a layer
    QK_NORM = auto()
    ROPE = auto()
    CACHE = auto()
    LAYER_MASK = auto()
    ATTEND = auto()  # one fused kernel
    SCORES = auto()  # or three steps
    SOFTMAX = auto()
    VALUES = auto()
    OUT = auto()
    NORM_OUT = auto()
    ADD_OUT = auto()
    NORM_MLP = auto()
    GATE_UP = auto()
    ACT = auto()
    DOWN = auto()
    ROUTE = auto()
    EXPERTS = auto()
    SHARED = auto()  # adding shared experts to routed ones
    NORM_DOWN = auto()
    ADD_DOWN = auto()
    NORM_LAST = auto()
    HEAD = auto()
    KEEP = auto()  # writing back what the pass keeps for the next
    SAMPLE = auto()


ROLE_OF: dict[Stage, str] = {
    Stage.EMBED: roles.EMBEDDING,
    Stage.NORM_EMBED: roles.NORM,
    Stage.POSITION: roles.OTHER,
    Stage.MASK: roles.MASK,
    Stage.PLAN: roles.ATTENTION,
    Stage.PLAN_CACHE: roles.KV_CACHE,
    Stage.TURN: roles.ROPE,
    Stage.NORM_IN: roles.NORM,
    Stage.QKV: roles.QKV_PROJ,
    Stage.SCALE: roles.ATTENTION,
    Stage.LAYER_TURN: roles.ROPE,
    Stage.QK_NORM: roles.NORM,
    Stage.ROPE: roles.ROPE,
    Stage.CACHE: roles.KV_CACHE,
    Stage.LAYER_MASK: roles.MASK,
    Stage.ATTEND: roles.ATTENTION,
    Stage.SCORES: roles.ATTENTION,
    Stage.SOFTMAX: roles.SOFTMAX,
    Stage.VALUES: roles.ATTENTION,
    Stage.OUT: roles.O_PROJ,
    Stage.NORM_OUT: roles.NORM,
    Stage.ADD_OUT: roles.RESIDUAL,
    Stage.NORM_MLP: roles.NORM,
    Stage.GATE_UP: roles.GATE_UP_PROJ,
    Stage.ACT: roles.ACTIVATION,
    Stage.DOWN: roles.DOWN_PROJ,
    Stage.ROUTE: roles.ROUTER,
    Stage.EXPERTS: roles.EXPERTS,
    Stage.SHARED: roles.EXPERTS,
    Stage.NORM_DOWN: roles.NORM,
    Stage.ADD_DOWN: roles.RESIDUAL,
    Stage.NORM_LAST: roles.NORM,
    Stage.HEAD: roles.LM_HEAD,
    Stage.KEEP: roles.KV_CACHE,
    Stage.SAMPLE: roles.SAMPLING,
}

FIRST_IN_LAYER, LAST_IN_LAYER = Stage.NORM_IN, Stage.ADD_DOWN

# Leaving out what every decoder has; what only some have is free to leave out.
MATRIX, USUAL, COMMON = 3.0, 1.0, 0.5
SKIP: dict[Stage, float] = {
    Stage.EMBED: COMMON,
    Stage.NORM_IN: USUAL,
    Stage.QKV: MATRIX,
    Stage.ROPE: COMMON,
    Stage.CACHE: COMMON,
    Stage.ATTEND: MATRIX,
    Stage.SCORES: MATRIX,
    Stage.SOFTMAX: USUAL,
    Stage.VALUES: MATRIX,
    Stage.OUT: MATRIX,
    Stage.ADD_OUT: USUAL,
    Stage.NORM_MLP: USUAL,
    Stage.GATE_UP: MATRIX,
    Stage.ACT: USUAL,
    Stage.DOWN: MATRIX,
    Stage.ROUTE: USUAL,
    Stage.EXPERTS: MATRIX,
    Stage.ADD_DOWN: USUAL,
    Stage.NORM_LAST: USUAL,
    Stage.HEAD: MATRIX,
    Stage.SAMPLE: COMMON,
}

# The usual flow, as chains; the price of a chain is paid once, on its first move.
FLOW: tuple[tuple[float, tuple[Stage, ...]], ...] = (
    (0.0, (Stage.EMBED, Stage.POSITION, Stage.PLAN_CACHE, Stage.PLAN, Stage.TURN, Stage.NORM_IN)),
    (0.0, (Stage.NORM_IN, Stage.QKV, Stage.ROPE, Stage.CACHE, Stage.ATTEND, Stage.OUT)),
    (0.0, (Stage.CACHE, Stage.SCORES, Stage.SOFTMAX, Stage.VALUES, Stage.OUT)),
    (0.0, (Stage.OUT, Stage.ADD_OUT, Stage.NORM_MLP)),
    (0.0, (Stage.NORM_MLP, Stage.GATE_UP, Stage.ACT, Stage.DOWN, Stage.ADD_DOWN, Stage.NORM_IN)),
    (0.0, (Stage.NORM_MLP, Stage.ROUTE, Stage.EXPERTS, Stage.ADD_DOWN)),
    (0.0, (Stage.ADD_DOWN, Stage.NORM_LAST, Stage.HEAD, Stage.SAMPLE)),
    (COMMON, (Stage.HEAD, Stage.KEEP, Stage.SAMPLE)),
    (COMMON, (Stage.SAMPLE, Stage.KEEP, Stage.SAMPLE)),
    (COMMON, (Stage.SAMPLE, Stage.EMBED)),
    # Some models also normalise what was looked up, queries and keys, or what a block adds.
    (USUAL, (Stage.EMBED, Stage.NORM_EMBED, Stage.POSITION)),
    (USUAL, (Stage.QKV, Stage.QK_NORM, Stage.ROPE)),
    (USUAL, (Stage.OUT, Stage.NORM_OUT, Stage.ADD_OUT)),
    (USUAL, (Stage.DOWN, Stage.NORM_DOWN, Stage.ADD_DOWN)),
    (USUAL, (Stage.EXPERTS, Stage.NORM_DOWN)),
    # Prologues differ in order: positions before or after the lookup, the mask last.
    (USUAL, (Stage.POSITION, Stage.MASK, Stage.TURN)),
    (COMMON, (Stage.POSITION, Stage.EMBED)),
    (COMMON, (Stage.MASK, Stage.EMBED)),
    (COMMON, (Stage.MASK, Stage.POSITION)),
    (COMMON, (Stage.TURN, Stage.MASK)),
    (COMMON, (Stage.PLAN, Stage.POSITION)),
    (COMMON, (Stage.PLAN_CACHE, Stage.POSITION)),
    # One projection, or one of queries and keys, after the other.
    (COMMON, (Stage.ACT, Stage.GATE_UP)),
    (COMMON, (Stage.QK_NORM, Stage.QKV)),
    (USUAL + COMMON, (Stage.ROPE, Stage.QK_NORM)),
    (COMMON, (Stage.CACHE, Stage.ROPE)),
    (COMMON, (Stage.CACHE, Stage.LAYER_MASK, Stage.ATTEND)),
    (COMMON, (Stage.LAYER_MASK, Stage.SCORES)),
    (COMMON, (Stage.LAYER_MASK, Stage.CACHE)),
    (USUAL, (Stage.ROPE, Stage.QKV)),
    (USUAL, (Stage.CACHE, Stage.QKV)),
    (COMMON, (Stage.QKV, Stage.SCALE)),
    (COMMON, (Stage.SCALE, Stage.QKV)),
    (COMMON, (Stage.SCALE, Stage.CACHE)),
    (COMMON, (Stage.SCALE, Stage.SCORES)),
    (COMMON, (Stage.ROPE, Stage.SCALE)),
    (USUAL, (Stage.QKV, Stage.LAYER_TURN, Stage.ROPE)),
    (USUAL, (Stage.LAYER_TURN, Stage.QKV)),
    (USUAL, (Stage.VALUES, Stage.SCORES)),
    (USUAL, (Stage.ATTEND, Stage.CACHE)),
    # Shared experts before or after the routed ones.
    (COMMON, (Stage.EXPERTS, Stage.GATE_UP)),
    (COMMON, (Stage.DOWN, Stage.ROUTE)),
    (COMMON, (Stage.EXPERTS, Stage.ROUTE)),
    (0.0, (Stage.EXPERTS, Stage.SHARED, Stage.ADD_DOWN)),
    (0.0, (Stage.DOWN, Stage.SHARED)),
)

# Anything may follow anything in a damaged or unknown sequence, at a price no flow reaches.
JUMP = 9.0
# A recording may begin and end inside a pass, or between layers.
CUT_INSIDE, CUT_BETWEEN = 2.0, 0.5


@dataclass(frozen=True)
class Moves:
    """What a move from one stage (row) to another (column) costs and means."""

    cost: Costs
    enters_layer: Flags  # a new layer begins on the way
    begins_pass: Flags  # a new pass begins on the way
    cut_cost: Costs  # of being the first or the last stage seen


@cache
def moves() -> Moves:
    """Return the cheapest way between any two stages, by the flow and the cost of leaving out."""
    count = len(Stage)
    cost = np.full((count, count), JUMP)
    enters = np.zeros((count, count), bool)
    begins = np.zeros((count, count), bool)
    for price, chain in FLOW:
        for step, (here, there) in enumerate(pairwise(chain)):
            cost[here, there] = price if step == 0 else 0.0
            enters[here, there] = there == FIRST_IN_LAYER
            begins[here, there] = here == Stage.SAMPLE and there < FIRST_IN_LAYER
    _mark_jumps(cost, enters, begins)
    for middle in Stage:
        through = cost[:, [middle]] + SKIP.get(middle, 0.0) + cost[[middle], :]
        better = through < cost
        better[:, middle] = better[middle, :] = False
        cost = np.where(better, through, cost)
        enters = np.where(better, enters[:, [middle]] | enters[[middle], :], enters)
        begins = np.where(better, begins[:, [middle]] | begins[[middle], :], begins)
    np.fill_diagonal(cost, 0.0)
    np.fill_diagonal(enters, val=False)
    np.fill_diagonal(begins, val=False)
    cut = np.where(in_layer(np.arange(count)), CUT_INSIDE, 0.0)
    cut[[FIRST_IN_LAYER, LAST_IN_LAYER]] = CUT_BETWEEN
    cut[Stage.MASK] = CUT_BETWEEN  # numbers at either end of a pass are seldom a mask's
    return Moves(cost, enters, begins, cut)


def _mark_jumps(cost: Costs, enters: Flags, begins: Flags) -> None:
    """Say what a jump means: backwards into a layer is the next layer, before them a new pass."""
    here, there = np.meshgrid(np.arange(len(Stage)), np.arange(len(Stage)), indexing="ij")
    jump = cost == JUMP
    within = (there >= FIRST_IN_LAYER) & (there <= LAST_IN_LAYER)
    enters |= jump & within & ((there < here) | (here < FIRST_IN_LAYER))
    begins |= jump & (there < FIRST_IN_LAYER) & (here >= FIRST_IN_LAYER)


def in_layer(stages: npt.NDArray[np.int64]) -> Flags:
    """Tell which of the stages lie inside a layer."""
    return (stages >= FIRST_IN_LAYER) & (stages <= LAST_IN_LAYER)
