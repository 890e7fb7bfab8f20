"""A step group for tests: what a test does not say is not known."""

import msgspec

from whichwall.schemas.summary import RoleTotal, StepGroup

EMPTY = StepGroup(
    rank=0, device=0, point=0, phase="decode", count=1, batch=1, window_ns_median=None,
    busy_ns_median=None, busy_without_communication_ns_median=None, busy_fraction_traced=None,
    busy_fraction_clean=None, clean_step_ns_median=None, clean_step_ns_p10=None,
    clean_step_ns_p90=None, clean_from=None, kernels_median=None, launches_median=None,
    kernel_median_ns=None, gap_median_ns=None, gaps_by_cause_ns={}, tokens_per_s=None,
    achieved_gbps=None, achieved_tflops=None, times_floor=None, shares=None, roles=[],
    attributed_share=None,
)  # fmt: skip


def a_group(**more: object) -> StepGroup:
    """Return a group of decode steps."""
    return msgspec.structs.replace(EMPTY, **more)


def role(name: str, busy_ns: int, kernels: int = 1, **more: float) -> RoleTotal:
    """Return the total of a role over the steps of a group."""
    return RoleTotal(role=name, busy_ns=busy_ns, share=0.0, kernels=kernels, **more)
