"""What would move a step: its time after one change, as predicted and where known as measured."""

import msgspec

GRAPH, FUSED_ATTENTION, FUSED_ELEMENTWISE, FUSED_GRAPH, HALF_WEIGHTS, BATCH = (
    "graph", "fused_attention", "fused_elementwise", "fused_elementwise_graph", "half_weights",
    "batch",
)  # fmt: skip


class Move(msgspec.Struct, frozen=True):
    """A step after one change."""

    name: str
    batch: int | None  # where that is what changes
    predicted_ns: int | None  # null: see the assumption
    assumption: str  # what the prediction rests on, or what it lacks
    measured_ns: int | None = None  # the same step of this run with that change made
    measured_by: str | None = None  # the point that made it
    error: float | None = None  # predicted over measured, less 1
    predicted_busy_ns: int | None = None  # what of it the GPU works
    measured_busy_ns: int | None = None  # as traced
