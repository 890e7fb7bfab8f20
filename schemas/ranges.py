"""Annotations and module ranges, on the CPU side and projected onto the GPU."""

from whichwall.schemas.table import INT32, INT64, TEXT, Column, Table

ANNOTATION, GPU_ANNOTATION, MODULE = "annotation", "gpu_annotation", "module"


class Ranges(Table):
    """A row per named range; Python frames other than modules are dropped and counted."""

    NAME = "ranges"

    point = Column(INT32, "Point of the run.", required=True)
    rank = Column(INT32, "Rank whose trace holds the range.", required=True)
    kind = Column(TEXT, "annotation, gpu_annotation or module.", required=True)
    name = Column(TEXT, "Text of the annotation, or the module's name.", required=True)
    pid = Column(INT64, "Process; null on the GPU side.")
    tid = Column(INT64, "Thread; null on the GPU side.")
    device = Column(INT32, "Device; null on the CPU side.")
    stream = Column(INT64, "Stream; null on the CPU side.")
    start_ns = Column(INT64, "Start, Unix epoch.", "ns", required=True)
    dur_ns = Column(INT64, "Duration.", "ns", required=True)
    external_id = Column(INT64, "Id that kernels and launches may refer to.")
