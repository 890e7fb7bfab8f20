"""Whole requests, text to text: a row per request, with the time of each stage."""

from whichwall.schemas.table import INT32, INT64, TEXT, Column, Table

# How its tokens were made: by hand, waiting for the GPU after each pass or only at the end, or by
# the library's own loop.
WAITING, FREE, GENERATE = "waiting", "free", "generate"
LOOPS = (WAITING, FREE, GENERATE)


class Requests(Table):
    """A row per request."""

    NAME = "requests"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank that ran the request.", required=True)
    visit = Column(INT32, "Visit of its point, from 0.")
    loop = Column(
        TEXT,
        "waiting: by hand, synchronised after each pass; free: by hand, synchronised at the end; "
        "generate: by the library.",
        required=True,
        choices=LOOPS,
    )
    start_ns = Column(INT64, "Start on the host, Unix epoch.", "ns", required=True)
    tokenize_ns = Column(INT64, "Text to token ids; null without a tokenizer.", "ns")
    prefill_ns = Column(INT64, "Prompt to first token; null where the loop does not stop.", "ns")
    model_ns = Column(
        INT64, "First prompt token in to last token out, synchronised.", "ns", required=True
    )
    detokenize_ns = Column(INT64, "Token ids to text; null without a tokenizer.", "ns")
    prompt_tokens = Column(INT64, "Tokens of the prompt, per sequence.", "tokens")
    new_tokens = Column(INT64, "Tokens generated, per sequence.", "tokens")
    tokens_sha256 = Column(TEXT, "Of the ids generated, as int64: equal where the tokens are.")
