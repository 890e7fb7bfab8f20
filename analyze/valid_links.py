"""Check how one trace's rows hang together: kernels and launches, and operators that nest.

What does not is the trace's own lack, so it is a remark, counted as analyses count it; a GPU that
the manifest does not name is an error.
"""

import polars as pl

from whichwall.analyze.completeness import CALL, expected_and_lost
from whichwall.analyze.containment import THREAD
from whichwall.analyze.links import GRAPH_LAUNCH_NAME, LAUNCH_NAME, NO_LINK
from whichwall.analyze.validity import valid_rows
from whichwall.schemas.findings import MAKE_AGAIN, REMARK, Finding
from whichwall.schemas.folder import file_name
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import RankFacts
from whichwall.schemas.ops import Ops
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.table import Table

# All that links need, so that a large trace fits into memory: no names of kernels, no shapes.
LINK_COLUMNS: dict[type[Table], tuple[str, ...]] = {
    Kernels: (
        Kernels.point, Kernels.rank, Kernels.device, Kernels.start_ns, Kernels.dur_ns,
        Kernels.correlation,
    ),
    Launches: (
        Launches.point, Launches.rank, Launches.tid, Launches.name, Launches.start_ns,
        Launches.dur_ns, Launches.correlation,
    ),
    Ops: (Ops.point, Ops.rank, Ops.tid, Ops.start_ns, Ops.dur_ns),
    Overheads: (Overheads.point, Overheads.rank, Overheads.start_ns, Overheads.dur_ns),
}  # fmt: skip


def check_links(facts: RankFacts, frames: dict[type[Table], pl.DataFrame]) -> list[Finding]:
    """Return what does not hang together in a trace.

    Args:
        facts: what the manifest says of the trace.
        frames: its rows, the columns of `LINK_COLUMNS`.
    """
    kernels, launches, ops = frames[Kernels], frames[Launches], frames[Ops]
    valid = valid_rows(kernels, [launches, ops, frames[Overheads]], [facts])
    expected, lost = expected_and_lost(launches, kernels)
    strange = sorted(set(kernels[Kernels.device].drop_nulls().unique()) - {*facts.devices})
    said = [
        (Kernels, kernels.height - valid.height, kernels.height,
         "GPU rows cannot be an activity and are left out"),
        (Kernels, unlinked(valid, launches).height, valid.height,
         "GPU activities have no launch on record"),
        (Kernels, shared(valid, launches).height, valid.height,
         "GPU activities share a launch that replays no graph"),
        (Launches, lost.height, expected.height, "launches left no GPU row"),
        (Ops, crossing(ops), ops.height,
         "operators begin inside another one of their thread and outlast it"),
    ]  # fmt: skip
    found = [
        Finding(file_name(table), f"{n} of {of} {what} (rank {facts.rank})", severity=REMARK)
        for table, n, of, what in said
        if n
    ]
    if strange:
        listed = ", ".join(map(str, facts.devices)) or "none"
        found.append(
            Finding(
                file_name(Kernels), f"activities of device {strange[0]} (rank {facts.rank})",
                f"devices of run.json: {listed}", MAKE_AGAIN,
            )
        )  # fmt: skip
    return found


def unlinked(kernels: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """Return the GPU rows without a launch of their correlation, within their point and rank."""
    named = launches.filter(pl.col(Launches.correlation) != NO_LINK)
    return kernels.join(named, on=CALL, how="anti")


def shared(kernels: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """Return the GPU rows that are not the only one of an ordinary launch of a kernel."""
    name = pl.col(Launches.name)
    ordinary = launches.filter(
        (pl.col(Launches.correlation) != NO_LINK)
        & name.str.contains(LAUNCH_NAME)
        & ~name.str.contains(GRAPH_LAUNCH_NAME)
    )
    return kernels.filter(pl.len().over(CALL) > 1).join(ordinary, on=CALL, how="semi")


def crossing(ops: pl.DataFrame) -> int:
    """Count the operators that begin inside another one of their thread and end after it."""
    ordered = ops.with_columns((pl.col(Ops.start_ns) + pl.col(Ops.dur_ns)).alias("end")).sort(
        [*THREAD, Ops.start_ns, "end"], descending=[False] * 4 + [True], nulls_last=True
    )
    count = 0
    for rows in ordered.select(*THREAD, Ops.start_ns, "end").partition_by(
        THREAD, include_key=False
    ):
        open_ends: list[int] = []
        for start, end in rows.iter_rows():
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            if open_ends and open_ends[-1] < end:
                count += 1
            open_ends.append(end)
    return count
