"""Timings: a row per timed pass of the model, synchronised at both ends."""

from whichwall.schemas.table import INT32, INT64, TEXT, Column, Table

WARMUP, CLEAN, PROFILED, AFTER = "warmup", "clean", "profiled", "after"
# The last is the work of `collect --mode clocks --work matmul`: square matrix products.
PREFILL, DECODE, MATMUL = "prefill", "decode", "matmul"
STAGES, PHASES = (WARMUP, CLEAN, PROFILED, AFTER), (PREFILL, DECODE, MATMUL)


class Passes(Table):
    """A row per pass: a prefill of the prompt, or one decode step."""

    NAME = "passes"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank that ran the pass.", required=True)
    stage = Column(
        TEXT, "warmup, clean, profiled, or after (clean again).", required=True, choices=STAGES
    )
    phase = Column(TEXT, "prefill, decode or matmul.", required=True, choices=PHASES)
    index = Column(INT32, "Number of the pass within its stage, from 0.", required=True)
    visit = Column(
        INT32,
        "Visit of its point, from 0, each warmed up anew: points of a sweep are visited in turn; "
        "in runs of one point and of tax each visit is a process of its own.",
    )
    start_ns = Column(INT64, "Start on the host, Unix epoch.", "ns", required=True)
    wall_ns = Column(INT64, "Start to synchronised end on the host.", "ns", required=True)
    gpu_ns = Column(INT64, "Between CUDA events around the pass; null without a GPU.", "ns")
    batch = Column(INT32, "Sequences in the pass.", "sequences")
    tokens = Column(INT64, "Tokens fed into the pass, all sequences together.", "tokens")
    context_tokens = Column(INT64, "Tokens already in the cache, per sequence.", "tokens")
