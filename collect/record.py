"""Write what a session measured: the tables, the trace and the manifest."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from whichwall import __version__
from whichwall.collect.completeness import count_kernels, count_unrecorded
from whichwall.collect.kineto.trace import TraceFacts, read_trace
from whichwall.collect.options import DECODE, command_line
from whichwall.collect.sampler import Samples as Sampled
from whichwall.collect.spread import spread
from whichwall.schemas import passes
from whichwall.schemas.ceilings import Ceilings
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import (
    VERSION,
    EnergyFacts,
    Environment,
    Gpu,
    Manifest,
    ProfilerFacts,
    RankFacts,
)
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import Points
from whichwall.schemas.samples import Samples

if TYPE_CHECKING:
    from whichwall.collect.models import Built
    from whichwall.collect.passes import PassLog
    from whichwall.collect.profiler import TraceSession
    from whichwall.collect.request import Request

# Slowest over fastest tenth of the clean passes. Half as long again moves a share of launches
# of one half to two thirds: the verdict then depends on which pass one looks at.
UNSTABLE_RATIO = 1.5

COLLECTED = "collect"
# The one point of a run is 0; the pass that roles are checked by is kept apart from it.
ROLE_CHECK, ROLES_ONLY = 1, "recorded only to check roles by"
NS_PER_MS = 1e6


@dataclass(frozen=True)
class Measured:
    """What the stages of one point brought home."""

    point: dict[str, object]
    passes: "PassLog"
    ceilings: list[dict[str, object]]
    samples: Sampled
    energy: EnergyFacts | None
    trace: Path
    role_trace: Path | None
    session: "TraceSession"
    gpu: Gpu | None
    environment: Environment
    sharing: list[Diagnostic]


def write_run(writer: RunWriter, request: "Request", built: "Built", measured: Measured) -> Path:
    """Write the tables, import the trace, and finish the folder."""
    trace = read_trace(measured.trace, writer)
    measured.trace.unlink()
    points, role_check = [measured.point], None
    if measured.role_trace is not None:
        points.append({**measured.point, Points.point: ROLE_CHECK, Points.reason: ROLES_ONLY})
        checked = read_trace(measured.role_trace, writer, point=ROLE_CHECK)
        measured.role_trace.unlink()
        role_check = msgspec.structs.replace(checked.rank, source=COLLECTED)
    profiler = _check_trace(writer, measured.session)
    writer.write(Points, points)
    writer.write(Passes, measured.passes.rows)
    writer.write(Ceilings, measured.ceilings)
    if measured.samples.rows:
        writer.write(Samples, measured.samples.rows)
    manifest = _manifest(request, built, measured, trace, profiler)
    return writer.finish(msgspec.structs.replace(manifest, role_check=role_check))


def _check_trace(writer: RunWriter, session: "TraceSession") -> ProfilerFacts:
    """Count what the trace holds and lacks, from its own finished files."""
    kernels, launches = writer.table(Kernels), writer.table(Launches)
    kernels.close()
    launches.close()
    return session.facts(count_kernels(kernels.path), count_unrecorded(kernels.path, launches.path))


def _manifest(
    request: "Request",
    built: "Built",
    measured: Measured,
    trace: TraceFacts,
    profiler: ProfilerFacts,
) -> Manifest:
    options = request.options
    rank = msgspec.structs.replace(trace.rank, source=COLLECTED)
    return Manifest(
        schema_version=VERSION,
        id="",  # the writer gives both
        name="",
        created_ns=request.created_ns,
        tool_version=__version__,
        command=command_line(options, request.source.name, request.device.kind, measured.point),
        mode=options.mode,
        model=built.facts,
        weights=request.source.weights,
        ranks=[rank],
        gpus=[measured.gpu] if measured.gpu else [],
        environment=msgspec.structs.replace(measured.environment, cupti=trace.metadata.cupti),
        sampler=measured.samples.facts,
        energy=measured.energy,
        profiler=profiler,
        diagnostics=_diagnose(request, measured, trace, rank, profiler),
    )


def _diagnose(
    request: "Request",
    measured: Measured,
    trace: TraceFacts,
    rank: RankFacts,
    profiler: ProfilerFacts,
) -> list[Diagnostic]:
    found = [*measured.sharing, *measured.samples.diagnostics, *trace.diagnostics]
    if request.device.is_gpu and not profiler.kernels:
        text = (
            f"the profiler recorded {rank.events} events and no kernel: CUPTI is in use by another "
            "tool, or not allowed here; `whichwall doctor` tries it"
        )
        found.append(Diagnostic("no_gpu_activity", "error", None, text))
    phase = passes.DECODE if request.options.mode == DECODE else passes.PREFILL
    return found + find_unstable(measured.passes.walls(passes.CLEAN, phase), phase)


def find_unstable(walls_ns: Sequence[int], phase: str) -> list[Diagnostic]:
    """Return a warning if the clean passes of a phase differ too much to speak of one time."""
    clean = spread(walls_ns)
    if clean.ratio <= UNSTABLE_RATIO:
        return []
    low, middle, high = (t / NS_PER_MS for t in (clean.p10, clean.median, clean.p90))
    text = (
        f"clean {phase} passes took {low:.3g} to {high:.3g} ms (p10 to p90), "
        f"median {middle:.3g} ms; collect again on a quiet host"
    )
    return [Diagnostic("unstable_steps", "warning", clean.repeats, text)]
