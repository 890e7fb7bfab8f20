"""One run from device to folder: every stage of a point, in the one order that keeps it honest.

Sampler on, warm up, clean passes, limits of memory and launches, the model's parts, profiled
passes, clean passes again, idle time in a graph, limit of arithmetic, passes to tell and to check
roles by. The clean passes, the cost of launches and the parts are timed in a process in which no
profiler has run yet. The idle time takes a second trace, and the matrix product heats the card, so
these come late; passes that tell or check roles are slowed by what they record, and nothing is
timed any more.
"""

import time
from dataclasses import replace
from pathlib import Path

import torch

from whichwall.collect.ceilings import CeilingLog, measure_matmul, measure_streams_and_launches
from whichwall.collect.device import Device, dtype_name
from whichwall.collect.energy import metered
from whichwall.collect.engines.make import (
    build_for,
    close,
    engine_facts,
    expect,
    how_it_starts,
    make_decoder,
)
from whichwall.collect.environment import find_sharing, read_environment, read_gpu
from whichwall.collect.failures import explained
from whichwall.collect.further import find_unstable_processes, with_further
from whichwall.collect.models import Built, forced_attention
from whichwall.collect.node_idle import measure_node_idle, time_replay
from whichwall.collect.nvml import open_gpu
from whichwall.collect.options import (
    CUDA_GRAPH,
    EAGER,
    STATIC_CACHE,
    CollectOptions,
    command_line,
)
from whichwall.collect.parts import FULL_S, IN_PARTS, QUICK_S, measure_parts
from whichwall.collect.point import Point
from whichwall.collect.progress import Reporter, reporting
from whichwall.collect.request import Request, default_writer, origin, resolve, single_point
from whichwall.collect.role_check import record_roles
from whichwall.collect.sampler import Sampler
from whichwall.collect.workload import Plan, Workload, random_prompt
from whichwall.collect.writing import Measured, Row, TakenTrace, write_run
from whichwall.schemas import passes
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.model import Model
from whichwall.schemas.points import Points

TRACE_FILE, GRAPH_TRACE_FILE = "trace.json", "graph.json"
ROLE_TRACE_FILE, REFERENCE_TRACE_FILE = "roles.json", "reference.json"

# What is recorded beside the measured point 0 stands at points of its own.
ROLE_CHECK, REFERENCE = 1, 2
ROLES_ONLY, REFERENCE_ONLY = "recorded only to check roles by", "recorded only to tell roles by"
# A replay names no operator; the same pass run kernel by kernel does.
TOLD_BY = {CUDA_GRAPH: STATIC_CACHE}
# The second pass tells whether roles repeat; more would say the same again.
REFERENCE_PLAN = Plan(0.0, 0.0, 0.0, profiled_decodes=2, profiled_prefills=2)


def run(options: CollectOptions, writer: RunWriter | None) -> Path:
    """Collect one point and write its run; `writer` is None where nothing says where to.

    Raises:
        UsageError: an unknown model, a prompt beyond its positions, a destination that exists.
        CollectError: the device, the memory or the disk is not up to it.
    """
    request = resolve(options)
    device, source = request.device, request.source
    writer = writer or default_writer(request)
    failing = explained(options, f"{source.name} on {device.name}", writer.out)
    # NVML stays open throughout, so that opening it again for a reading costs nothing.
    with writer, failing, reporting() as reporter, open_gpu(device.uuid):
        measured, model, point = _measure(request, writer.folder, reporter)
        measured = with_further(request, measured, writer.folder, reporter)
        phase = passes.DECODE if point.new_tokens > 1 else passes.PREFILL
        unstable = find_unstable_processes(measured.passes, phase)
        measured = replace(measured, diagnostics=[*unstable, *measured.diagnostics])
        reporter.stage("writing the run")
        name = dtype_name(request.dtype)
        command = command_line(options, source.name, device.kind, name, point.prompt_tokens)
        return write_run(writer, origin(request, model, command), measured)


def _measure(request: Request, folder: Path, reporter: Reporter) -> tuple[Measured, Model, Point]:
    """Build the model and run every stage under the sampler; nothing keeps the model after it."""
    device, plan, options = request.device, request.plan, request.options
    reporter.stage(f"building {request.source.name}")
    built = build_for(options.engine, request.source, device, request.dtype, options.attention)
    point = single_point(request, built)
    expect(built, [point])
    prompt = random_prompt(point.batch, point.prompt_tokens, built.facts.vocab, device.torch)
    decoder = make_decoder(point.engine, built.module, device)
    log = decoder.make_log(device, point.batch, visit=0 if options.repeat > 1 else None)
    workload = Workload(decoder, log, prompt, point.new_tokens)
    ceilings = CeilingLog(device)
    # Gradients are off as in generation, which uses this rather than inference mode.
    with (
        torch.no_grad(),
        forced_attention(options.attention),
        Sampler(device.uuid, options.sample_interval_ms) as sampler,
    ):
        reporter.stage("starting nvidia-smi")
        sampler.start()
        reporter.stage(how_it_starts(point.engine, device))
        setup_ns = _make_ready(workload, point, device)
        reporter.stage("warming up")
        workload.repeat(passes.WARMUP, plan.warmup_s, 1, reporter)
        reporter.stage("clean passes")
        with metered(device.uuid) as meter:
            workload.repeat(passes.CLEAN, plan.clean_s, 1, reporter)
        row = point.row(request.dtype, setup_ns=setup_ns, memory_bytes=device.most_allocated())
        reporter.stage("measuring limits")
        measure_streams_and_launches(ceilings, request.dtype)
        replay = time_replay(ceilings, request.dtype) if device.is_gpu else None
        reporter.stage("timing the parts")
        parts, untimed = _measure_parts(workload, point, request)
        reporter.stage("profiled passes")
        trace = profile(workload, plan, device, folder / TRACE_FILE)
        reporter.stage("clean passes again")
        workload.repeat(passes.AFTER, plan.after_s, 1, reporter)
        reporter.stage("measuring limits that come last")
        if replay is not None:
            measure_node_idle(ceilings, request.dtype, replay, folder / GRAPH_TRACE_FILE)
        measure_matmul(ceilings, request.dtype)
        sampled = sampler.finish()
        reporter.stage("recording what tells and checks roles")
        asides = _record_asides(request, built, point, prompt, folder)
    facts = engine_facts(built)
    close(built)
    gpu = read_gpu(device)
    measured = Measured(
        points=[row, *(_aside_row(row, number) for number in asides)],
        passes=log.rows,
        parts=parts,
        ceilings=ceilings.rows,
        samples=sampled,
        energy=meter.facts,
        engine=facts,
        traces=[trace],
        role_trace=asides.get(ROLE_CHECK),
        reference_trace=asides.get(REFERENCE),
        gpu=gpu,
        environment=read_environment(),
        diagnostics=[*find_sharing(device, gpu), *untimed],
    )
    return measured, built.facts, point


def _make_ready(workload: Workload, point: Point, device: Device) -> int:
    """Prepare the engine, and return how long it took."""
    device.synchronize()
    begin = time.perf_counter_ns()
    workload.decoder.make_ready(workload.prompt, point.new_tokens)
    device.synchronize()
    return time.perf_counter_ns() - begin


def _measure_parts(
    workload: Workload, point: Point, request: Request
) -> tuple[list[Row], list[Diagnostic]]:
    """Time the parts of the model where the engine runs them one by one."""
    if point.engine not in IN_PARTS:
        return [], []
    seconds = QUICK_S if request.options.quick else FULL_S
    return measure_parts(workload, request.device, seconds)


def profile(workload: Workload, plan: Plan, device: Device, path: Path) -> TakenTrace:
    """Record the profiled passes of a workload into a file."""
    with workload.decoder.trace_session(device) as session:
        workload.decoder.renew()
        workload.warm_profiled(plan)
        session.start()
        workload.run_profiled(plan)
        session.stop()
    session.export(path)
    return TakenTrace(path, session.facts(), workload.log.point)


def _record_asides(
    request: Request, built: Built, point: Point, prompt: torch.Tensor, folder: Path
) -> dict[int, TakenTrace]:
    """Record what is no measurement, each at a point of its own."""
    taken: dict[int, TakenTrace] = {}
    device = request.device
    if teller := TOLD_BY.get(point.engine):
        decoder = make_decoder(teller, built.module, device)
        decoder.make_ready(prompt, point.new_tokens)
        log = decoder.make_log(device, point.batch, point=REFERENCE)
        workload = Workload(decoder, log, prompt, point.new_tokens)
        path = folder / REFERENCE_TRACE_FILE
        taken[REFERENCE] = profile(workload, REFERENCE_PLAN, device, path)
    if request.options.check_roles:
        path = folder / ROLE_TRACE_FILE
        facts = record_roles(built.module, device, prompt, point.new_tokens, path)
        taken[ROLE_CHECK] = TakenTrace(path, facts, ROLE_CHECK)
    return taken


def _aside_row(row: Row, number: int) -> Row:
    """Return the row of a point that is no measurement: run kernel by kernel, and not timed."""
    engine = EAGER if number == ROLE_CHECK else TOLD_BY[str(row[Points.engine])]
    return {
        **row,
        Points.point: number,
        Points.engine: engine,
        Points.reason: ROLES_ONLY if number == ROLE_CHECK else REFERENCE_ONLY,
        Points.setup_ns: None,
        Points.memory_bytes: None,
    }
