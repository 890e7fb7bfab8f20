"""Say how fast each role of a step moves its bytes and does its arithmetic.

Both follow from the model's dimensions and the step's tokens (`operations`), for the roles whose
work is matrix products: projections, attention, router, experts and head. What other roles move
depends on how their kernels are cut, so their rates are not known.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from whichwall.analyze.floor import FLOPS_PER_NS_OF_TFLOPS
from whichwall.analyze.operations import Operation
from whichwall.schemas.roles import ATTENTION, KV_CACHE
from whichwall.schemas.summary import RoleTotal

# What these read and multiply grows with the tokens already cached.
GROWS_WITH_CONTEXT = frozenset({ATTENTION, KV_CACHE})


@dataclass(frozen=True)
class Needed:
    """What one pass needs of one role."""

    bytes: int
    flops: int


def needed(found: Iterable[Operation], *, context_known: bool) -> dict[str, Needed]:
    """Return what a pass must move and compute, by role, of the roles with matrix products.

    Where the cached tokens are not known, neither is what attention needs.
    """
    totals: dict[str, Needed] = {}
    for operation in found:
        so_far = totals.get(operation.role, Needed(0, 0))
        totals[operation.role] = Needed(
            so_far.bytes + operation.bytes * operation.count,
            so_far.flops + operation.flops * operation.count,
        )
    return {
        role: total
        for role, total in totals.items()
        if total.flops and (context_known or role not in GROWS_WITH_CONTEXT)
    }


def with_rates(roles: list[RoleTotal], by_role: dict[str, Needed], passes: int) -> list[RoleTotal]:
    """Return the totals of so many passes with GB/s and TFLOP/s while the role was at work."""
    return [_rated(total, by_role.get(total.role), passes) for total in roles]


def _rated(total: RoleTotal, need: Needed | None, passes: int) -> RoleTotal:
    if need is None or not total.busy_ns:
        return total
    return msgspec.structs.replace(
        total,
        # Without a cache attention needs nothing but what other roles have just made.
        achieved_gbps=need.bytes * passes / total.busy_ns if need.bytes else None,
        achieved_tflops=need.flops * passes / total.busy_ns / FLOPS_PER_NS_OF_TFLOPS,
    )
