"""One run from device to folder: every stage of a point, in the one order that keeps it honest.

Sampler on, warm up, clean passes, limits of memory and launches, profiled passes, clean passes
again, idle time in a graph, limit of arithmetic, a pass to check roles by. The clean passes and
the cost of launches are timed in a process in which no profiler has run yet. The idle time takes
a second trace, and the matrix product heats the card, so these come late; the pass that checks
roles is slowed by its ranges, and nothing is timed any more.
"""

from pathlib import Path

import torch

from whichwall.collect.ceilings import CeilingLog, measure_matmul, measure_streams_and_launches
from whichwall.collect.decoder import Decoder
from whichwall.collect.device import Device
from whichwall.collect.energy import metered
from whichwall.collect.environment import find_sharing, read_environment, read_gpu
from whichwall.collect.failures import explained
from whichwall.collect.models import Built, build, forced_attention
from whichwall.collect.node_idle import measure_node_idle, time_replay
from whichwall.collect.nvml import open_gpu
from whichwall.collect.options import CollectOptions
from whichwall.collect.passes import PassLog
from whichwall.collect.profiler import TraceSession
from whichwall.collect.progress import Reporter, reporting
from whichwall.collect.record import Measured, write_run
from whichwall.collect.request import Request, default_writer, point_row, resolve
from whichwall.collect.role_check import record_roles
from whichwall.collect.sampler import Sampler
from whichwall.collect.workload import Plan, Workload, random_prompt
from whichwall.schemas import passes
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.points import Points

TRACE_FILE, GRAPH_TRACE_FILE, ROLE_TRACE_FILE = "trace.json", "graph.json", "roles.json"


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
        reporter.stage(f"building {source.name}")
        built = build(source, device, request.dtype, options.attention)
        point = point_row(request, built)
        measured = _measure(request, built, point, writer.folder / TRACE_FILE, reporter)
        reporter.stage("writing the run")
        return write_run(writer, request, built, measured)


def _measure(
    request: Request, built: Built, point: dict[str, object], trace: Path, reporter: Reporter
) -> Measured:
    """Run every stage under the sampler."""
    device, plan, options = request.device, request.plan, request.options
    log = PassLog(device, options.batch_size)
    length = int(str(point[Points.prompt_tokens]))
    prompt = random_prompt(options.batch_size, length, built.facts.vocab, device.torch)
    workload = Workload(Decoder(built.module), log, options.mode, prompt, options.new_tokens)
    ceilings = CeilingLog(device)
    # Gradients are off as in generation, which uses this rather than inference mode.
    with (
        torch.no_grad(),
        forced_attention(options.attention),
        Sampler(device.uuid, options.sample_interval_ms) as sampler,
    ):
        reporter.stage("starting nvidia-smi")
        sampler.start()
        reporter.stage("warming up")
        workload.repeat(passes.WARMUP, plan.warmup_s, 1, reporter)
        reporter.stage("clean passes")
        with metered(device.uuid) as meter:
            workload.repeat(passes.CLEAN, plan.clean_s, options.repeat, reporter)
        reporter.stage("measuring limits")
        measure_streams_and_launches(ceilings, request.dtype)
        replay = time_replay(ceilings, request.dtype) if device.is_gpu else None
        reporter.stage("profiled passes")
        session = _profile(workload, plan, device, trace)
        reporter.stage("clean passes again")
        workload.repeat(passes.AFTER, plan.after_s, 1, reporter)
        reporter.stage("measuring limits that come last")
        if replay is not None:
            graph_trace = trace.with_name(GRAPH_TRACE_FILE)
            measure_node_idle(ceilings, request.dtype, replay, graph_trace)
        measure_matmul(ceilings, request.dtype)
        sampled = sampler.finish()
        role_trace = None
        if options.check_roles:
            reporter.stage("recording what roles are right")
            role_trace = trace.with_name(ROLE_TRACE_FILE)
            record_roles(built.module, device, options.mode, prompt, options.new_tokens, role_trace)
    gpu = read_gpu(device)
    return Measured(
        point=point,
        passes=log,
        ceilings=ceilings.rows,
        samples=sampled,
        energy=meter.facts,
        trace=trace,
        role_trace=role_trace,
        session=session,
        gpu=gpu,
        environment=read_environment(),
        sharing=find_sharing(device, gpu),
    )


def _profile(workload: Workload, plan: Plan, device: Device, trace: Path) -> TraceSession:
    """Record the profiled passes into a file."""
    with TraceSession(device) as session:
        workload.warm_profiled(plan)
        session.start()
        workload.run_profiled(plan)
        session.stop()
    session.export(trace)
    return session
