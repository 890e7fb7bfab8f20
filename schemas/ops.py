"""CPU operators with input shapes and types.

Shapes and types are kept as the JSON text that the profiler wrote: a trace has a few hundred
distinct texts, lists of tensors nest a level deeper than tensors, and text keeps both exact,
small (dictionary-encoded) and quick to group.
"""

from whichwall.schemas.table import INT32, INT64, TEXT, Column, Table


class Ops(Table):
    """A row per recorded operator call."""

    NAME = "ops"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank whose trace holds the operator.", required=True)
    name = Column(TEXT, "Operator, e.g. aten::mm.", required=True)
    pid = Column(INT64, "Process.")
    tid = Column(INT64, "Thread.")
    start_ns = Column(INT64, "Start, Unix epoch.", "ns", required=True)
    dur_ns = Column(INT64, "Duration on the host.", "ns", required=True)
    external_id = Column(INT64, "Id that kernels and launches refer to.")
    input_dims = Column(TEXT, "JSON: sizes per argument, [] for what is no tensor.")
    input_types = Column(TEXT, "JSON: type per argument.")
