"""GPU time and operator time by role: what legends, summaries and comparisons show."""

from whichwall.schemas.table import FLOAT64, INT32, INT64, TEXT, Column, Table


class RoleTotals(Table):
    """A row per rank, device and role that occurs there, in the order of `roles.ROLES`."""

    NAME = "role_totals"

    rank = Column(INT32, "Rank whose trace holds the activities.", required=True)
    device = Column(INT32, "Device ordinal within the process.")
    role = Column(TEXT, "Part of the model.", required=True)
    busy_ns = Column(INT64, "Union of the role's activities on the device.", "ns", required=True)
    share = Column(FLOAT64, "Of the busy time of all roles together; null if that is 0.")
    kernels = Column(INT64, "Activities of the role.", required=True)


class OperatorRoleTotals(Table):
    """A row per role of a run without a GPU, in the order of `roles.ROLES`."""

    NAME = "operator_role_totals"

    role = Column(TEXT, "Part of the model.", required=True)
    self_ns = Column(
        INT64, "Operator time without the operators called inside.", "ns", required=True
    )
    share = Column(FLOAT64, "Of the self time of all operators; null if that is 0.")
    ops = Column(INT64, "Operator calls of the role.", required=True)
