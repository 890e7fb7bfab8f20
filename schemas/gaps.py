"""Idle stretches of a device, each with one cause."""

from whichwall.schemas.table import INT32, INT64, TEXT, Column, Table

PROFILER, UNKNOWN, GRAPH, SYNC, LAUNCH, DEVICE = (
    "profiler", "unknown", "graph", "sync", "launch", "device",
)  # fmt: skip

# In the order in which they are tried; every legend and table uses this order.
CAUSES = (PROFILER, UNKNOWN, GRAPH, SYNC, LAUNCH, DEVICE)


class Gaps(Table):
    """A row per gap between the running maximum of ends and the next start on one device."""

    NAME = "gaps"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank whose trace holds the gap.", required=True)
    device = Column(INT32, "Device ordinal within the process.")
    start_ns = Column(INT64, "End of the activity before, Unix epoch.", "ns", required=True)
    dur_ns = Column(INT64, "Length of the gap.", "ns", required=True)
    cause = Column(TEXT, "profiler, unknown, graph, sync, launch or device.", required=True)
    step = Column(INT64, "Step in whose window it lies; null outside steps.")
    before_name = Column(TEXT, "Activity before the gap.", required=True)
    before_op = Column(TEXT, "Its operator.")
    after_name = Column(TEXT, "Activity after the gap.", required=True)
    after_op = Column(TEXT, "Its operator.")
