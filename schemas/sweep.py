"""What sweeps show: a row per point and phase, with its step and spread, its floor and rates."""

from whichwall.schemas.table import BOOL, FLOAT64, INT32, INT64, TEXT, Column, Table


class Sweep(Table):
    """A row per point and phase that was timed clean; a point without any has one row of nulls.

    Times are those of clean passes on the point's first rank.
    """

    NAME = "sweep"

    point = Column(INT32, "Point of the run.", required=True)
    label = Column(TEXT, "What the point is called; null: by its number.")
    engine = Column(TEXT, "What ran the model.")
    attention = Column(TEXT, "Attention implementation asked for.")
    dtype = Column(TEXT, "Type of weights and activations.")
    batch = Column(INT64, "Sequences run together.", "sequences")
    context_tokens = Column(INT64, "Tokens in the cache before the first timed step.", "tokens")
    prompt_tokens = Column(INT64, "Tokens of the prompt.", "tokens")
    new_tokens = Column(INT64, "Tokens generated in a request.", "tokens")
    outcome = Column(TEXT, "How the point ended.", required=True)
    reason = Column(TEXT, "Why it did not end in done.")
    setup_ns = Column(INT64, "Allocating, capturing or compiling before its first pass.", "ns")
    memory_bytes = Column(INT64, "Most GPU memory allocated, weights too.", "bytes")

    phase = Column(TEXT, "prefill, decode or matmul; null where nothing was timed clean.")
    visits = Column(INT64, "Visits with clean passes; 0 where there are none.", required=True)
    passes = Column(INT64, "Clean passes.", required=True)
    step_ns = Column(INT64, "A pass: median.", "ns")
    step_ns_p10 = Column(INT64, "Tenth percentile.", "ns")
    step_ns_p90 = Column(INT64, "Ninetieth percentile.", "ns")
    visit_ns_lowest = Column(INT64, "Lowest median of a visit.", "ns")
    visit_ns_highest = Column(INT64, "Highest median of a visit: what drift did.", "ns")
    gpu_ns = Column(INT64, "Between CUDA events around a pass: median.", "ns")
    tokens_per_s = Column(FLOAT64, "Tokens fed (prefill) or generated, all sequences.", "tokens/s")
    tokens_per_s_each = Column(FLOAT64, "The same of one sequence.", "tokens/s")
    cache_bytes = Column(INT64, "Keys and values that a pass finds or leaves.", "bytes")

    floor_ns = Column(INT64, "Least time of a pass.", "ns")
    floor_bytes = Column(INT64, "Bytes that a pass must move.", "bytes")
    floor_flops = Column(INT64, "Matrix arithmetic of a pass.", "FLOP")
    cached_weights = Column(BOOL, "The weights can come from the cache: the bytes floor is none.")
    times_floor = Column(FLOAT64, "Step over floor.")
    achieved_gbps = Column(FLOAT64, "Bytes it must move over the step.", "GB/s")
    achieved_tflops = Column(FLOAT64, "Arithmetic over the step.", "TFLOP/s")
    intensity = Column(FLOAT64, "Arithmetic over bytes.", "FLOP/byte")

    ttft_ns = Column(INT64, "Request to first token: median prefill.", "ns")
    tpot_ns = Column(INT64, "(Last token - first token) / (n - 1): median of requests.", "ns")
    request_ns = Column(INT64, "Prompt in to last token out: median of whole requests.", "ns")
    request_tokens = Column(INT64, "Tokens generated in these, per sequence.", "tokens")

    busy_ns = Column(INT64, "GPU busy in a traced step: median; null without a trace.", "ns")
    kernels = Column(FLOAT64, "Kernels of a traced step: median.")
    launches = Column(FLOAT64, "Launches of a traced step: median.")
