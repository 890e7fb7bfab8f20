"""Place the roles of a step under the roof of its card: intensity, rate, and how much of the roof.

A role's rate is known where its work is matrix products, and its intensity where it has bytes to
move (`role_rates`). The clean step stands beside them as one point.
"""

import polars as pl

from whichwall.analyze.floor import FLOPS_PER_NS_OF_TFLOPS
from whichwall.schemas.chart import Roofline
from whichwall.schemas.run import frame
from whichwall.schemas.summary import Floor, StepGroup


def roofline(group: StepGroup, floor: Floor) -> pl.DataFrame:
    """Return `Roofline`: a row per role whose rates are known, then the clean step."""
    rows = [
        _row(total.role, total.achieved_gbps, total.achieved_tflops, floor, step=False)
        for total in group.roles
    ]
    name = f"clean {group.phase} step" if group.phase else "clean step"
    rows.append(_row(name, group.achieved_gbps, group.achieved_tflops, floor, step=True))
    return frame(Roofline, [row for row in rows if row is not None])


def roof(intensity: float, bandwidth_gbps: float, tflops: float) -> float:
    """Return the TFLOP/s that a card allows at an intensity, in FLOP/byte."""
    return min(intensity * bandwidth_gbps / FLOPS_PER_NS_OF_TFLOPS, tflops)


def ridge(bandwidth_gbps: float, tflops: float) -> float:
    """Return the intensity from which on arithmetic binds, in FLOP/byte."""
    return tflops * FLOPS_PER_NS_OF_TFLOPS / bandwidth_gbps


def _row(
    name: str, gbps: float | None, tflops: float | None, floor: Floor, *, step: bool
) -> dict[str, object] | None:
    if not gbps or not tflops or not floor.bandwidth_gbps or not floor.tflops:
        return None
    intensity = tflops * FLOPS_PER_NS_OF_TFLOPS / gbps
    return {
        Roofline.name: name,
        Roofline.step: step,
        Roofline.intensity: intensity,
        Roofline.tflops: tflops,
        Roofline.of_roof: tflops / roof(intensity, floor.bandwidth_gbps, floor.tflops),
    }
