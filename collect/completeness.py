"""Check a trace that was just taken: how many launches left no kernel on record."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from whichwall.schemas.kernels import KERNEL, Kernels
from whichwall.schemas.launches import Launches

# Calls that launch exactly one kernel; graph launches and copies leave other records.
LAUNCH_CALLS = frozenset(
    {
        "cudaLaunchKernel",
        "cudaLaunchKernelExC",
        "cudaLaunchCooperativeKernel",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "cuLaunchCooperativeKernel",
        "hipLaunchKernel",
        "hipExtLaunchKernel",
        "hipLaunchCooperativeKernel",
        "hipModuleLaunchKernel",
        "hipExtModuleLaunchKernel",
    }
)

Call = tuple[int, int, int | None]  # start, end, correlation


def count_unrecorded(kernels: Path, launches: Path, point: int = 0) -> int:
    """Count launches of a point whose kernel its trace lacks, by their shared correlation.

    Nested calls are one launch: the kernel is linked to one of them.
    """
    table = pq.read_table(
        kernels, columns=[Kernels.correlation], filters=[(Kernels.point, "==", point)]
    )
    recorded = set(table[0].to_pylist())
    return sum(
        linked.isdisjoint(recorded)
        for calls in _calls_by_thread(launches, point).values()
        for linked in _nested_together(calls)
    )


def _calls_by_thread(launches: Path, point: int) -> dict[int | None, list[Call]]:
    columns = [
        Launches.tid,
        Launches.name,
        Launches.start_ns,
        Launches.dur_ns,
        Launches.correlation,
    ]
    table = pq.read_table(launches, columns=columns, filters=[(Launches.point, "==", point)])
    calls: dict[int | None, list[Call]] = {}
    for tid, name, start, dur, correlation in zip(
        *(table[column].to_pylist() for column in columns), strict=True
    ):
        if name.partition("_")[0] in LAUNCH_CALLS:
            calls.setdefault(tid, []).append((start, start + dur, correlation))
    return calls


def _nested_together(calls: list[Call]) -> Iterator[set[int | None]]:
    """Yield the correlations of each outermost call and of those inside it."""
    ordered = sorted(calls, key=lambda call: (call[0], -call[1]))
    at = 0
    while at < len(ordered):
        _, end, _ = ordered[at]
        linked: set[int | None] = set()
        while at < len(ordered) and (not linked or ordered[at][0] < end):
            linked.add(ordered[at][2])
            at += 1
        yield linked


def count_kernels(kernels: Path, point: int = 0) -> int:
    """Count the kernels of a point in a finished table, copies and sets left out."""
    table = pq.read_table(kernels, columns=[Kernels.kind], filters=[(Kernels.point, "==", point)])
    return table[0].to_pylist().count(KERNEL)
