"""Passes of the model found in a trace, one row per step and device."""

from whichwall.schemas.table import INT32, INT64, TEXT, Column, Table

BY_ANNOTATION, BY_REPETITION = "annotation", "repetition"


class Steps(Table):
    """A row per step and device: its window, busy time, kernels and launches."""

    NAME = "steps"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank whose trace holds the step.", required=True)
    device = Column(INT32, "Device ordinal within the process; null for a step without GPU work.")
    step = Column(INT64, "Number of the step, from 0 in order of time; the same on all devices.")
    name = Column(TEXT, "Text of the annotation; null if found by repetition.")
    found_by = Column(TEXT, "annotation or repetition.", required=True)
    phase = Column(TEXT, "prefill, decode or mixed; null if the trace does not say.")
    batch = Column(INT64, "Sequences in the step; null if the trace does not say.", "sequences")
    tokens = Column(INT64, "Tokens fed into the step; null if not said.", "tokens")
    begin_ns = Column(
        INT64, "Start on the host, Unix epoch: launches from here on belong to it.", "ns"
    )
    start_ns = Column(INT64, "Start of its window: its first activity.", "ns")
    window_ns = Column(
        INT64, "To the next step's first activity; the last step: to its last end.", "ns"
    )
    busy_ns = Column(INT64, "Union of activity inside the window.", "ns")
    busy_without_communication_ns = Column(INT64, "The same without collectives.", "ns")
    activities = Column(INT64, "GPU activities that belong to it.")
    kernels = Column(INT64, "Of them, kernels.")
    launches = Column(INT64, "API calls that launched them.")
    kernel_median_ns = Column(INT64, "Median duration of its kernels.", "ns")
    gap_median_ns = Column(INT64, "Median gap inside its window.", "ns")
