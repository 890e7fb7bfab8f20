"""Where a step's time goes, part by part: the parts add up to the step exactly."""

import msgspec

FLOOR, KERNELS, GRAPH_IDLE, IDLE, HOST, REMAINDER = (
    "floor", "kernels", "graph_idle", "idle", "host", "remainder",
)  # fmt: skip

# What an account divides.
CLEAN_STEP, TRACED_STEP = "clean", "traced"


class AccountPart(msgspec.Struct, frozen=True):
    """One part of a step.

    floor: the least time of its bytes and FLOPs. kernels: what those of one role took over their
    floor, or all they took where there is none. graph_idle: between the nodes of graph replays.
    idle: gaps of one cause. host: outside the stretch in which the GPU works on the step.
    """

    kind: str
    detail: str | None  # of the floor bytes or arithmetic, of kernels their role, of idle its cause
    ns: int  # below 0 where a role beat its floor, or where the other parts exceed the step


class Account(msgspec.Struct, frozen=True):
    """The parts of one step, and how far they were told without the step's own time."""

    point: int
    rank: int
    device: int | None
    phase: str | None
    of: str  # clean; traced where no clean step is known
    step_ns: int
    parts: list[AccountPart]
    scale: float | None  # that traced gaps were multiplied with to fit; null: none was
    graph_nodes: int  # per step
    node_idle_ns: float | None  # per node; null: no node
    node_idle_measured: bool | None  # false: assumed
    expected_ns: int | None  # of a graph step: kernels + idle per node × nodes + host
    error: float | None  # expected over step, less 1
    notes: list[str]  # the rules that were applied, in words
