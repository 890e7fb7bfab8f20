"""Roles found beside roles that were recorded to be right: what a check of roles counts."""

from whichwall.schemas.table import BOOL, INT32, INT64, TEXT, Column, Table


class RoleVerdicts(Table):
    """A row per GPU activity, or operator, that ran under a range which says what is right."""

    NAME = "role_verdicts"

    expected = Column(TEXT, "Accepted roles, separated by |.", required=True)
    expected_layer = Column(INT32, "Layer the range stands in; null outside layers.")
    found = Column(TEXT, "Role that was found.", required=True)
    found_layer = Column(INT32, "Layer that was found; null outside layers.")
    right = Column(BOOL, "The role found is an accepted one.", required=True)
    busy_ns = Column(
        INT64, "Time it ran and nothing before it on its device did; an operator's duration.", "ns",
        required=True,
    )  # fmt: skip
