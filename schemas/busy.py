"""Busy time of a device over the whole recording."""

from whichwall.schemas.table import FLOAT64, INT64, Column, Table


class Busy(Table):
    """A row per rank and device: union, sum and counts of its activities."""

    NAME = "busy"

    window_ns = Column(INT64, "First activity's start to last activity's end.", "ns", required=True)
    busy_ns = Column(INT64, "Union of the activities' intervals.", "ns", required=True)
    busy_without_communication_ns = Column(INT64, "The same without collectives.", "ns")
    duration_sum_ns = Column(
        INT64, "Sum of durations; exceeds busy where activities overlap.", "ns"
    )
    activities = Column(INT64, "GPU activities.", required=True)
    kernels = Column(INT64, "Of them, kernels.", required=True)
    kernel_median_ns = Column(FLOAT64, "Median duration of the kernels.", "ns")
