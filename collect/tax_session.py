"""What measuring costs: a sampler and a profiler, each against none, in several fresh processes.

A process is what repeats: what it does to itself, from where its memory lies to what a profiler
leaves behind, is the same for all its steps and differs from one process to the next.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from whichwall.collect.device import dtype_name
from whichwall.collect.environment import find_sharing, read_environment, read_gpu
from whichwall.collect.failures import explained
from whichwall.collect.nvml import open_gpu
from whichwall.collect.options import CollectOptions, command_line
from whichwall.collect.processes import Processes, joined
from whichwall.collect.progress import Reporter, reporting
from whichwall.collect.request import Request, default_writer, origin, resolve
from whichwall.collect.tax_process import TRACE_FILE, Found
from whichwall.collect.writing import Measured, Row, TakenTrace, find_unstable, write_run
from whichwall.schemas.errors import CollectError
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.passes import CLEAN, DECODE, Passes
from whichwall.schemas.points import Points

FUNCTION = "whichwall.collect.tax_process:measure"
# With fewer there is no saying how processes differ.
PROCESSES, QUICK_PROCESSES = 3, 2


def run(options: CollectOptions, writer: RunWriter | None) -> Path:
    """Run the processes and write the run; `writer` is None where nothing says where to.

    Raises:
        UsageError: an unknown model, a destination that exists.
        CollectError: no process could be run to its end; the text is the first one's.
    """
    request = resolve(options)
    device, source = request.device, request.source
    writer = writer or default_writer(request)
    failing = explained(options, f"{source.name} on {device.name}", writer.out)
    with writer, failing, reporting() as reporter, open_gpu(device.uuid):
        total = max(options.repeat, QUICK_PROCESSES if options.quick else PROCESSES)
        processes = Processes(FUNCTION, options, writer.folder)
        found = _run_all(processes, total, reporter)
        if not found:
            raise CollectError(processes.failures[0])
        reporter.stage("writing the run")
        points = [processes.with_reason(row, total) for row in found[0].points]
        prompt = points[0][Points.prompt_tokens]
        assert isinstance(prompt, int)
        name = dtype_name(request.dtype)
        command = command_line(options, source.name, device.kind, name, prompt)
        measured = _measured(request, found, points, writer.folder)
        return write_run(writer, origin(request, found[0].model, command), measured)


def _run_all(processes: Processes, total: int, reporter: Reporter) -> list[Found]:
    """Run one process after the other, and keep the trace of the first that ended well."""
    found: list[Found] = []
    for value, place in processes.run(range(total), reporter):
        if not found:
            (place / TRACE_FILE).rename(processes.folder / TRACE_FILE)
        found.append(msgspec.convert(value, Found))
    return found


def _measured(
    request: Request, found: Sequence[Found], points: list[Row], folder: Path
) -> Measured:
    gpu = read_gpu(request.device)
    rows = [row for one in found for row in one.passes]
    return Measured(
        points=points,
        passes=rows,
        samples=joined([block for one in found for block in one.blocks]),
        traces=[TakenTrace(folder / TRACE_FILE, found[0].profiler)],
        gpu=gpu,
        environment=read_environment(),
        diagnostics=[
            *find_sharing(request.device, gpu),
            *find_unstable(list(_clean_walls(rows)), DECODE),
        ],
    )


def _clean_walls(rows: Sequence[Row]) -> Iterator[int]:
    for row in rows:
        wall = row[Passes.wall_ns]
        if row[Passes.stage] == CLEAN and row[Passes.phase] == DECODE and isinstance(wall, int):
            yield wall
