"""A trace of almost nothing, to see whether the profiler works: run in a process of its own."""

import json
import os
import sys
import tempfile
from pathlib import Path

import torch

from whichwall.collect.device import choose_device
from whichwall.collect.profiler import TraceSession

SIZE = 256
KERNEL_CATEGORY = "kernel"


def try_profiler() -> None:
    """Record one matrix product, and print how many events and kernels the trace holds."""
    device = choose_device("auto")
    matrix = torch.ones(SIZE, SIZE, device=device.torch)
    with TraceSession(device) as session, tempfile.TemporaryDirectory() as folder:
        session.start()
        matrix @ matrix
        session.stop()
        path = Path(folder) / "trace.json"
        session.export(path)
        events = json.loads(path.read_bytes())["traceEvents"]
    kernels = sum(event.get("cat") == KERNEL_CATEGORY for event in events)
    sys.stdout.write(f"{len(events)} {kernels}\n")
    sys.stdout.flush()
    # CUPTI is taken down within the next CUDA call; on an H200 a process that made none hung
    # when it ended. This one has no more to do, so it ends without clearing up.
    os._exit(0)
