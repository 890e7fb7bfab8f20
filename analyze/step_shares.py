"""Divide the clean step among the walls, with the words that label each part."""

import polars as pl

from whichwall.analyze.quantities import duration, percent
from whichwall.analyze.walls import ARITHMETIC, BYTES, KERNELS, LAUNCHES
from whichwall.schemas.chart import StepShares
from whichwall.schemas.run import frame
from whichwall.schemas.summary import Shares

WORDS: dict[str, str] = {
    LAUNCHES: "GPU idle, waiting for launches",
    KERNELS: "kernels above their floor",
    BYTES: "floor: moving the bytes",
    ARITHMETIC: "floor: doing the arithmetic",
}
_MS = 1e6


def known_shares(shares: Shares) -> dict[str, float]:
    """Return the parts that are known, in order."""
    parts = {
        LAUNCHES: shares.launches,
        KERNELS: shares.kernels,
        BYTES: shares.bytes,
        ARITHMETIC: shares.arithmetic,
    }
    return {wall: share for wall, share in parts.items() if share is not None}


def step_shares(shares: Shares, clean_step_ns: int) -> pl.DataFrame:
    """Return `StepShares`: the parts of a clean step, one after the other on one bar.

    A part below nothing (a floor above what was measured) has no length; its words say so.
    """
    rows: list[dict[str, object]] = []
    at = 0.0
    for wall, share in known_shares(shares).items():
        end = at + max(0.0, share) * clean_step_ns / _MS
        rows.append(
            {
                StepShares.wall: wall,
                StepShares.share: share,
                StepShares.from_ms: at,
                StepShares.to_ms: end,
                StepShares.middle_ms: (at + end) / 2,
                StepShares.label: WORDS[wall],
                StepShares.amount: f"{duration(share * clean_step_ns)}  ·  {percent(share)}",
            }
        )
        at = end
    return frame(StepShares, rows)
