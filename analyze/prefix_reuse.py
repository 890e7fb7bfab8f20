"""Say what a shared beginning of prompts saves: TTFT of later prompts over that of unique ones."""

import polars as pl

from whichwall.analyze.medians import median_ns
from whichwall.analyze.observer import cost
from whichwall.analyze.serving import answered, waits
from whichwall.schemas.completions import Completions
from whichwall.schemas.passes import CLEAN
from whichwall.schemas.points import FIRST, LATER, UNIQUE, Points
from whichwall.schemas.serving import PrefixReuse, Reuse


def prefix_reuse(points: pl.DataFrame, completions: pl.DataFrame) -> PrefixReuse | None:
    """Return what sharing a prefix does; null where the run has no points of that kind.

    Args:
        points: `Points`, with the three labels of such a run.
        completions: `Completions`, of which the clean ones count.
    """
    numbers = dict(points.select(Points.label, Points.point).iter_rows())
    if completions.is_empty() or not {UNIQUE, FIRST, LATER} <= numbers.keys():
        return None
    clean = completions.filter(pl.col(Completions.stage) == CLEAN)
    done = answered(clean)
    kinds = {
        label: done.filter(pl.col(Completions.point) == numbers[label])
        for label in (UNIQUE, FIRST, LATER)
    }
    shared = kinds[LATER].vstack(kinds[FIRST])
    return PrefixReuse(
        prompt_tokens=median_ns(done[Completions.prompt_tokens]),
        prefix_tokens=median_ns(shared[Completions.prefix_tokens]),
        rounds=clean[Completions.visit].n_unique(),
        unique=waits(kinds[UNIQUE][Completions.ttft_ns]),
        first=waits(kinds[FIRST][Completions.ttft_ns]),
        later=waits(kinds[LATER][Completions.ttft_ns]),
        first_to_unique=_reuse(kinds[UNIQUE], kinds[FIRST]),
        later_to_unique=_reuse(kinds[UNIQUE], kinds[LATER]),
        cached_tokens_unique=median_ns(kinds[UNIQUE][Completions.cached_tokens]),
        cached_tokens_first=median_ns(kinds[FIRST][Completions.cached_tokens]),
        cached_tokens_later=median_ns(kinds[LATER][Completions.cached_tokens]),
        failed=clean.height - done.height,
    )


def _reuse(unique: pl.DataFrame, other: pl.DataFrame) -> Reuse | None:
    """Return the ratio of TTFTs inside a round, the median over rounds; null where none has both.

    Prompts of one round meet the same state of server and machine, so each round gives one value.
    """
    found = cost(_by_round(other), _by_round(unique))
    return None if found is None else Reuse(found.ratio, found.low, found.high, found.seen)


def _by_round(done: pl.DataFrame) -> dict[int, float]:
    """Return the median TTFT of each round."""
    return dict(
        done.filter(pl.col(Completions.ttft_ns) > 0)
        .group_by(Completions.visit)
        .agg(pl.col(Completions.ttft_ns).median())
        .sort(Completions.visit)
        .iter_rows()
    )
