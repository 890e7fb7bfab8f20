"""GPU rows that cannot be an activity: left out, and counted."""

from typing import NamedTuple

import polars as pl

from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import RankFacts

# Without any row of the host a recording's length is not known: below this, no row is called
# too long for it.
SHORTEST_RECORDING_NS = 60 * 10**9


class Recording(NamedTuple):
    """The stretch that a trace covers, Unix epoch."""

    start_ns: int
    end_ns: int
    known: bool  # told by the host's rows or the profiler, not by kernels alone


def recording_of(facts: RankFacts, host: list[pl.DataFrame], kernels: pl.DataFrame) -> Recording:
    """Return what one rank's trace covers: the host's rows, the profiler's span, kernel starts.

    The ends of kernels are not used, since a void row's duration is not to be believed.
    """
    origin = facts.base_ns or 0
    spans = [
        (int(f[Launches.start_ns].min()), int((f[Launches.start_ns] + f[Launches.dur_ns]).max()))  # type: ignore[arg-type]
        for f in host
        if f.height
    ]
    if facts.recording_start_ns is not None and facts.recording_end_ns is not None:
        spans.append((facts.recording_start_ns, facts.recording_end_ns))
    known = bool(spans)
    starts = kernels[Kernels.start_ns]
    starts = starts.filter(starts != origin)
    if len(starts):
        spans.append((int(starts.min()), int(starts.max())))  # type: ignore[arg-type]
    if not spans:
        return Recording(origin, origin, known=False)
    return Recording(min(s for s, _ in spans), max(e for _, e in spans), known)


def is_void(recording: Recording, origin_ns: int) -> pl.Expr:
    """Tell the rows that cannot be an activity.

    Void is: no time and no duration; a negative duration; or lying outside the recording by
    more than the recording itself.
    """
    start, dur = pl.col(Kernels.start_ns), pl.col(Kernels.dur_ns)
    length = recording.end_ns - recording.start_ns
    if not recording.known:
        length = max(length, SHORTEST_RECORDING_NS)
    latest_end = recording.end_ns + length
    earliest_start = recording.start_ns - length
    # Written as dur > latest - start, since start + dur may not fit in 64 bits.
    return (
        ((start == origin_ns) & (dur == 0))
        | (dur < 0)
        | (start > latest_end)
        | (dur > latest_end - start)
        | (start < earliest_start)
    )
