"""Annotations that mark a pass of the model, before any GPU work is given to them."""

from whichwall.schemas.table import INT32, INT64, TEXT, Column, Table

# A pass that feeds whole prompts, or pieces of them, along with sequences that decode.
MIXED = "mixed"


class Marks(Table):
    """A row per pass on the host, numbered per point and rank in order of time."""

    NAME = "marks"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank whose trace holds the mark.", required=True)
    step = Column(INT64, "Number of the pass, from 0.", required=True)
    name = Column(TEXT, "Text of the annotation; null if found by repetition.")
    found_by = Column(TEXT, "annotation or repetition.", required=True)
    family = Column(TEXT, "Who wrote the annotation: whichwall, profiler, vllm, sglang.")
    phase = Column(TEXT, "prefill, decode or mixed; null if the text does not say.")
    batch = Column(INT64, "Sequences; null if the text does not say.", "sequences")
    tokens = Column(INT64, "Tokens fed in; null if the text does not say.", "tokens")
    begin_ns = Column(INT64, "Start on the host, Unix epoch.", "ns", required=True)
