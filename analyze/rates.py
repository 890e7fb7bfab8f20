"""Say how fast each clean step moves bytes and does arithmetic, and what it does per byte."""

from whichwall.schemas.experiments import Rate
from whichwall.schemas.summary import Floor, StepGroup


def rates(groups: list[StepGroup], floors: list[Floor]) -> list[Rate]:
    """Return a rate per point and phase whose bytes and FLOPs are known, in their order."""
    of = {(floor.point, floor.phase): floor for floor in floors}
    found: dict[tuple[int, str | None], Rate] = {}
    for group in groups:
        floor = of.get((group.point, group.phase or ""))
        if floor is None:
            continue
        rate = Rate(
            point=group.point,
            phase=group.phase,
            step_ns=group.clean_step_ns_median,
            achieved_gbps=group.achieved_gbps,
            achieved_tflops=group.achieved_tflops,
            intensity=floor.flops / floor.bytes if floor.bytes else None,
        )
        found.setdefault((group.point, group.phase), rate)
    return list(found.values())
