"""GPU activities as recorded: kernels, memory copies and memory sets."""

from whichwall.schemas.table import INT32, INT64, TEXT, Column, Table

KERNEL, MEMCPY, MEMSET = "kernel", "memcpy", "memset"


class Kernels(Table):
    """A row per GPU activity, void rows included: the file's own word."""

    NAME = "kernels"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank whose trace holds the activity.", required=True)
    device = Column(INT32, "Device ordinal within the process; not the rank.")
    stream = Column(INT64, "Stream the activity ran on.")
    kind = Column(TEXT, "kernel, memcpy or memset.", required=True)
    name = Column(TEXT, "Name as recorded.", required=True)
    start_ns = Column(INT64, "Start, Unix epoch.", "ns", required=True)
    dur_ns = Column(INT64, "Duration; what the file says, even if impossible.", "ns", required=True)
    correlation = Column(INT64, "Id shared with the API call that launched it; null if absent.")
    external_id = Column(INT64, "Id of the operator, as recorded; not to be trusted unseen.")
    graph_id = Column(INT64, "CUDA graph, where recorded.")
    graph_node_id = Column(INT64, "Node within the graph, where recorded.")
    grid_x = Column(INT64, "Grid, first dimension.", "blocks")
    grid_y = Column(INT64, "Grid, second dimension.", "blocks")
    grid_z = Column(INT64, "Grid, third dimension.", "blocks")
    block_x = Column(INT64, "Block, first dimension.", "threads")
    block_y = Column(INT64, "Block, second dimension.", "threads")
    block_z = Column(INT64, "Block, third dimension.", "threads")
    registers_per_thread = Column(INT64, "Registers of each thread.", "registers")
    shared_memory_bytes = Column(INT64, "Shared memory of each block.", "bytes")
    size_bytes = Column(INT64, "Bytes copied or set.", "bytes")
