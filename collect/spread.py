"""A median with its tenth and ninetieth percentile: one number is never trusted alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor


@dataclass(frozen=True)
class Spread:
    """Percentiles of repeats, in the unit of the repeats."""

    p10: float
    median: float
    p90: float
    repeats: int

    @property
    def ratio(self) -> float:
        """Return p90 over p10: how far two honest readings of the same thing lie apart."""
        return self.p90 / self.p10


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of one or more positive values."""
    ordered = sorted(values)
    return Spread(
        _percentile(ordered, 0.1),
        _percentile(ordered, 0.5),
        _percentile(ordered, 0.9),
        len(ordered),
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile by linear interpolation between neighbours."""
    at = share * (len(ordered) - 1)
    below = floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)
