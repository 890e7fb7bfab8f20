"""A sweep: its points visited in turn, back and forth, so that drift does not look like a trend.

Odd rounds go through the points backwards. All clean visits come before any profiler; then the
model is freed, the device's limits are measured, and a few points are traced, each in a fresh
process. vLLM as a rung of the ladder has a process of its own for all its visits. A journal on disk
holds every finished visit, and an interrupted sweep goes on from it.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from whichwall import __version__
from whichwall.collect import journal as journals
from whichwall.collect.ceilings import CeilingLog, measure_matmul, measure_streams_and_launches
from whichwall.collect.device import Device, dtype_name
from whichwall.collect.engines.make import NEEDS_GPU, build_for, close, expect, how_it_starts
from whichwall.collect.environment import find_sharing, read_environment, read_gpu
from whichwall.collect.failures import explained
from whichwall.collect.journal import Bench, Header, Journal
from whichwall.collect.models import Built
from whichwall.collect.node_idle import FOURTH, hold_graphs, measure_node_idle, time_replay
from whichwall.collect.nvml import open_gpu
from whichwall.collect.options import VLLM, CollectOptions, command_line
from whichwall.collect.packages import package_version, vllm_version
from whichwall.collect.progress import Reporter, reporting
from whichwall.collect.request import Request, default_writer, origin, resolve
from whichwall.collect.rung import Rung
from whichwall.collect.sampler import Sampler
from whichwall.collect.sweep_points import (
    COMPILED,
    TRACED,
    Planned,
    called,
    plan_points,
    points_to_trace,
    values_of,
)
from whichwall.collect.sweep_results import (
    find_unstable_points,
    point_row,
    points_done,
    steps_by_visit,
)
from whichwall.collect.traced import Traced, in_one_process, take_traces
from whichwall.collect.visits import Visitor, forget_compiled, give_back, room_to_compile
from whichwall.collect.workload import visits_of
from whichwall.collect.writing import Measured, Row, write_run
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.experiments import ATTENTION, LADDER
from whichwall.schemas.folder import RunWriter

GRAPH_TRACE_FILE = "graph.json"
S_PER_MIN = 60


def run(options: CollectOptions, writer: RunWriter | None) -> Path:
    """Collect every point of a sweep and write its run; `writer` is None where nothing says where.

    Raises:
        UsageError: an unknown model, a destination that exists, or a journal of something else.
        CollectError: the device or the disk is not up to it; a point alone never fails a sweep.
        KeyboardInterrupt: with what to do to go on, once a visit is in the journal.
    """
    request = resolve(options)
    writer = writer or default_writer(request)
    what = f"{request.source.name} on {request.device.name}"
    failing = explained(options, what, writer.out)
    with (
        reporting() as reporter,
        open_gpu(request.device.uuid),
        failing,
        journals.alone(writer.out),
    ):
        reporter.stage(f"building {request.source.name}")
        sweep = _prepare(request, writer.out)
        with journals.resumable(sweep.journal), explained(options, what, writer.out):
            path = _collect(sweep, writer, reporter)
        sweep.journal.remove()
        return path


@dataclass
class _Sweep:
    """One sweep under way."""

    request: Request
    planned: list[Planned]
    journal: Journal
    built: Built | None  # until every visit is done
    resumed: int | None  # visits that an earlier process had finished
    earlier_samples: list[Row] = field(default_factory=list)

    @property
    def mode(self) -> str:
        return self.request.options.mode

    @property
    def device(self) -> Device:
        return self.request.device


def _prepare(request: Request, out: Path) -> _Sweep:
    """Build the model, plan the points, and begin or take up the journal."""
    options, device = request.options, request.device
    # Backends are tried one after another, in a model that is built as it comes.
    attention = "auto" if options.mode == ATTENTION else options.attention
    built = build_for(options.engine, request.source, device, request.dtype, attention)
    planned = plan_points(options, device, built.facts, built.attention)
    expect(built, [one.point for one in planned if not one.refused])
    if any(one.point.engine in COMPILED and not one.refused for one in planned):
        room_to_compile(len(planned))
    header = Header(
        options=journals.kept(options),
        created_ns=request.created_ns,
        bench=_bench(request, built),
        points=[one.point.row(request.dtype) for one in planned],
    )
    if options.resume is None:
        return _Sweep(request, planned, journals.begin(out, header), built, None)
    journal = journals.resume(options.resume)
    journals.refuse_another(journal, header)
    return _Sweep(
        replace(request, created_ns=journal.header.created_ns),
        planned,
        journal,
        built,
        len(journal.visits),
        [row for one in journal.visits for row in one.samples],
    )


def _bench(request: Request, built: Built) -> Bench:
    environment = read_environment()
    return Bench(
        whichwall=__version__,
        torch=str(environment.torch),
        transformers=package_version("transformers"),
        vllm=vllm_version(),
        device=request.device.name,
        gpu_uuid=request.device.uuid,
        model=built.facts,
    )


def _collect(sweep: _Sweep, writer: RunWriter, reporter: Reporter) -> Path:
    """Visit, measure limits, trace, and write the run."""
    request, device = sweep.request, sweep.device
    assert sweep.built is not None
    facts = sweep.built.facts
    ceilings = CeilingLog(device)
    with Sampler(device.uuid, request.options.sample_interval_ms) as sampler:
        reporter.stage("starting nvidia-smi")
        sampler.start()
        _visit_all(sweep, sampler, reporter)
        with writer:
            reporter.stage("measuring limits")
            _measure_limits(ceilings, request, writer.folder)
            traces, failed = _take_traces(sweep, writer.folder, reporter)
            sampled = sampler.finish()
            gpu, visits = read_gpu(device), sweep.journal.visits
            measured = Measured(
                points=[point_row(one, visits, request.dtype) for one in sweep.planned],
                passes=[
                    *(row for one in visits for row in one.passes),
                    *(row for one in traces for row in one.passes),
                ],
                ceilings=ceilings.rows,
                samples=replace(sampled, rows=sweep.earlier_samples + sampled.rows),
                engine=next((one.engine for one in visits if one.engine is not None), None),
                traces=[one.trace for one in traces],
                gpu=gpu,
                environment=read_environment(),
                diagnostics=[
                    *find_sharing(device, gpu),
                    *find_unstable_points(sweep.mode, sweep.planned, visits),
                    *journals.find_resumed(sweep.resumed, len(visits)),
                    *failed,
                ],
            )
            reporter.stage("writing the run")
            return write_run(writer, origin(request, facts, _command(request)), measured)


def _visit_all(sweep: _Sweep, sampler: Sampler, reporter: Reporter) -> None:
    """Make every visit that is missing, note each in the journal, and free the model."""
    options, built = sweep.request.options, sweep.built
    assert built is not None
    replaying = sum(one.point.engine in NEEDS_GPU for one in sweep.planned if not one.refused)
    # A sweep with that many graphs is in one state from its first visit on.
    graphs = hold_graphs(sweep.device) if sweep.device.is_gpu and replaying >= FOURTH else []
    reporter.stage("visits")
    with closing(Rung(options)) as rung:
        away = {VLLM: rung.visit} if options.engine != VLLM else {}
        _make_visits(
            sweep, Visitor(sweep.device, built, visits_of(options), away), sampler, reporter
        )
    close(built)
    del built, graphs
    sweep.built = None
    forget_compiled()
    give_back(sweep.device)


def _make_visits(sweep: _Sweep, visitor: Visitor, sampler: Sampler, reporter: Reporter) -> None:
    """Make the visits in turn; one whose point has ended in an earlier round is left out."""
    options, journal = sweep.request.options, sweep.journal
    wanted = [
        (one.point, number)
        for one, number in in_turn(sweep.planned, max(visitor.plan.visits, options.repeat))
        if not journal.has(one.point.number, number)
    ]
    begin = time.monotonic()
    noted = 0
    for count, (point, number) in enumerate(wanted):
        if journal.has(point.number, number):
            continue
        left = (time.monotonic() - begin) / count * (len(wanted) - count) if count else None
        words = f"visit {count + 1} of {len(wanted)}: {called(sweep.mode, point)}"
        if point.engine == VLLM and not any(one.engine for one in journal.visits):
            words += f" ({how_it_starts(point.engine, sweep.device)})"
        reporter.part(words + _time_left(left), count, len(wanted))
        found = visitor.visit(point, number, reporter)
        samples = sampler.rows()
        journal.add(msgspec.structs.replace(found, samples=samples[noted:]))
        noted = len(samples)
        # An error that the device cannot recover from ends the sweep, not only the point.
        sweep.device.synchronize()


def in_turn(planned: Sequence[Planned], visits: int) -> Iterator[tuple[Planned, int]]:
    """Yield each point of each round with the round's number: odd rounds go backwards."""
    tried = [one for one in planned if one.refused is None]
    for number in range(visits):
        for one in reversed(tried) if number % 2 else tried:
            if number == 0 or not one.once:
                yield one, number


def _time_left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), S_PER_MIN)
    return f", {minutes} min {rest} s left" if minutes else f", {rest} s left"


def _measure_limits(ceilings: CeilingLog, request: Request, folder: Path) -> None:
    """Measure the limits in the order that keeps them honest: see `session`."""
    measure_streams_and_launches(ceilings, request.dtype)
    if request.device.is_gpu:
        replay = time_replay(ceilings, request.dtype)
        measure_node_idle(ceilings, request.dtype, replay, folder / GRAPH_TRACE_FILE)
    measure_matmul(ceilings, request.dtype)
    give_back(request.device)


def _take_traces(
    sweep: _Sweep, folder: Path, reporter: Reporter
) -> tuple[list[Traced], list[Diagnostic]]:
    """Trace the points that answer the mode's question; a trace that fails is no more than that."""
    taken, failed = [], []
    if sweep.mode not in TRACED:
        return [], []
    visits = sweep.journal.visits
    done = points_done(sweep.planned, visits)
    steps = {point.number: steps_by_visit(point, visits) for point in done}
    for group in in_one_process(points_to_trace(sweep.mode, done, steps)):
        names = ", ".join(called(sweep.mode, point) for point in group)
        reporter.stage(f"tracing {names} in a fresh process")
        for point, found in take_traces(sweep.request.options, group, folder):
            if isinstance(found, str):
                text = f"no trace of {called(sweep.mode, point)}: {found}"
                failed.append(Diagnostic("trace_failed", "warning", None, text))
            else:
                taken.append(found)
    return sorted(taken, key=lambda one: one.trace.point), failed


def _command(request: Request) -> str:
    options, device = request.options, request.device
    # The rungs of a ladder that are tried by themselves are not all that can be asked for.
    bare = options.mode == LADDER and options.values is None
    return command_line(
        options, request.source.name, device.kind, dtype_name(request.dtype),
        options.prompt_tokens, [] if bare else values_of(options, device),
    )  # fmt: skip
