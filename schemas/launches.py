"""Runtime and driver API calls, CUDA and HIP."""

from whichwall.schemas.table import INT32, INT64, TEXT, Column, Table

RUNTIME, DRIVER = "runtime", "driver"


class Launches(Table):
    """A row per API call on the host; launches, copies, synchronisation and the rest."""

    NAME = "launches"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank whose trace holds the call.", required=True)
    api = Column(TEXT, "runtime or driver.", required=True)
    name = Column(TEXT, "Name of the call as recorded.", required=True)
    pid = Column(INT64, "Process.")
    tid = Column(INT64, "Thread.")
    start_ns = Column(INT64, "Start, Unix epoch.", "ns", required=True)
    dur_ns = Column(INT64, "Duration on the host.", "ns", required=True)
    correlation = Column(INT64, "Id shared with the activities it launched.")
    external_id = Column(INT64, "Id of the operator, as recorded; not to be trusted unseen.")
