import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.frames import event, gpu_event, launch_event, native

# A trace's own size must not show: blocks of 4 MiB, and what pyarrow and msgspec need.
MOST_RSS_MB = 450
# The larger file is twice the smaller one; buffers that the allocator keeps vary a little.
MOST_GROWTH = 1.25

# VmHWM, since ru_maxrss begins with what the parent had when it forked.
IMPORT = """
import sys
from pathlib import Path
from whichwall.collect.importer import import_run
import_run([Path(sys.argv[1])], Path(sys.argv[2]))
print(next(x for x in open("/proc/self/status") if x.startswith("VmHWM")).split()[1])
"""


def write_trace(path: Path, megabytes: int) -> None:
    dims = {
        "External id": 7,
        "Input Dims": [[1, 896], [896, 4864]],
        "Input type": ["c10::Half"] * 2,
    }
    rows = [
        event("cpu_op", "aten::mm", 10.125, 20.5, args=dims),
        launch_event(12.0, 3.5, 7),
        gpu_event("void gemm<float, 128, 64>(float const*, float*, int)", 40.0, 2.25, 7),
        event("python_function", "torch/nn/modules/linear.py(116): forward", 5.0, 30.0),
    ]
    block = "".join(native(row) + ",\n" for row in rows).encode()
    chunk = block * ((1 << 20) // len(block))
    with path.open("wb") as file:
        file.write(b'{"schemaVersion": 1, "baseTimeNanoseconds": 1751410836000000000,\n')
        file.write(b'  "traceEvents": [\n')
        for _ in range(megabytes):
            file.write(chunk)
        file.write(native(rows[0]).encode() + b"\n]}\n")


def peak_mb(trace: Path) -> float:
    """Return the peak memory of a process that imports a trace."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, str(trace), str(trace.with_suffix(".run"))],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    return int(done.stdout) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read peaks from")
def test_memory_is_bounded_and_does_not_grow_with_the_file(tmp_path: Path) -> None:
    small, large = tmp_path / "small.json", tmp_path / "large.json"
    write_trace(small, 30)
    write_trace(large, 60)
    peaks = (peak_mb(small), peak_mb(large))
    assert max(peaks) < MOST_RSS_MB
    assert peaks[1] / peaks[0] < MOST_GROWTH
