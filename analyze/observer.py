"""Compare the same step before, under and after a profiler, and with and without a sampler."""

from math import exp, log, sqrt
from statistics import fmean, median, stdev

import polars as pl

from whichwall.analyze.student import t_95
from whichwall.schemas.experiments import Cost, Observer, Process
from whichwall.schemas.passes import AFTER, CLEAN, DECODE, PREFILL, PROFILED, Passes
from whichwall.schemas.points import SAMPLER_OFF, SAMPLER_ON, Points

FEWEST = 2  # one process says nothing of how processes differ

_UNDER, _AFTER = "under the profiler", "after the profiler"

Medians = dict[int, float]  # of a step, by process


def observer(points: pl.DataFrame, passes: pl.DataFrame) -> Observer | None:
    """Return what watching costs; null without the points of the sampler.

    A process is a visit. Of each the median step is taken; ratios are between two medians of one
    process, and their median over processes is the cost. The interval holds the mean of their
    logarithms with 95 %, by Student's t: processes are few.
    """
    labelled = points.filter(pl.col(Points.label).is_in([SAMPLER_OFF, SAMPLER_ON]))
    named = passes.join(labelled.select(Points.point, Points.label), on=Points.point)
    for phase in (DECODE, PREFILL):
        rows = named.filter(pl.col(Passes.phase) == phase)
        if rows.filter(pl.col(Passes.stage) == CLEAN).height:
            return _observed(phase, rows)
    return None


def _observed(phase: str, rows: pl.DataFrame) -> Observer:
    off, on = (_medians(rows, label, CLEAN) for label in (SAMPLER_OFF, SAMPLER_ON))
    # The profiler works on one of the two points; its steps are compared with that one's.
    watched = SAMPLER_ON if _medians(rows, SAMPLER_ON, PROFILED) else SAMPLER_OFF
    clean, under, after = (_medians(rows, watched, stage) for stage in (CLEAN, PROFILED, AFTER))
    named = [(SAMPLER_OFF, off), (SAMPLER_ON, on), (_UNDER, under), (_AFTER, after)]
    return Observer(
        phase=phase,
        sides=[_process(name, medians) for name, medians in named if medians],
        profiled=cost(under, clean),
        after=cost(after, clean),
        sampler=cost(on, off),
    )


def _medians(rows: pl.DataFrame, label: str, stage: str) -> Medians:
    found = (
        rows.filter((pl.col(Points.label) == label) & (pl.col(Passes.stage) == stage))
        .group_by(pl.col(Passes.visit).fill_null(0))
        .agg(pl.col(Passes.wall_ns).median())
        .sort(Passes.visit)
    )
    return dict(found.iter_rows())


def _process(name: str, medians: Medians) -> Process:
    values = list(medians.values())
    return Process(
        name=name,
        processes=len(values),
        median_ns=round(median(values)),
        lowest_ns=round(min(values)),
        highest_ns=round(max(values)),
    )


def cost(watched: Medians, plain: Medians) -> Cost | None:
    """Return the median ratio over the processes that have both, null where none has.

    With its interval: exp(mean ± t · deviation / √n) of the logarithms of the ratios.
    """
    both = sorted(watched.keys() & plain.keys())
    if not both:
        return None
    ratios = [watched[process] / plain[process] for process in both]
    ratio = median(ratios)
    if len(both) < FEWEST:
        return Cost(ratio, None, None, len(both), None)
    logs = [log(one) for one in ratios]
    middle, reach = fmean(logs), t_95(len(logs) - 1) * stdev(logs) / sqrt(len(logs))
    low, high = exp(middle - reach), exp(middle + reach)
    return Cost(ratio, low, high, len(both), seen=not low <= 1 <= high)
