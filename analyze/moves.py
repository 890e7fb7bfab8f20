"""Predict what a step would take after one change, each prediction with its assumption in words.

What a change spares depends on what sets the pace. Where the GPU is idle for at least half of the
clean step, the host does: the step is as long as its launches take, and shorter kernels spare
nothing until they fill it. Otherwise time that kernels do not take is spared, and in a graph also
the idle time of the nodes that are gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from whichwall.analyze.quantities import count, duration
from whichwall.analyze.thresholds import ASSUMED_NODE_IDLE_NS, MAJORITY
from whichwall.schemas.moves import (
    BATCH,
    FUSED_ATTENTION,
    FUSED_ELEMENTWISE,
    FUSED_GRAPH,
    GRAPH,
    HALF_WEIGHTS,
    Move,
)

ALREADY = "the step is already replayed as a graph"
NO_CLEAN = "no clean step is known to start from"
NO_FLOOR = "no floor is known, of which this would be a part"
FUSED = "attention has no softmax of its own: it is already fused"
NOTHING_TO_FUSE = "no two elementwise kernels follow one another"
NARROW = "weights of one byte a number or of no known type are not halved here"
RUNS = (
    "each run of neighbouring elementwise kernels becomes one, as long as its longest is now "
    "({spared} kernels and {ns} fewer)"
)


@dataclass(frozen=True)
class Stepped:
    """A traced step as predictions start from it; unknown is None."""

    busy_ns: int
    kernels: float
    step_ns: int | None = None  # clean
    graph_nodes: int = 0
    spared_ns: int = 0  # by fusing elementwise kernels
    spared_kernels: int = 0
    softmax_ns: int = 0  # of unfused attention
    softmax_kernels: int = 0


@dataclass(frozen=True)
class Changes:
    """What the changes of a step need besides its trace."""

    node_idle_ns: float | None = None  # measured
    floor_ns: int | None = None
    floor_half_ns: int | None = None  # with half the bytes per weight
    floors_by_batch: Mapping[int, int] = field(default_factory=dict)


def moves(own: Stepped, static: Stepped | None, changes: Changes) -> list[Move]:
    """Return each change with its predicted step.

    `static` is the same step on a cache of fixed size, where one was traced: that is the step
    which a graph or a compiler makes its own from.
    """
    base = own if _replays(own) else static or own
    return [
        _graph(own, static, changes),
        _fused_attention(own, changes),
        _fused_elementwise(base, changes),
        _fused_graph(own, base, changes),
        _half_weights(own, changes),
        *(_batch(own, changes, batch) for batch in sorted(changes.floors_by_batch)),
    ]


def after(step: Stepped, busy_ns: int, kernels: float, node_idle_ns: float | None) -> int | None:
    """Return the clean step with other busy time and kernels; null without a clean step."""
    if step.step_ns is None:
        return None
    spared_ns = step.busy_ns - busy_ns
    if paced_by_host(step):
        return round(max(step.step_ns * kernels / step.kernels, busy_ns))
    if _replays(step):
        spared_ns += round((step.kernels - kernels) * _idle(node_idle_ns))
    return step.step_ns - spared_ns


def paced_by_host(step: Stepped) -> bool:
    """Tell whether the GPU waits for the host through at least half of the clean step."""
    if step.step_ns is None or _replays(step):
        return False
    return step.step_ns - step.busy_ns >= MAJORITY * step.step_ns


def _replays(step: Stepped) -> bool:
    """Tell whether most kernels of the step are nodes of graph replays."""
    return step.graph_nodes >= MAJORITY * step.kernels


def _graph(own: Stepped, static: Stepped | None, changes: Changes) -> Move:
    """Predict the replay; where the step is one, from the same kernels launched one by one."""
    base = static or own
    if _replays(base):
        return Move(GRAPH, None, None, ALREADY)
    return Move(
        GRAPH,
        None,
        _replayed(base.busy_ns, base.kernels, changes),
        f"{_replay(base.busy_ns, base.kernels, changes)}; {_from(own, base)}",
        predicted_busy_ns=base.busy_ns,
    )


def _fused_attention(own: Stepped, changes: Changes) -> Move:
    if not own.softmax_kernels:
        return Move(FUSED_ATTENTION, None, None, FUSED)
    busy, kernels = own.busy_ns - own.softmax_ns, own.kernels - own.softmax_kernels
    said = (
        f"scaling, mask and softmax ({count(own.softmax_kernels)} kernels, "
        f"{duration(own.softmax_ns)}) happen inside the products, which take what they take now"
    )
    return _after(FUSED_ATTENTION, own, busy, kernels, said, changes)


def _fused_elementwise(base: Stepped, changes: Changes) -> Move:
    if not base.spared_kernels:
        return Move(FUSED_ELEMENTWISE, None, None, NOTHING_TO_FUSE)
    busy, kernels = base.busy_ns - base.spared_ns, base.kernels - base.spared_kernels
    return _after(FUSED_ELEMENTWISE, base, busy, kernels, _runs(base), changes)


def _fused_graph(own: Stepped, base: Stepped, changes: Changes) -> Move:
    if _replays(own):
        return Move(FUSED_GRAPH, None, None, ALREADY)
    if not base.spared_kernels:
        return Move(FUSED_GRAPH, None, None, NOTHING_TO_FUSE)
    busy, kernels = base.busy_ns - base.spared_ns, base.kernels - base.spared_kernels
    said = f"{_runs(base)}; then {_replay(busy, kernels, changes)}; {_from(own, base)}"
    return Move(FUSED_GRAPH, None, _replayed(busy, kernels, changes), said, predicted_busy_ns=busy)


def _half_weights(own: Stepped, changes: Changes) -> Move:
    if changes.floor_ns is None:
        return Move(HALF_WEIGHTS, None, None, NO_FLOOR)
    if changes.floor_half_ns is None:
        return Move(HALF_WEIGHTS, None, None, NARROW)
    spared = changes.floor_ns - changes.floor_half_ns
    busy = max(own.busy_ns - spared, 0)
    said = f"the floor falls by {duration(spared)} and the kernels stay as far above it as now"
    return _after(HALF_WEIGHTS, own, busy, own.kernels, said, changes)


def _batch(own: Stepped, changes: Changes, batch: int) -> Move:
    if changes.floor_ns is None:
        return Move(BATCH, batch, None, NO_FLOOR)
    more = changes.floors_by_batch[batch] - changes.floor_ns
    way = "rises" if more >= 0 else "falls"
    said = (
        f"the floor {way} by {duration(abs(more))} and the same kernels stay as far above it as now"
    )
    busy = max(own.busy_ns + more, 0)
    return _after(BATCH, own, busy, own.kernels, said, changes, batch)


def _after(
    name: str, step: Stepped, busy: int, kernels: float, said: str, changes: Changes,
    batch: int | None = None,
) -> Move:  # fmt: skip
    predicted = after(step, busy, kernels, changes.node_idle_ns)
    if predicted is None:
        return Move(name, batch, None, NO_CLEAN)
    if paced_by_host(step):
        pace = "the host sets the pace: the step is as long as its launches take"
        if kernels != step.kernels:
            pace += ", each as long as now"
        said = f"{said}; {pace}"
    return Move(name, batch, predicted, said, predicted_busy_ns=busy)


def _replayed(busy: int, kernels: float, changes: Changes) -> int:
    return round(busy + kernels * _idle(changes.node_idle_ns))


def _replay(busy: int, kernels: float, changes: Changes) -> str:
    """Say what a graph replay is predicted from."""
    measured = changes.node_idle_ns is not None
    source = "measured on this device" if measured else "assumed, as measured on an H200"
    return (
        f"busy {duration(busy)} + {count(kernels)} kernels × "
        f"{duration(_idle(changes.node_idle_ns))} idle per graph node, {source}"
    )


def _from(own: Stepped, base: Stepped) -> str:
    if base is own:
        return "from this step's own kernels; a cache of fixed size, as a graph needs, may add some"
    return "from the step on a cache of fixed size"


def _runs(base: Stepped) -> str:
    return RUNS.format(spared=count(base.spared_kernels), ns=duration(base.spared_ns))


def _idle(measured: float | None) -> float:
    return ASSUMED_NODE_IDLE_NS if measured is None else measured
