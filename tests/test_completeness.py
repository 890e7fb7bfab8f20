from pathlib import Path

import pyarrow as pa

from whichwall.collect.completeness import count_kernels, count_unrecorded
from whichwall.schemas.folder import TableWriter
from whichwall.schemas.kernels import KERNEL, MEMCPY, Kernels
from whichwall.schemas.launches import RUNTIME, Launches
from whichwall.schemas.table import Table


def write(path: Path, table: type[Table], rows: list[dict[str, object]]) -> Path:
    writer = TableWriter(table, path)
    writer.write(pa.Table.from_pylist(rows, schema=table.schema()))
    writer.close()
    return path


def kernel(correlation: int, kind: str = KERNEL) -> dict[str, object]:
    return {
        Kernels.point: 0,
        Kernels.rank: 0,
        Kernels.kind: kind,
        Kernels.name: "k",
        Kernels.start_ns: 0,
        Kernels.dur_ns: 1,
        Kernels.correlation: correlation,
    }


def call(name: str, start: int, end: int, correlation: int, tid: int = 1) -> dict[str, object]:
    return {
        Launches.point: 0,
        Launches.rank: 0,
        Launches.api: RUNTIME,
        Launches.name: name,
        Launches.tid: tid,
        Launches.start_ns: start,
        Launches.dur_ns: end - start,
        Launches.correlation: correlation,
    }


def test_copies_are_no_kernels(tmp_path: Path) -> None:
    kernels = write(tmp_path / "k.parquet", Kernels, [kernel(1), kernel(2, MEMCPY)])

    assert count_kernels(kernels) == 1


def test_only_launches_without_their_kernel_count(tmp_path: Path) -> None:
    kernels = write(tmp_path / "k.parquet", Kernels, [kernel(1), kernel(5)])
    launches = write(
        tmp_path / "l.parquet",
        Launches,
        [
            call("cudaLaunchKernel", 0, 10, 1),
            call("cudaLaunchKernel", 20, 30, 2),  # lost
            call("cudaDeviceSynchronize", 40, 50, 3),  # launches nothing
            call("cudaLaunchKernelExC", 60, 90, 4),
            call("cuLaunchKernelEx", 65, 80, 5),  # inside the call above: one launch
            call("cudaLaunchKernel", 62, 70, 6, tid=2),  # lost, on another thread
        ],
    )

    assert count_unrecorded(kernels, launches) == 2
