"""The text of a range that names which roles are right inside it.

    whichwall.role::attention|softmax::layer 3

Several roles are separated by |. A layer follows inside a layer. Where it is not known which role
is right there is a question mark, so that what runs inside is not judged.
"""

import re
from collections.abc import Sequence

PREFIX = "whichwall.role::"
UNKNOWN = "?"
SEPARATOR, LAYER = "|", "::layer "
PATTERN = re.compile(rf"^{re.escape(PREFIX)}(.*?)(?:{LAYER}(\d+))?$")


def range_name(accepted: Sequence[str], layer: int | None) -> str:
    """Return the text for accepted roles, none where they are not known, and a layer if any."""
    place = "" if layer is None else f"{LAYER}{layer}"
    return f"{PREFIX}{SEPARATOR.join(accepted) or UNKNOWN}{place}"


def read_range(name: str) -> tuple[tuple[str, ...], int | None] | None:
    """Return the accepted roles and the layer that a range names, or None for any other range."""
    match = PATTERN.match(name)
    if match is None:
        return None
    accepted = () if match[1] == UNKNOWN else tuple(match[1].split(SEPARATOR))
    return accepted, None if match[2] is None else int(match[2])
