"""Take the clean decode step from another run: of an engine that was timed without its profiler."""

import polars as pl

from whichwall.analyze.measurements import read_measurements
from whichwall.analyze.served import served_steps
from whichwall.analyze.serving import serving
from whichwall.analyze.timings import timings
from whichwall.schemas.errors import InputError
from whichwall.schemas.passes import CLEAN, DECODE
from whichwall.schemas.run import Run
from whichwall.schemas.timings import Timings


def clean_step_ns(run: Run) -> int:
    """Return the median of a run's clean decode steps, ns.

    Of passes that were timed, else the time per token that a server's client saw with one request
    at a time.

    Raises:
        InputError: it has none, or those of several points, of which none is known to be meant.
    """
    measured = read_measurements(run)
    timed = timings(measured.passes).filter(
        (pl.col(Timings.stage) == CLEAN) & (pl.col(Timings.phase) == DECODE)
    )
    # Ranks of one point wait for one another: the first one's step is the step.
    first = timed.sort(Timings.rank).unique(Timings.point, keep="first")
    steps = first[Timings.wall_ns_median].to_list()
    if not steps:
        served = serving(measured.points, measured.completions, measured.tokens)
        steps = [one.median_ns for one in served_steps(served).values()]
    if len(steps) != 1:
        found = f"{len(steps)} points with such steps" if steps else "no clean decode step"
        raise InputError(
            f"{run.path}: {found} in it; expected a run of one point as --clean-run, or give "
            "--clean-step-ms"
        )
    return int(steps[0])
