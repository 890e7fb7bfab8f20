"""Where a flat stretch ends: the batch up to which one more sequence costs next to nothing.

Pure Python, since what records a sweep asks it too: the knee is one of the points to trace.
"""

from collections.abc import Iterable

import msgspec

# Medians of one and the same step differ by up to a tenth from visit to visit on a calm host: a
# step that rises by less has not been seen to rise.
LEAST_RISE = 0.1


class Knee(msgspec.Struct, frozen=True):
    """A hinge fitted to a sweep: flat at `level_ns` up to `at`, then rising."""

    at: int  # the largest value measured that is still flat; the first: there is no flat part
    level_ns: float
    rise_ns: float  # for each further unit x beyond `at`
    curve_ns: float  # for each x², where a straight rise does not do
    error: float  # root of the mean squared relative error of the fit

    def step_ns(self, value: int) -> float:
        """Return the fitted step."""
        beyond = max(0, value - self.at)
        return self.level_ns + self.rise_ns * beyond + self.curve_ns * beyond**2


def knee(steps: Iterable[tuple[int, float]], least_rise: float = LEAST_RISE) -> Knee | None:
    """Return where a sweep of (batch, step) pairs starts to rise; None where it never does.

    Each value measured but the largest is tried as the hinge h of

        step(b) = level + rise · x + curve · x²,  x = max(0, b - h)

    with no coefficient below 0, by least squares of the relative error, which is
    (step(b) - measured) / measured: a long step must not outweigh the short ones. The h with the
    least error is the knee. The rise is straight (curve 0), as a batch's is, unless that misses
    by more than `LEAST_RISE`: attention makes a prompt's rise with the square. There is no knee
    where the fitted step rises by no more than `least_rise`, as a share of the level, within what
    was measured, or where fewer than two values were. Several steps of one batch count each.

    Args:
        steps: batch and step; any order, any unit of time. Steps are above 0.
        least_rise: the spread below which a rise is none.
    """
    found = sorted(steps)
    values = sorted({batch for batch, _ in found})
    if len(values) < 2:
        return None
    best = _best(found, values, (_STRAIGHT,))
    if best.error > LEAST_RISE:
        best = _best(found, values, (_STRAIGHT, _SQUARE, _BOTH))
    return best if best.step_ns(values[-1]) > (1 + least_rise) * best.level_ns else None


_Powers = tuple[int, ...]
_STRAIGHT, _SQUARE, _BOTH = (1,), (2,), (1, 2)


def _best(steps: list[tuple[int, float]], values: list[int], shapes: tuple[_Powers, ...]) -> Knee:
    fits = [_fit(steps, at, powers) for at in values[:-1] for powers in shapes]
    return min((fit for fit in fits if fit is not None), key=lambda fit: fit.error)


def _fit(steps: list[tuple[int, float]], at: int, powers: _Powers) -> Knee | None:
    """Fit one hinge by weighted linear regression, each weight 1 / step².

    A straight rise that would fall is taken to be flat; None where the square has no place.
    """
    weights = [1 / step**2 for _, step in steps]
    measured = [step for _, step in steps]
    columns = [[float(max(0, batch - at) ** power) for batch, _ in steps] for power in powers]
    means = [_mean(weights, column) for column in columns]
    mean = _mean(weights, measured)
    centred = [[x - m for x in column] for column, m in zip(columns, means, strict=True)]
    left = [[_dot(weights, one, other) for other in centred] for one in centred]
    right = [_dot(weights, one, [step - mean for step in measured]) for one in centred]
    slopes = _solved(left, right)
    if powers == _STRAIGHT:
        slopes = [max(0.0, slope) for slope in slopes or [0.0]]
    if slopes is None or min(slopes) < 0:
        return None
    level = mean - sum(slope * m for slope, m in zip(slopes, means, strict=True))
    by_power = dict(zip(powers, slopes, strict=True))
    found = Knee(at, level, by_power.get(1, 0.0), by_power.get(2, 0.0), 0.0)
    squares = [((found.step_ns(batch) - step) / step) ** 2 for batch, step in steps]
    return msgspec.structs.replace(found, error=(sum(squares) / len(squares)) ** 0.5)


def _mean(weights: list[float], values: list[float]) -> float:
    return sum(w * value for w, value in zip(weights, values, strict=True)) / sum(weights)


def _dot(weights: list[float], one: list[float], other: list[float]) -> float:
    return sum(w * x * y for w, x, y in zip(weights, one, other, strict=True))


def _solved(left: list[list[float]], right: list[float]) -> list[float] | None:
    """Solve one or two linear equations; None where they leave it open."""
    if len(right) == 1:
        return [right[0] / left[0][0]] if left[0][0] else None
    (a, b), (c, d) = left
    whole = a * d - b * c
    if whole <= _SINGULAR * a * d:
        return None
    return [(right[0] * d - b * right[1]) / whole, (a * right[1] - c * right[0]) / whole]


# Below this share of the product of its diagonal a determinant is rounding.
_SINGULAR = 1e-9
