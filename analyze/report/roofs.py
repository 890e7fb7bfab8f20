"""Show a step under the roof of its card, and what binds at other batches and contexts."""

from collections.abc import Collection

from whichwall.analyze.report.document import Block, Figure, Heading

_SAYS = {
    "roofline": "Each role of matrix products at its intensity, under the card's ceilings.",
    "binding": "The floor of a decode step by batch and context, coloured by what binds it.",
}


def roofs(figures: Collection[str]) -> list[Block]:
    """Return both charts, where there are any."""
    shown: list[Block] = [Figure(name, says) for name, says in _SAYS.items() if name in figures]
    return [Heading("Under the roof of the card"), *shown] if shown else []
