"""Divide a step from its floor to its measured time: every nanosecond has a part.

The parts are the floor, what the kernels of each role took over it, the idle time between the
nodes of graph replays, idle gaps by cause, the host's time outside the GPU's stretch, and a
remainder, which is what is left and is never hidden. Kernels are taken to run in the clean step
as they do in the trace; gaps are not, since the profiler lengthens those that wait for the host.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from whichwall.analyze.quantities import duration, significant
from whichwall.analyze.thresholds import ASSUMED_NODE_IDLE_NS, BUSY_TOLERANCE, MAJORITY
from whichwall.schemas.account import (
    CLEAN_STEP,
    FLOOR,
    GRAPH_IDLE,
    HOST,
    IDLE,
    KERNELS,
    REMAINDER,
    TRACED_STEP,
    Account,
    AccountPart,
)
from whichwall.schemas.gaps import GRAPH, PROFILER
from whichwall.schemas.summary import StepGroup

FINE = 1000  # weights are whole picoseconds: a role's floor can be under a nanosecond

ROLE_PARTS = (
    "a role's part is its share of the busy time, as traced, less its share of the floor; below 0 "
    "it ran faster than the floor allows, so that its bytes came from a cache"
)
CACHED = (
    "the floor is left out: the weights are under four times the last-level cache, so their bytes "
    "need not come from memory"
)
AS_TRACED = (
    "no clean step is known: the parts are those of the traced step, whose gaps the profiler "
    "lengthens, by more than its own share says"
)
PROFILER_OUT = "gaps in which the profiler worked are left out: without it there are none"


@dataclass(frozen=True)
class StepFacts:
    """What an account rests on besides the summary of the step; unknown is None."""

    floor_ns: int | None = None
    floor_of: str | None = None  # bytes, arithmetic
    floor_by_role: Mapping[str, float] = field(default_factory=dict)  # ns; adds up to the floor
    cached_weights: bool = False
    gpu_ns: int | None = None  # of the clean step, between events around it
    graph_nodes: int = 0  # per step
    node_idle_ns: float | None = None  # measured, per node


def account(group: StepGroup, facts: StepFacts) -> Account | None:
    """Return the parts of one step; they add up to it, to the nanosecond.

    None without GPU work, or where the GPU is busy for longer than the clean step by more than
    `BUSY_TOLERANCE`: trace and stopwatch then saw different work.
    """
    busy, step = group.busy_ns_median, group.clean_step_ns_median
    if busy is None or group.window_ns_median is None:
        return None
    if step is None:
        return _traced(group, facts, busy, group.window_ns_median)
    if busy > step * (1 + BUSY_TOLERANCE):
        return None
    return _clean(group, facts, busy, step)


def split(total: int, weights: Sequence[int]) -> list[int]:
    """Divide a whole number in proportion to weights, exactly: the largest remainders round up.

    Weights are not negative and not all 0; a total below 0 is divided like its opposite.
    """
    if total < 0:
        return [-part for part in split(-total, weights)]
    whole = sum(weights)
    shares = [divmod(total * weight, whole) for weight in weights]
    left = total - sum(share for share, _ in shares)
    by_rest = sorted(range(len(shares)), key=lambda place: -shares[place][1])
    up = set(by_rest[:left])
    return [share + (place in up) for place, (share, _) in enumerate(shares)]


def _traced(group: StepGroup, facts: StepFacts, busy: int, window: int) -> Account:
    parts = [*_work(group, facts, busy), *_idle(group.gaps_by_cause_ns)]
    notes = [*_work_notes(facts), AS_TRACED]
    return _account(group, facts, TRACED_STEP, window, parts, notes)


def _clean(group: StepGroup, facts: StepFacts, busy: int, step: int) -> Account:
    notes = _work_notes(facts)
    between, host = [], []
    if facts.graph_nodes:
        idle_ns = round(_node_idle(facts) * facts.graph_nodes)
        between.append(AccountPart(GRAPH_IDLE, None, idle_ns))
        notes.append(_node_note(facts))
    if facts.gpu_ns is not None:
        host.append(AccountPart(HOST, None, step - facts.gpu_ns))
    told = busy + sum(part.ns for part in (*between, *host))
    if group.gaps_by_cause_ns.get(PROFILER):
        notes.append(PROFILER_OUT)
    gaps = {c: ns for c, ns in group.gaps_by_cause_ns.items() if c not in (GRAPH, PROFILER)}
    fitted, scale = _fitted(gaps, step - told)
    if scale is not None:
        notes.append(_scale_note(gaps, step - told, scale))
    parts = [*_work(group, facts, busy), *between, *_idle(fitted), *host]
    expected = told if _is_graph(group, facts) else None
    return _account(group, facts, CLEAN_STEP, step, parts, notes, scale=scale, expected=expected)


def _account(
    group: StepGroup, facts: StepFacts, of: str, step: int, parts: list[AccountPart],
    notes: list[str], *, scale: float | None = None, expected: int | None = None,
) -> Account:  # fmt: skip
    rest = step - sum(part.ns for part in parts)
    used = facts.graph_nodes and of == CLEAN_STEP
    return Account(
        point=group.point,
        rank=group.rank,
        device=group.device,
        phase=group.phase,
        of=of,
        step_ns=step,
        parts=[*parts, AccountPart(REMAINDER, None, rest)],
        scale=scale,
        graph_nodes=facts.graph_nodes,
        node_idle_ns=_node_idle(facts) if used else None,
        node_idle_measured=facts.node_idle_ns is not None if used else None,
        expected_ns=expected,
        error=expected / step - 1 if expected is not None else None,
        notes=notes,
    )


def _work(group: StepGroup, facts: StepFacts, busy: int) -> list[AccountPart]:
    """Return the floor, and what the kernels of each role took over it: in all, the busy time."""
    floor = None if facts.cached_weights else facts.floor_ns
    totals = {total.role: total.busy_ns for total in group.roles}
    took = _split_over(busy, totals)
    if floor is None:
        return [AccountPart(KERNELS, role, ns) for role, ns in took.items()]
    needed = {role: round(ns * FINE) for role, ns in facts.floor_by_role.items()}
    least = _split_over(floor, needed)
    over = {role: took.get(role, 0) - least.get(role, 0) for role in (*took, *least)}
    return [
        AccountPart(FLOOR, facts.floor_of, floor),
        *(AccountPart(KERNELS, role, ns) for role, ns in over.items() if ns),
    ]


def _split_over(total: int, weights: Mapping[str, int]) -> dict[str | None, int]:
    """Divide a total over names by their weights; over no name at all where none weighs."""
    if not any(weights.values()):
        return {None: total}
    return dict(zip(weights, split(total, list(weights.values())), strict=True))


def _idle(gaps: Mapping[str, int]) -> list[AccountPart]:
    return [AccountPart(IDLE, cause, ns) for cause, ns in gaps.items() if ns]


def _fitted(gaps: Mapping[str, int], left: int) -> tuple[dict[str, int], float | None]:
    """Shorten traced gaps, all by the same factor, to the time that is left for them.

    Never lengthened: what they do not fill stays a remainder.
    """
    traced, room = sum(gaps.values()), max(left, 0)
    if traced <= room:
        return dict(gaps), None
    return dict(zip(gaps, split(room, list(gaps.values())), strict=True)), room / traced


def _is_graph(group: StepGroup, facts: StepFacts) -> bool:
    """Tell whether most kernels of the step are nodes of graph replays."""
    return bool(group.kernels_median) and facts.graph_nodes >= MAJORITY * (
        group.kernels_median or 0
    )


def _node_idle(facts: StepFacts) -> float:
    return ASSUMED_NODE_IDLE_NS if facts.node_idle_ns is None else facts.node_idle_ns


def _work_notes(facts: StepFacts) -> list[str]:
    if facts.floor_ns is None:
        return []
    return [CACHED if facts.cached_weights else ROLE_PARTS]


def _node_note(facts: StepFacts) -> str:
    source = "assumed, as measured on an H200" if facts.node_idle_ns is None else "measured"
    return (
        f"between nodes of a graph the GPU idles {duration(_node_idle(facts))} each, {source} "
        "without a profiler; gaps traced there are longer and are not used"
    )


def _scale_note(gaps: Mapping[str, int], left: int, scale: float) -> str:
    traced = f"gaps traced as {duration(sum(gaps.values()))}"
    if not scale:
        return f"{traced} are the profiler's: the other parts fill the clean step without them"
    return (
        f"{traced} are longer than the {duration(left)} that the clean step has for them: each "
        f"is multiplied by {significant(scale)}"
    )
