"""Line the parts of an account up: each begins where the one before it ends."""

import polars as pl

from whichwall.analyze.causes import LEGEND
from whichwall.analyze.quantities import percent, signed_duration
from whichwall.schemas.account import (
    FLOOR,
    GRAPH_IDLE,
    HOST,
    IDLE,
    KERNELS,
    REMAINDER,
    Account,
    AccountPart,
)
from whichwall.schemas.chart import Waterfall
from whichwall.schemas.gaps import GRAPH
from whichwall.schemas.run import frame

STEP = "step"
# Roles with less of the kernels' time than this share one row: a dozen rows are read at a glance.
SMALL = 0.02
_MS = 1e6


def waterfall(found: Account) -> pl.DataFrame:
    """Return `Waterfall`: the parts from the floor to the remainder, and the step they add up to.

    Small roles are put together, as the last of the kernels.
    """
    rows: list[dict[str, object]] = []
    at = 0
    for name, key, ns in [*_named(_merged(found.parts)), (_whole(found), STEP, None)]:
        begin, end = (at, at + ns) if ns is not None else (0, found.step_ns)
        share = (end - begin) / found.step_ns
        said = f"  ·  {percent(share)}" if ns is not None and share >= 0 else ""
        rows.append(
            {
                Waterfall.name: name,
                Waterfall.key: key,
                Waterfall.from_ms: begin / _MS,
                Waterfall.to_ms: end / _MS,
                Waterfall.label: signed_duration(end - begin) + said,
            }
        )
        at = end
    return frame(Waterfall, rows)


def part_name(part: AccountPart) -> str:
    """Return what a part is, in words."""
    detail = part.detail or ""
    return {
        FLOOR: f"floor, {detail}",
        KERNELS: f"{detail or 'kernels'} over its floor",
        GRAPH_IDLE: f"idle {LEGEND[GRAPH]}",
        IDLE: f"idle, {LEGEND.get(detail, detail)}",
        HOST: "host, before and after the GPU",
        REMAINDER: "remainder",
    }[part.kind]


def _whole(found: Account) -> str:
    return f"{found.of} {found.phase} step" if found.phase else f"{found.of} step"


def _merged(parts: list[AccountPart]) -> list[AccountPart | tuple[int, int]]:
    """Put small roles together, as how many they are and their time, after the other roles."""
    kernels = [part for part in parts if part.kind == KERNELS]
    least = SMALL * sum(abs(part.ns) for part in kernels)
    small = [part for part in kernels if abs(part.ns) < least]
    if len(small) < 2:
        return list(parts)
    kept: list[AccountPart | tuple[int, int]] = []
    for part in parts:
        if part not in small:
            kept.append(part)
        elif part is small[-1]:
            kept.append((len(small), sum(one.ns for one in small)))
    return kept


def _named(parts: list[AccountPart | tuple[int, int]]) -> list[tuple[str, str, int]]:
    named = []
    for part in parts:
        if isinstance(part, tuple):
            named.append((f"{part[0]} small roles over their floors", KERNELS, part[1]))
            continue
        detail = part.detail or ""
        key = {FLOOR: detail, KERNELS: detail or KERNELS, GRAPH_IDLE: GRAPH, IDLE: detail}
        named.append((part_name(part), key.get(part.kind, part.kind), part.ns))
    return named
