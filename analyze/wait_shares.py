"""Reduce waits for tokens to a curve each: what share of them was no longer than a time."""

import numpy as np
import polars as pl

from whichwall.schemas.chart import WaitShares
from whichwall.schemas.run import frame

NS_PER_MS = 1e6
# More points of a curve than this are not told apart at its width.
MOST_POINTS = 200


def wait_shares(waits_ns: dict[str, pl.Series]) -> pl.DataFrame:
    """Return `WaitShares` of several kinds of wait; a kind without any above 0 has no rows."""
    rows: list[dict[str, object]] = []
    for name, values in waits_ns.items():
        known = np.sort(values.drop_nulls().to_numpy().astype(np.float64))
        known = known[known > 0]
        if not known.size:
            continue
        # The ends are the shortest and the longest; in between, every so many-th.
        places = np.unique(np.linspace(0, known.size - 1, min(known.size, MOST_POINTS)).astype(int))
        rows += [
            {
                WaitShares.kind: name,
                WaitShares.wait_ms: float(known[place]) / NS_PER_MS,
                WaitShares.share: float((place + 1) / known.size),
            }
            for place in places
        ]
    return frame(WaitShares, rows)
