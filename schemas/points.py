"""What was asked for: a row per point of the run, and how it ended."""

from whichwall.schemas.table import INT32, INT64, TEXT, Column, Table

DONE, REFUSED, OUT_OF_MEMORY, INTERRUPTED = "done", "refused", "out_of_memory", "interrupted"
OUTCOMES = (DONE, REFUSED, OUT_OF_MEMORY, INTERRUPTED)

# Labels that say what a point is for, where that is more than one value of a sweep.
LONG_GENERATION = "long generation"
RESTED, HOT = "rested", "hot"
SAMPLER_OFF, SAMPLER_ON = "sampler off", "sampler on"
# Requests with a shared prefix, the first with it and later ones; and prompts of their own.
FIRST, LATER, UNIQUE = "first", "later", "unique"


class Points(Table):
    """A row per point: one for a plain run, many for a sweep."""

    NAME = "points"

    point = Column(INT32, "Number of the point within the run, from 0.", required=True)
    label = Column(TEXT, "What the point is called among those of its run; null: by its number.")
    engine = Column(TEXT, "What ran the model, as --engine names it.")
    attention = Column(TEXT, "Attention implementation asked for.")
    dtype = Column(TEXT, "Type of weights and activations, as torch names it.")
    batch = Column(INT32, "Sequences run together; of a server, requests in flight.", "sequences")
    context_tokens = Column(INT64, "Tokens in the cache before the first timed step.", "tokens")
    prompt_tokens = Column(INT64, "Tokens of the prompt.", "tokens")
    new_tokens = Column(INT64, "Tokens generated in a request.", "tokens")
    outcome = Column(
        TEXT,
        "How it ended: done, refused, out_of_memory, interrupted.",
        required=True,
        choices=OUTCOMES,
    )
    reason = Column(TEXT, "Why it did not end in done, or what else it was recorded for.")
    setup_ns = Column(INT64, "Allocating, capturing or compiling before its first pass.", "ns")
    memory_bytes = Column(INT64, "Most GPU memory allocated while it ran, weights too.", "bytes")
