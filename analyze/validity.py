"""GPU rows that cannot be an activity: left out, and counted."""

from typing import NamedTuple

import polars as pl

from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import RankFacts
from whichwall.schemas.table import EARLIEST_NS, LATEST_NS, LONGEST_NS

# Without any row of the host a recording's length is not known: below this, no row is called
# too long for it. Nor is a row of the host itself, and kernels may go on for so long after it.
SHORTEST_RECORDING_NS = 60 * 10**9
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class Recording(NamedTuple):
    """The stretch that a trace covers, Unix epoch."""

    start_ns: int
    end_ns: int
    known: bool  # told by the host's rows or the profiler to its end, not by kernels alone


def recording_of(facts: RankFacts, host: list[pl.DataFrame], kernels: pl.DataFrame) -> Recording:
    """Return what one rank's trace covers: the host's rows, the profiler's span, kernel starts.

    The ends of kernels are not used, since a void row's duration is not to be believed.
    """
    origin = facts.base_ns or 0
    told = [span for rows in host if (span := _span(rows, origin)) is not None]
    begin, end = facts.recording_start_ns, facts.recording_end_ns
    if begin is not None and end is not None and _is_span(begin, end):
        told.append((begin, end))
    starts = kernels[Kernels.start_ns]
    starts = starts.filter((starts != origin) & starts.is_between(EARLIEST_NS, LATEST_NS))
    if told:
        first, last = min(s for s, _ in told), max(e for _, e in told)
        beyond = max(last - first, SHORTEST_RECORDING_NS)
        earliest, latest = max(first - beyond, EARLIEST_NS), min(last + beyond, LATEST_NS)
        starts = starts.filter(starts.is_between(earliest, latest))
    times = starts.to_numpy()
    spans = [*told, (int(times.min()), int(times.max()))] if len(times) else told
    if not spans:
        return Recording(origin, origin, known=False)
    known = bool(told) and not facts.ends_early
    return Recording(min(s for s, _ in spans), max(e for _, e in spans), known)


def _is_span(start_ns: int, end_ns: int) -> bool:
    return EARLIEST_NS < start_ns <= end_ns < LATEST_NS


def _span(rows: pl.DataFrame, origin_ns: int) -> tuple[int, int] | None:
    """Return the stretch of host rows, without those that have no time or that never ended."""
    rows = rows.filter(pl.col(Launches.start_ns) != origin_ns)
    if not rows.height:
        return None
    start, dur = pl.col(Launches.start_ns), pl.col(Launches.dur_ns)
    first, last = rows.select(start.min().alias("first"), start.max().alias("last")).row(0)
    longest = max(last - first, SHORTEST_RECORDING_NS)
    ended = rows.filter(dur.is_between(0, longest)).select((start + dur).max()).item()
    return first, last if ended is None else max(last, ended)


def is_void(recording: Recording, origin_ns: int) -> pl.Expr:
    """Tell the rows that cannot be an activity.

    Void is: no time and no duration; a negative duration; lying outside the recording by more
    than the recording itself; or a time that 64 bits cannot add to another.
    """
    start, dur = pl.col(Kernels.start_ns), pl.col(Kernels.dur_ns)
    length = recording.end_ns - recording.start_ns
    if not recording.known:
        length = max(length, SHORTEST_RECORDING_NS)
    latest_end = min(recording.end_ns + length, INT64_MAX)
    earliest_start = max(recording.start_ns - length, INT64_MIN)
    # Written as dur > latest - start, since start + dur may not fit in 64 bits.
    return (
        ((start == origin_ns) & (dur == 0))
        | (dur < 0)
        | (start > latest_end)
        | (dur > latest_end - start)
        | (start < earliest_start)
        | ~start.is_between(EARLIEST_NS, LATEST_NS, closed="none")
        | (dur >= LONGEST_NS)
    )


def valid_rows(
    kernels: pl.DataFrame, host: list[pl.DataFrame], ranks: list[RankFacts]
) -> pl.DataFrame:
    """Leave out void rows, judged against each rank's own recording."""
    parts = []
    for facts in ranks:
        mine = (pl.col(Kernels.rank) == facts.rank) & (pl.col(Kernels.point) == facts.point)
        rows = kernels.filter(mine)
        recording = recording_of(facts, [frame.filter(mine) for frame in host], rows)
        parts.append(rows.filter(~is_void(recording, facts.base_ns or 0)))
    return pl.concat(parts) if parts else kernels.clear()
