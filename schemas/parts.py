"""Parts of the model, each timed on its own and without a profiler."""

from whichwall.schemas.passes import PHASES
from whichwall.schemas.table import INT32, INT64, TEXT, Column, Table

EMBEDDING, NORM, ATTENTION, MLP, HEAD, SAMPLING = (
    "embedding", "norm", "attention", "mlp", "head", "sampling",
)  # fmt: skip
PARTS = (EMBEDDING, NORM, ATTENTION, MLP, HEAD, SAMPLING)


class Parts(Table):
    """A row per part and phase: one call of it, with how many a pass makes."""

    NAME = "parts"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank that measured.", required=True)
    phase = Column(TEXT, "Phase whose shapes it was timed at.", required=True, choices=PHASES)
    part = Column(
        TEXT,
        "embedding, norm, attention (with its projections), mlp, head or sampling.",
        required=True,
        choices=PARTS,
    )
    calls = Column(INT32, "Calls of it in one pass.", "calls", required=True)
    repeats = Column(INT32, "Timed calls.", required=True)
    start_ns = Column(INT64, "When timing it began, Unix epoch.", "ns", required=True)
    wall_ns = Column(
        INT64, "One call on the host, queued back to back: median.", "ns", required=True
    )
    wall_ns_p10 = Column(INT64, "Tenth percentile of the same.", "ns")
    wall_ns_p90 = Column(INT64, "Ninetieth percentile of the same.", "ns")
    gpu_ns = Column(INT64, "One call between CUDA events: median; null without a GPU.", "ns")
    parameters = Column(INT64, "Weights that one call reads, as a count.")
