"""Requests to a server as a client sees them: a row per request, how it ended and what it took."""

from whichwall.schemas.passes import STAGES
from whichwall.schemas.table import INT32, INT64, TEXT, Column, Table

DONE, REFUSED, FAILED, UNREACHABLE, DROPPED, TIMED_OUT, GARBLED, CUT_SHORT = (
    "done", "refused", "failed", "unreachable", "dropped", "timed_out", "garbled", "cut_short",
)  # fmt: skip
OUTCOMES = (DONE, REFUSED, FAILED, UNREACHABLE, DROPPED, TIMED_OUT, GARBLED, CUT_SHORT)


class Completions(Table):
    """A row per request; only those that ended in done count for times and rates."""

    NAME = "completions"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank whose process asked.", required=True)
    visit = Column(INT32, "Visit of its point, from 0: points are visited in turn.")
    index = Column(INT32, "Number of the request within its point, from 0.", required=True)
    lane = Column(
        INT32,
        "Which of the point's lanes sent it: each sends its next request when one ends.",
        required=True,
    )
    stage = Column(TEXT, "warmup, clean or profiled.", required=True, choices=STAGES)
    start_ns = Column(INT64, "When it was sent, Unix epoch.", "ns", required=True)
    ttft_ns = Column(INT64, "Sent to first token (TTFT); null: no token came.", "ns")
    total_ns = Column(INT64, "Sent to the end of its answer, or of waiting.", "ns", required=True)
    prompt_tokens = Column(INT64, "Tokens of the prompt, as asked for.", "tokens")
    prompt_tokens_served = Column(INT64, "The same as the server counts them.", "tokens")
    prefix_tokens = Column(INT64, "Tokens at its start that other prompts share.", "tokens")
    cached_tokens = Column(
        INT64, "Tokens of the prompt found in a cache, as the server says.", "tokens"
    )
    new_tokens = Column(INT64, "Tokens generated; null: the server does not say.", "tokens")
    outcome = Column(
        TEXT,
        "done; refused (503, 429); failed (another status, or an error in the stream); unreachable "
        "(no connection); dropped (connection lost); timed_out; garbled (no completion stream); "
        "cut_short (ended without saying so).",
        required=True,
        choices=OUTCOMES,
    )
    status = Column(INT32, "HTTP status; null: none came.")
    finish = Column(TEXT, "Why generation ended, as the server says: length, stop.")
    reason = Column(TEXT, "Why it did not end in done.")
