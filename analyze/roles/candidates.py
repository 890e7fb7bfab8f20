"""Propose stages for each distinct kernel: what its operator's word, shapes and widths allow.

The cost of a stage is 0 where nothing speaks against it and grows with how unusual the operator
would be there; a stage that cannot have it is absent. Order decides between what is left.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod

from whichwall.analyze.roles.compiled_kernels import read_compiled
from whichwall.analyze.roles.dims import Dims
from whichwall.analyze.roles.kernel_words import (
    BATCHED_MATMULS,
    LOOKUPS,
    MATMULS,
    TURNING,
    counts_whole,
    fused_roles,
    fused_word,
    kernel_word,
)
from whichwall.analyze.roles.matmuls import batch_levels, weight_levels
from whichwall.analyze.roles.operands import REPEAT, lookup, together
from whichwall.analyze.roles.operators import Operator, Shape
from whichwall.analyze.roles.rules import MOE, POSSIBLE, RARE, RULES, Levels
from whichwall.analyze.roles.stages import ROLE_OF, Stage
from whichwall.analyze.roles.tensor_kinds import (
    SELDOM,
    Kind,
    is_frequencies,
    main_kinds,
    repeats_heads,
)
from whichwall.analyze.roles.witnesses import weight_of

Costs = dict[Stage, float]

# Arrays that cross between host and device are input or output; a lone number is a constant,
# and so are frequencies. What lies in pinned memory was put there to be handed over.
BUS_COPIES = ("HtoD", "DtoH")
HANDED_OVER = "Pinned -> Device"
PLAIN_COPIES = frozenset({"copy", "to_copy", "clone"})

# Where there are experts, the first of two sums after them is theirs, shared and routed ones.
SUM_AFTER_EXPERTS = 0.25

# Cos and sin are built once, ahead of the layers, more often than inside one.
TURN_INSIDE = 0.5

# No shape at all, and a shape that fits no width of the model: any kind of tensor may be meant.
UNSEEN, UNFIT = 0.5, 1.5


@dataclass(frozen=True)
class Candidates:
    """Where a kernel may belong, and on what evidence."""

    costs: Costs
    by_shape: bool = False  # shapes were read; else only names
    does: tuple[str, ...] = ()  # roles that its name gives away, where it fuses several


def propose(
    op: Operator | None, kernel: str, dims: Dims, operand_role: str | None = None
) -> Candidates:
    """Return the stages that one kernel can belong to; none where nothing is known of it.

    A generated kernel has `operand_role` where its words and shapes allow that.
    """
    if op and _belongs_to_nothing(op, kernel, dims):
        return Candidates({})
    found = _of_compiled(op, kernel, dims, operand_role) or _of_operator(op, kernel, dims)
    return replace(found, costs=_possible(found.costs, dims))


def _belongs_to_nothing(op: Operator, kernel: str, dims: Dims) -> bool:
    """Tell input and output, and bare copies of which no sizes say what they copy."""
    if not op.shapes:
        return op.word in PLAIN_COPIES and kernel.startswith("Memcpy")
    if HANDED_OVER in kernel:
        return True
    return any(crossing in kernel for crossing in BUS_COPIES) and _is_input(op, dims)


def turns(op: Operator | None, kernel: str, dims: Dims) -> bool:
    """Tell whether a kernel builds cos and sin, or makes numbers of them that turn heads."""
    found = read_compiled(kernel, op, dims)
    if found is not None:
        return bool(found.words & TURNING)
    return (op.word if op else kernel_word(kernel)) in TURNING


def _is_input(op: Operator, dims: Dims) -> bool:
    """Tell an array from a lone number, and from frequencies that a rotation keeps on the host."""
    kept = op.main is not None and is_frequencies(op.shapes[op.main], dims)
    return any(map(_holds_many, op.shapes)) and not kept


def _holds_many(shape: Shape) -> bool:
    return len(shape) > 1 or prod(shape) > 1


def _possible(costs: Costs, dims: Dims) -> Costs:
    """Leave out what a model without experts does not have; cos and sin are built anywhere."""
    absent: set[Stage] = set(MOE) if dims.dense else set()
    if dims.experts is None:
        absent.add(Stage.SHARED)
    found = {stage: cost for stage, cost in costs.items() if stage not in absent}
    if Stage.SHARED in found and Stage.ADD_DOWN in found:
        found[Stage.ADD_DOWN] += SUM_AFTER_EXPERTS
    if Stage.TURN in found:
        found[Stage.LAYER_TURN] = found[Stage.TURN] + TURN_INSIDE
    return found


def _of_operator(op: Operator | None, kernel: str, dims: Dims) -> Candidates:
    word = rule_word(op) if op else None
    whole = counts_whole(kernel)
    if op is None or word is None:
        word = kernel_word(kernel)
        unseen = Operator(word or "", (), ())
        return Candidates(operator_costs(unseen, dims, whole=whole) if word else {})
    costs = operator_costs(op._replace(word=word), dims, whole=whole)
    return Candidates(costs, bool(op.shapes), fused_roles(op.word))


def _of_compiled(
    op: Operator | None, kernel: str, dims: Dims, operand_role: str | None
) -> Candidates | None:
    """Read a generated kernel: of its roles the first is its own, the others are fused."""
    found = read_compiled(kernel, op, dims)
    if found is None:
        return None
    words = {rule_word(found.written._replace(word=word)) for word in found.words}
    costs = _merge(
        (operator_costs(found.written._replace(word=word), dims), 0.0) for word in words if word
    )
    if op and repeats_heads(op, dims):
        costs = dict(REPEAT)
    possible = {ROLE_OF[stage] for stage in costs}
    does = tuple(role for role in found.roles if role in possible)
    if operand_role in possible:
        does = (operand_role,)
    if does:
        doubt = {does[0]: 0.0} | dict.fromkeys(does[1:], POSSIBLE)
        rest = POSSIBLE if found.only_writes_back else RARE
        costs = {s: cost + doubt.get(ROLE_OF[s], rest) for s, cost in costs.items()}
    return Candidates(costs, bool(found.written.shapes), does)


def rule_word(op: Operator) -> str | None:
    """Return the word by which rules know an operator, or None."""
    known = op.word in RULES or op.word in MATMULS or op.word in BATCHED_MATMULS
    return op.word if known else fused_word(op.word)


def operator_costs(op: Operator, dims: Dims, *, whole: bool = False) -> Costs:
    """Return the stages that an operator known by its word can belong to.

    Where its sizes are not known, its kernel may say that it works on `whole` numbers.
    """
    if op.word in MATMULS:
        return dict(weight_levels(weight_of(op), dims))
    if op.word in BATCHED_MATMULS:
        return dict(batch_levels([s for s in op.shapes if len(s) == 3][-2:], dims))
    rules = RULES.get(op.word, {})
    if not op.shapes and whole and Kind.WHOLE in rules:
        return _merge([(rules[Kind.WHOLE], UNSEEN)])
    if not op.shapes or dims.hidden is None:
        return _merge((rules[k], UNSEEN + POSSIBLE * (k in SELDOM)) for k in rules)
    looked_up = lookup(op, dims) if op.word in LOOKUPS else None
    if looked_up is not None:
        return dict(looked_up)
    return _merge(
        (levels, cost + extra)
        for kind, cost in main_kinds(op, dims)
        for levels, extra in _read_as(kind, op, dims)
    )


def _read_as(kind: Kind, op: Operator, dims: Dims) -> list[tuple[Levels, float]]:
    """Return the stages of an operator whose largest tensor is read as `kind`."""
    rules = RULES.get(op.word, {})
    levels = together(op, dims, kind) or rules.get(kind)
    if levels is None and kind == Kind.OTHER:
        return [(rules[k], UNFIT) for k in rules]
    return [] if levels is None else [(levels, 0.0)]


def _merge(parts: Iterable[tuple[Levels, float]]) -> Costs:
    """Return for each stage the cheapest of several readings."""
    costs: Costs = {}
    for part, extra in parts:
        for stage, cost in part.items():
            costs[stage] = min(cost + extra, costs.get(stage, cost + extra))
    return costs
