"""Clean, profiled and after timings of passes, a row per point, rank, phase and stage."""

from whichwall.schemas.table import FLOAT64, INT32, INT64, TEXT, Column, Table


class Timings(Table):
    """Medians and spread of the passes of one phase in one stage."""

    NAME = "timings"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank that ran the passes.", required=True)
    phase = Column(TEXT, "prefill or decode.", required=True)
    stage = Column(TEXT, "warmup, clean, profiled or after.", required=True)
    count = Column(INT64, "Passes.", required=True)
    wall_ns_median = Column(INT64, "Median wall time.", "ns", required=True)
    wall_ns_p10 = Column(INT64, "Tenth percentile.", "ns", required=True)
    wall_ns_p90 = Column(INT64, "Ninetieth percentile.", "ns", required=True)
    gpu_ns_median = Column(INT64, "Median between CUDA events; null without a GPU.", "ns")
    batch = Column(INT64, "Sequences in a pass.", "sequences")
    tokens = Column(FLOAT64, "Tokens fed into a pass, median.", "tokens")
    context_tokens = Column(FLOAT64, "Tokens in the cache before a pass, median.", "tokens")
    start_ns = Column(INT64, "Start of the first pass, Unix epoch.", "ns", required=True)
    end_ns = Column(INT64, "End of the last pass, Unix epoch.", "ns", required=True)
