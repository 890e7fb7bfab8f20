"""Record the user's own model or loop: `record` is a block around it, and writes a run of it.

with record("traces/mine", model=model) as run:
    for batch in loader:
        ...
        run.step()
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import msgspec
import torch

from whichwall.collect.device import CUDA, Device, choose_device, device_at
from whichwall.collect.environment import find_sharing, read_environment, read_gpu
from whichwall.collect.nvml import open_gpu
from whichwall.collect.options import EAGER, TRACES, default_out
from whichwall.collect.passes import PassLog
from whichwall.collect.ranks import WAIT_S, Launch, find_launch, finish_together
from whichwall.collect.recorded_model import RecordedModel, describe
from whichwall.collect.recording import Recording, Schedule
from whichwall.collect.sampler import Sampler
from whichwall.collect.script import RECORDED, asked_by, note_run
from whichwall.collect.signals import terminable
from whichwall.collect.writing import (
    COLLECTED,
    Measured,
    Origin,
    Row,
    TakenTrace,
    find_unstable,
    write_tables,
)
from whichwall.schemas import passes
from whichwall.schemas.errors import UsageError
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.manifest import Manifest, RankFacts
from whichwall.schemas.points import DONE, Points

TRACE_FILE = "trace.json"
LABEL = "recorded"
NANOSECOND = 1
# A process has one profiler, and a second one would fail in the middle of the user's loop.
_RECORDING = threading.Lock()


@contextmanager
def record(
    out: str | Path | None = None,
    *,
    model: torch.nn.Module | str | Path | None = None,
    phase: str | None = None,
    batch: int | None = None,
    tokens: int | None = None,
    engine: str = EAGER,
    warmup: int = 3,
    clean: int = 20,
    profiled: int = 4,
    after: int = 10,
    sample_interval_ms: int = 100,
    overwrite: bool = False,
    wait_s: float = WAIT_S,
) -> Iterator[Recording]:
    """Record the loop in the block, and write a run of it when the block ends.

    Steps that are timed are synchronised at both ends, so that a step's time is its own; those
    that warm up, and all that come after the last stage, are left as they are. A block that raises
    leaves no run. SIGTERM and SIGHUP raise KeyboardInterrupt in it. Under torchrun every rank
    records, and rank 0 puts one run together once all blocks have ended; ranks on several hosts
    need an `out` that all of them see.

    Args:
        out: the run's folder. None: as `whichwall collect -- …` says, else a new one in traces/.
        model: the module, of whose transformers config the dimensions are read; or a path to a
            config.json. Floors and most roles need it.
        phase: what a step is for the report, decode or prefill. None: prefill if `tokens` is more
            than one per sequence, else decode. Floors count a forward pass: a training step is
            best called prefill, and its floor lacks the backward pass.
        batch: sequences in a step.
        tokens: tokens fed into a step, all sequences together. None: in decode one per sequence.
        engine: what runs the model, as reports should name it.
        warmup: steps before any is timed.
        clean: steps timed with no profiler.
        profiled: steps traced, after three more that pay for the profiler's start; 0: none.
        after: steps timed once the profiler has gone, which shows what it costs.
        sample_interval_ms: time between two samples of nvidia-smi.
        overwrite: replace an earlier run at `out`.
        wait_s: how long a rank waits for the others once its own block has ended.

    Raises:
        UsageError: an argument that cannot be, a destination that exists, or a recording in which
            this process already is.
        InputError: a path as `model` that leads to no decoder's config.
        CollectError: the device cannot be used, or rank 0 took no part of this rank.
    """
    created_ns = time.time_ns()
    schedule = _schedule(phase, batch, tokens, warmup, clean, profiled, after, sample_interval_ms)
    if _RECORDING.locked():
        raise UsageError("record(…) inside record(…): a process records one loop at a time")
    launch = find_launch(os.environ)
    known = describe(model, whole=launch.is_alone)
    device = _device(known, launch)
    writer, meeting = _destination(out, launch, known, device, overwrite=overwrite)
    # NVML stays open throughout, so that opening it again for a reading costs nothing.
    with (
        _RECORDING,
        terminable(),
        writer,
        open_gpu(device.uuid),
        Sampler(device.uuid, sample_interval_ms) as sampler,
    ):
        sampler.start()
        log = PassLog(device, batch, rank=launch.rank)
        with closing(Recording(device, schedule, log, sampler)) as recording:
            yield recording
            recording.end()
        measured = _measured(recording, launch, known, engine, writer.folder)
        origin = Origin(RECORDED, _command(schedule), created_ns, device.is_gpu, known.facts)
        manifest = write_tables(writer, origin, measured)
        if launch.is_alone:
            recording.path = writer.finish(manifest)
        else:
            manifest = _with_rank(manifest, launch)
            recording.path = finish_together(writer, manifest, launch, meeting, wait_s)
    if recording.path is not None:
        note_run(os.environ, recording.path)


def _schedule(phase: str | None, batch: int | None, tokens: int | None, *counts: int) -> Schedule:
    """Return the schedule with its defaults resolved.

    Raises:
        UsageError: an argument that cannot be.
    """
    if phase is None:
        several = batch is not None and tokens is not None and tokens > batch
        phase = passes.PREFILL if several else passes.DECODE
    if tokens is None and phase == passes.DECODE:
        tokens = batch
    schedule = Schedule(phase, batch, tokens, *counts)
    schedule.check()
    return schedule


def _device(known: RecordedModel, launch: Launch) -> Device:
    """Return where the model is; without one the GPU in use, each rank its own, else the CPU."""
    if known.place is not None:
        return device_at(known.place)
    local = launch.local_rank
    if local and torch.cuda.is_available() and torch.cuda.current_device() == 0:
        # Not chosen yet by the script, unless each rank sees just one GPU.
        return device_at(torch.device(CUDA, local if local < torch.cuda.device_count() else 0))
    return choose_device("auto")


def _destination(
    out: str | Path | None,
    launch: Launch,
    known: RecordedModel,
    device: Device,
    *,
    overwrite: bool,
) -> tuple[RunWriter, Path]:
    """Return the writer of this rank, and the folder in which ranks meet.

    Raises:
        UsageError: the run's folder exists.
    """
    asked = asked_by(os.environ)
    where = asked.out if out is None else Path(out)
    overwrite = overwrite or (out is None and asked.overwrite)
    # Without a name the time is in it, which differs from rank to rank.
    anchor = where or TRACES / RECORDED
    if where is None:
        utc = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        name = known.facts.name if known.facts else Path(_script()).stem
        where = default_out(RECORDED, name, device.name, utc)
    writer = RunWriter(where, overwrite=overwrite)
    if launch.rank:
        part = f".{anchor.name}.{launch.id}.rank{launch.rank}.{uuid4().hex[:8]}"
        writer = RunWriter(anchor.with_name(part))
    return writer, launch.meeting(anchor)


def _script() -> str:
    """Return the name of the program that records, without its folder."""
    name = Path(sys.argv[0]).name if sys.argv else ""
    return name if name not in ("", "-c") else "session"


def _command(schedule: Schedule) -> str:
    """Return the call, with every default spelled out; no folder of this machine is in it."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in asdict(schedule).items())
    return f"whichwall.collect.record({arguments}) in {_script()}"


def _measured(
    recording: Recording, launch: Launch, known: RecordedModel, engine: str, folder: Path
) -> Measured:
    """Gather what this rank measured; the run's one point is rank 0's to write."""
    device, schedule, log = recording.device, recording.schedule, recording.log
    traces = []
    if recording.session is not None:
        path = folder / TRACE_FILE
        recording.session.export(path)
        traces.append(TakenTrace(path, recording.session.facts()))
    gpu = read_gpu(device)
    clean = log.walls(passes.CLEAN, schedule.phase)
    return Measured(
        points=[] if launch.rank else [_point_row(recording, known, engine)],
        passes=log.rows,
        samples=recording.sampled(),
        energy=recording.energy,
        traces=traces,
        gpu=gpu,
        environment=read_environment(),
        diagnostics=[
            *known.differences(),
            *find_sharing(device, gpu),
            *recording.shortfall(),
            *(find_unstable(clean, schedule.phase) if clean else []),
        ],
        rank=None if launch.is_alone else launch.rank,
    )


def _point_row(recording: Recording, known: RecordedModel, engine: str) -> Row:
    return {
        Points.point: 0,
        Points.label: LABEL,
        Points.engine: engine,
        Points.attention: known.attention,
        Points.dtype: known.dtype,
        Points.batch: recording.schedule.batch,
        Points.outcome: DONE,
        Points.memory_bytes: recording.device.most_allocated(),
    }


def _with_rank(manifest: Manifest, launch: Launch) -> Manifest:
    """Return a part's manifest with facts of its rank, even if its loop ended before any trace."""
    untraced = RankFacts(launch.rank, COLLECTED, "epoch", None, NANOSECOND)
    ranks = [
        msgspec.structs.replace(facts, world_size=launch.world)
        for facts in manifest.ranks or [untraced]
    ]
    return msgspec.structs.replace(manifest, ranks=ranks)
