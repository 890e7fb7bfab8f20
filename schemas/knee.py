"""Where a flat stretch ends: the batch up to which one more sequence costs next to nothing.

Pure Python, since what records a sweep asks it too: the knee is one of the points to trace.
"""

from collections.abc import Iterable

import msgspec

# Medians of one and the same step differ by up to a tenth from visit to visit on a calm host: a
# step that rises by less has not been seen to rise.
LEAST_RISE = 0.1


class Knee(msgspec.Struct, frozen=True):
    """A hinge fitted to a sweep: flat at `level_ns` up to `at`, then a straight rise."""

    at: int  # the largest value measured that is still flat; the first: there is no flat part
    level_ns: float
    rise_ns: float  # each further unit beyond `at`
    error: float  # root of the mean squared relative error of the fit


def knee(steps: Iterable[tuple[int, float]], least_rise: float = LEAST_RISE) -> Knee | None:
    """Return where a sweep of (batch, step) pairs starts to rise; None where it never does.

    Each value measured but the largest is tried as the hinge h of

        step(b) = level + rise · max(0, b - h)

    with level and rise (never below 0) by least squares of the relative error, which is
    (step(b) - measured) / measured: a long step must not outweigh the short ones. The h with the
    least error is the knee. There is none where the fitted step rises by no more than
    `least_rise`, as a share of the level, within what was measured, or where fewer than two
    values were. Several steps of one batch count each.

    Args:
        steps: batch and step; any order, any unit of time. Steps are above 0.
        least_rise: the spread below which a rise is none.
    """
    found = sorted(steps)
    values = sorted({batch for batch, _ in found})
    fits = [_fit(found, at) for at in values[:-1]]
    if not fits:
        return None
    best = min(fits, key=lambda fit: fit.error)
    risen = best.rise_ns * (values[-1] - best.at)
    return best if risen > least_rise * best.level_ns else None


def _fit(steps: list[tuple[int, float]], at: int) -> Knee:
    """Fit level and rise for one hinge: weighted linear regression, each weight 1 / step²."""
    weights = [1 / step**2 for _, step in steps]
    beyond = [max(0, batch - at) for batch, _ in steps]
    whole = sum(weights)
    mean_x = sum(w * x for w, x in zip(weights, beyond, strict=True)) / whole
    mean_y = sum(w * step for w, (_, step) in zip(weights, steps, strict=True)) / whole
    spread = sum(w * (x - mean_x) ** 2 for w, x in zip(weights, beyond, strict=True))
    both = sum(
        w * (x - mean_x) * (step - mean_y)
        for w, x, (_, step) in zip(weights, beyond, steps, strict=True)
    )
    rise = max(0.0, both / spread)
    level = mean_y - rise * mean_x
    squares = [
        ((level + rise * x - step) / step) ** 2 for x, (_, step) in zip(beyond, steps, strict=True)
    ]
    return Knee(at, level, rise, (sum(squares) / len(squares)) ** 0.5)
