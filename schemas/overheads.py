"""What the profiler itself cost, as it recorded it."""

from whichwall.schemas.table import INT32, INT64, TEXT, Column, Table


class Overheads(Table):
    """A row per stretch that the profiler spent on its own buffers and modules."""

    NAME = "overheads"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank whose trace holds the record.", required=True)
    name = Column(TEXT, "What the profiler did.", required=True)
    start_ns = Column(INT64, "Start, Unix epoch.", "ns", required=True)
    dur_ns = Column(INT64, "Duration.", "ns", required=True)
