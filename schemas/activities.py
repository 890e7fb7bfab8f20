"""GPU activities with their launch, their operator and their step: what analyses start from."""

from whichwall.schemas.table import BOOL, INT32, INT64, TEXT, Column, Table


class Activities(Table):
    """A row per valid GPU activity, sorted by point, rank, device, start_ns, end_ns."""

    NAME = "activities"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank whose trace holds the activity.", required=True)
    device = Column(INT32, "Device ordinal within the process.")
    stream = Column(INT64, "Stream the activity ran on.")
    kind = Column(TEXT, "kernel, memcpy or memset.", required=True)
    name = Column(TEXT, "Name as recorded.", required=True)
    start_ns = Column(INT64, "Start, Unix epoch.", "ns", required=True)
    end_ns = Column(INT64, "End, Unix epoch.", "ns", required=True)
    dur_ns = Column(INT64, "Duration.", "ns", required=True)
    correlation = Column(INT64, "Id shared with the API call; null where there is none.")
    grid_x = Column(INT64, "Grid, first dimension.", "blocks")
    grid_y = Column(INT64, "Grid, second dimension.", "blocks")
    grid_z = Column(INT64, "Grid, third dimension.", "blocks")
    block_x = Column(INT64, "Block, first dimension.", "threads")
    size_bytes = Column(INT64, "Bytes copied or set.", "bytes")
    communication = Column(BOOL, "Works for a collective: NCCL, RCCL, custom all-reduce.")
    launch = Column(INT64, "Row number of its launch among the launches; null if none on record.")
    launch_name = Column(TEXT, "API call that launched it.")
    launch_tid = Column(INT64, "Thread that launched it.")
    launch_start_ns = Column(INT64, "Start of that call, Unix epoch.", "ns")
    launch_end_ns = Column(INT64, "End of that call, Unix epoch.", "ns")
    graph_replay = Column(BOOL, "Launched by a graph launch; all of one replay share it.")
    op = Column(INT64, "Row number of its innermost operator among the ops; null if none.")
    op_name = Column(TEXT, "That operator.")
    op_dims = Column(TEXT, "JSON: its input sizes.")
    op_types = Column(TEXT, "JSON: its input types.")
    op_link = Column(TEXT, "How the operator was found: external_id, containment or capture.")
    step = Column(INT64, "Step it belongs to, as numbered in steps; null outside steps.")
