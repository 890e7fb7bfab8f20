"""This device's measured limits: what bandwidth, arithmetic and launches can reach on it."""

from whichwall.schemas.table import FLOAT64, INT32, INT64, TEXT, Column, Table

READ, COPY, MATMUL = "read", "copy", "matmul"
# The same over a stretch of seconds, in which power and heat bind: no ceiling of a single pass.
READ_SUSTAINED, MATMUL_SUSTAINED = "read_sustained", "matmul_sustained"
EAGER_OP, BARE_LAUNCH, GRAPH_NODE, GRAPH_NODE_IDLE, ROUND_TRIP = (
    "eager_op", "bare_launch", "graph_node", "graph_node_idle", "round_trip",
)  # fmt: skip

# A cache serves much of anything smaller than four times its size: below that, neither a
# buffer measures memory nor must weights come from there.
CACHE_MULTIPLE = 4


class Ceilings(Table):
    """A row per limit: the value, its unit, its spread and the conditions of measuring."""

    NAME = "ceilings"

    rank = Column(INT32, "Rank that measured.", required=True)
    gpu_uuid = Column(TEXT, "GPU by UUID; null on a CPU.")
    name = Column(TEXT, "read, copy, matmul, eager_op, graph_node …", required=True)
    value = Column(FLOAT64, "The limit: median of the repeats.", required=True)
    unit = Column(TEXT, "GB/s, TFLOP/s, TOP/s or us.", required=True)
    p10 = Column(FLOAT64, "Tenth percentile of the repeats, same unit.")
    p90 = Column(FLOAT64, "Ninetieth percentile of the repeats, same unit.")
    dtype = Column(TEXT, "Type of the numbers, where it matters.")
    shape = Column(TEXT, "What was moved or multiplied.")
    repeats = Column(INT32, "Timed repeats.")
    start_ns = Column(INT64, "When measuring began, Unix epoch.", "ns", required=True)
    sm_clock_mhz = Column(FLOAT64, "Clock read at the time.", "MHz")
    temperature_c = Column(FLOAT64, "Temperature read at the time.", "°C")
