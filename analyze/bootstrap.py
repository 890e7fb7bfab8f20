"""Say how far two steps are apart and how sure that is: a bootstrap over processes, visits, passes.

A step is measured at three levels: passes in a visit, visits in a process, processes. What is alike
inside a process differs between processes, so whole processes are drawn first, of each its visits,
of each visit its passes.

How far the drawn steps scatter is the standard error; the interval reaches Student's t times that
far to both sides of the ratio, on logarithms. Percentiles of the draws would be too narrow where
two or three processes or visits were measured, and these are the usual numbers: `observer` has the
same reason and the same t for ratios inside one process, which need no draws, since there each
process gives one value. Here the two sides are different processes, so their errors add up and t
goes by Welch's number of degrees of freedom. Of many passes and no other level this is as good as
the interval of percentiles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, floor, log, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from whichwall.analyze.student import t_95

Floats: TypeAlias = NDArray[np.float64]
# Passes of a visit in ns, ascending; visits of a process; processes.
Visit: TypeAlias = Floats
Process: TypeAlias = Sequence[Visit]
Measured: TypeAlias = Sequence[Process]
_Unit: TypeAlias = Visit | Sequence["_Unit"]

# The scatter of so many draws is within 2 % of that of endlessly many.
DRAWS = 2_000
SEED = 20_260
# A ratio of e to this power is said to be no more: a float would soon not hold it.
LONGEST_REACH = 100.0
FEWEST = 2  # of anything: one says nothing of a spread


@dataclass(frozen=True)
class Ratio:
    """B's step over A's with the ends of its 95 % interval; null where one pass stands alone."""

    ratio: float
    low: float | None
    high: float | None

    @property
    def seen(self) -> bool | None:
        """Tell whether the interval excludes 1; null without an interval."""
        return None if self.low is None or self.high is None else not self.low <= 1 <= self.high


def ratio(a: Measured, b: Measured) -> Ratio:
    """Return B over A; each holds at least one pass, of more than 0 ns."""
    middle = _centre(b) - _centre(a)
    sides = [(_spread(side), _values(side)) for side in (a, b)]
    if min(values for _, values in sides) < FEWEST:
        return Ratio(exp(middle), None, None)
    error = sqrt(sum(spread**2 for spread, _ in sides))
    reach = min(t_95(_freedom(sides)) * error, LONGEST_REACH)
    return Ratio(exp(middle), exp(middle - reach), exp(middle + reach))


def step_ns(measured: Measured) -> float:
    """Return the step: of each visit the median pass, of visits and processes the geometric mean.

    So each process counts alike, however many passes it had time for.
    """
    return exp(_centre(measured))


def _freedom(sides: Sequence[tuple[float, int]]) -> int:
    """Return Welch's degrees of freedom, rounded down; 1 where nothing scatters."""
    below = sum(spread**4 / (values - 1) for spread, values in sides)
    above = sum(spread**2 for spread, _ in sides) ** 2
    return max(1, floor(above / below)) if below > 0 else 1


def _values(unit: _Unit) -> int:
    """Count the units of the outermost level that has several."""
    while len(unit) == 1 and not isinstance(unit, np.ndarray):
        unit = unit[0]
    return len(unit)


def _spread(unit: _Unit) -> float:
    """Return the standard error of a logarithm of a step; 0 where nothing repeats.

    Draws from n units scatter by (n - 1) / n too little.
    """
    values = _values(unit)
    if values < FEWEST:
        return 0.0
    found = _draw(unit, DRAWS, np.random.default_rng(SEED))
    return float(found.std()) * sqrt(values / (values - 1))


def _centre(unit: _Unit) -> float:
    if isinstance(unit, np.ndarray):
        return log(float(np.median(unit)))
    return sum(map(_centre, unit)) / len(unit)


def _draw(unit: _Unit, draws: int, rng: np.random.Generator) -> Floats:
    """Return logarithms of the steps of so many resamples of a unit."""
    if isinstance(unit, np.ndarray):
        return np.log(_medians(unit, draws, rng))
    chosen = rng.integers(len(unit), size=(draws, len(unit)))
    found = np.empty(chosen.shape)
    for place, one in enumerate(unit):
        mine = chosen == place
        found[mine] = _draw(one, int(mine.sum()), rng)
    mean: Floats = found.mean(axis=1)
    return mean


def _medians(visit: Visit, draws: int, rng: np.random.Generator) -> Floats:
    """Return medians of resamples of a visit, without drawing every pass.

    A pass is drawn by a uniform number; the middle of n such numbers is a Beta variable, and of
    the numbers above it the least one has a closed form too.
    """
    number = len(visit)
    middle = (number + 1) // 2
    at = rng.beta(middle, number - middle + 1, draws)
    low: Floats = visit[_place(at, number)]
    if number % 2:
        return low
    above = 1 - (1 - at) * rng.random(draws) ** (1 / (number - middle))
    high: Floats = visit[_place(above, number)]
    return (low + high) / 2


def _place(at: Floats, number: int) -> NDArray[np.int64]:
    return np.minimum((at * number).astype(np.int64), number - 1)
