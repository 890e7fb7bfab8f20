"""Divide a request into its stages, and compare ways of making its tokens."""

import polars as pl

from whichwall.analyze.medians import median_ns
from whichwall.schemas.experiments import LoopTime, RequestTimes
from whichwall.schemas.passes import CLEAN, DECODE, Passes
from whichwall.schemas.requests import FREE, LOOPS, WAITING, Requests

_STEPS, _FIRST, _MEDIAN, _SLOWEST = "steps_ns", "first_ns", "median_ns", "slowest_ns"
_ROW = "row"


def request_times(requests: pl.DataFrame, passes: pl.DataFrame) -> RequestTimes | None:
    """Return medians over requests; null where there are none.

    Stages are those of the loop that waits after each pass, since only there each can be timed;
    its decode steps are the clean passes that began inside a request.
    """
    if requests.is_empty():
        return None
    waiting = requests.filter(pl.col(Requests.loop) == WAITING)
    staged = waiting if waiting.height else requests.clear()
    steps = steps_of(staged, passes)
    first = requests.row(0, named=True)
    told, alike = _alike(requests)
    return RequestTimes(
        prompt_tokens=first[Requests.prompt_tokens],
        new_tokens=first[Requests.new_tokens],
        tokenize_ns=median_ns(requests[Requests.tokenize_ns]),
        prefill_ns=median_ns(staged[Requests.prefill_ns]),
        steps_ns=median_ns(steps[_STEPS]),
        detokenize_ns=median_ns(requests[Requests.detokenize_ns]),
        total_ns=median_ns(staged.select(total_ns()).to_series()),
        step_ns_first=median_ns(steps[_FIRST]),
        step_ns_median=median_ns(steps[_MEDIAN]),
        step_ns_slowest=median_ns(steps[_SLOWEST]),
        loops=_loops(requests),
        same_tokens=alike == told if told > 1 else None,
        requests_told=told,
        requests_alike=alike,
    )


def total_ns() -> pl.Expr:
    """Return the whole of a request: text to text where its text was timed, else its model time."""
    texts = [pl.col(c).fill_null(0) for c in (Requests.tokenize_ns, Requests.detokenize_ns)]
    return pl.col(Requests.model_ns) + texts[0] + texts[1]


def decode_passes(request: dict[str, int], passes: pl.DataFrame) -> pl.DataFrame:
    """Return the clean decode passes that began inside one request, in order."""
    end = request[Requests.start_ns] + sum(
        request[c] or 0 for c in (Requests.tokenize_ns, Requests.model_ns, Requests.detokenize_ns)
    )
    return passes.filter(
        (pl.col(Passes.point) == request[Requests.point])
        & (pl.col(Passes.rank) == request[Requests.rank])
        & (pl.col(Passes.stage) == CLEAN)
        & (pl.col(Passes.phase) == DECODE)
        & pl.col(Passes.start_ns).is_between(request[Requests.start_ns], end)
    ).sort(Passes.start_ns)


def steps_of(requests: pl.DataFrame, passes: pl.DataFrame) -> pl.DataFrame:
    """Return a row per request that has steps: all, first, median and slowest of them, ns."""
    rows = []
    for request in requests.iter_rows(named=True):
        walls = decode_passes(request, passes)[Passes.wall_ns]
        if len(walls):
            rows.append((walls.sum(), walls[0], median_ns(walls), walls.max()))
    schema = dict.fromkeys((_STEPS, _FIRST, _MEDIAN, _SLOWEST), pl.Int64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _loops(requests: pl.DataFrame) -> list[LoopTime]:
    """Return each loop beside the one that waits only at the end."""
    times = {loop: requests.filter(pl.col(Requests.loop) == loop) for loop in LOOPS}
    medians = {loop: median_ns(rows[Requests.model_ns]) for loop, rows in times.items()}
    free = medians[FREE]
    return [
        LoopTime(
            loop=loop,
            requests=times[loop].height,
            model_ns=took,
            model_ns_lowest=_whole(times[loop][Requests.model_ns].min()),
            model_ns_highest=_whole(times[loop][Requests.model_ns].max()),
            to_free=took / free if free else None,
        )
        for loop, took in medians.items()
        if took is not None
    ]


def _alike(requests: pl.DataFrame) -> tuple[int, int]:
    """Count requests whose tokens are known, and those that made what most of them made.

    Compared are those that asked for the same, whatever their loop.
    """
    told = requests.filter(pl.col(Requests.tokens_sha256).is_not_null())
    alike = told.group_by(Requests.prompt_tokens, Requests.tokens_sha256).len(_ROW)
    most = alike.group_by(Requests.prompt_tokens).agg(pl.col(_ROW).max())
    return told.height, int(most[_ROW].sum())


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value
