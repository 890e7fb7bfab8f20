"""What measuring costs: a sampler and a profiler, each against none, in several fresh processes.

A process is what repeats: what it does to itself, from where its memory lies to what a profiler
leaves behind, is the same for all its steps and differs from one process to the next.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import msgspec

from whichwall.collect.device import dtype_name
from whichwall.collect.environment import find_sharing, read_environment, read_gpu
from whichwall.collect.failures import explained
from whichwall.collect.fresh import run_fresh
from whichwall.collect.nvml import open_gpu
from whichwall.collect.options import CollectOptions, command_line
from whichwall.collect.progress import Reporter, reporting
from whichwall.collect.request import Request, default_writer, origin, resolve
from whichwall.collect.sampler import Samples
from whichwall.collect.tax_process import TRACE_FILE, Block, Found
from whichwall.collect.writing import Measured, Row, TakenTrace, find_unstable, write_run
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import CollectError
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.manifest import SamplerFacts
from whichwall.schemas.passes import CLEAN, DECODE, Passes
from whichwall.schemas.points import Points

FUNCTION = "whichwall.collect.tax_process:measure"
# With fewer there is no saying how processes differ.
PROCESSES, QUICK_PROCESSES = 3, 2
# Loading a large model and compiling it take minutes; what takes longer than this hangs.
PATIENCE_S = 1800.0


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
        found, failures = _run_all(request, writer.folder, reporter)
        if not found:
            raise CollectError(failures[0])
        reporter.stage("writing the run")
        points = [_with_reason(row, failures, len(found)) for row in found[0].points]
        prompt = points[0][Points.prompt_tokens]
        assert isinstance(prompt, int)
        name = dtype_name(request.dtype)
        command = command_line(options, source.name, device.kind, name, prompt)
        measured = _measured(request, found, points, writer.folder)
        return write_run(writer, origin(request, found[0].model, command), measured)


def _run_all(request: Request, folder: Path, reporter: Reporter) -> tuple[list[Found], list[str]]:
    """Run one process after the other; what a failed one says stands beside what others found."""
    options = request.options
    total = max(options.repeat, QUICK_PROCESSES if options.quick else PROCESSES)
    found: list[Found] = []
    failures: list[str] = []
    # Where the run goes, and where an interrupted one is taken up, is this process's business.
    asked = asdict(replace(options, out=None, resume=None))
    for number in range(total):
        reporter.part(f"process {number + 1} of {total}", number, total)
        place = folder / f"process{number}"
        place.mkdir()
        try:
            value = run_fresh(FUNCTION, {"options": asked, "process": number}, place, PATIENCE_S)
        except CollectError as error:
            failures.append(str(error))
        else:
            if not found:
                (place / TRACE_FILE).rename(folder / TRACE_FILE)
            found.append(msgspec.convert(value, Found))
        shutil.rmtree(place)
    return found, failures


def _with_reason(row: Row, failures: Sequence[str], ended_well: int) -> Row:
    """Return the row of a point, with what stopped the processes that failed."""
    if not failures:
        return row
    total = ended_well + len(failures)
    said = f"{len(failures)} of {total} processes failed: {failures[0]}"
    reason = row[Points.reason]
    return {**row, Points.reason: f"{reason}; {said}" if reason else said}


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


def joined(blocks: Sequence[Block]) -> Samples:
    """Return what a sampler brought home from several stretches as if it were from one."""
    said: dict[Diagnostic, None] = {}
    for block in blocks:
        said |= dict.fromkeys(block.diagnostics)
    return Samples(
        rows=[row for block in blocks for row in block.rows],
        facts=_together([block.facts for block in blocks if block.facts is not None]),
        diagnostics=list(said),
    )


def _together(facts: Sequence[SamplerFacts]) -> SamplerFacts | None:
    """Return the first's facts with all that could not be read counted together."""
    if not facts:
        return None
    nulls: dict[str, Counter[str]] = {}
    for one in facts:
        for name, texts in one.nulls.items():
            nulls.setdefault(name, Counter()).update(texts)
    return msgspec.structs.replace(
        facts[0],
        nulls={name: dict(texts) for name, texts in nulls.items()},
        rejected_lines=sum(one.rejected_lines for one in facts),
        events=[event for one in facts for event in one.events],
    )
