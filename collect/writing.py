"""Write what a session measured: the tables, the traces and the manifest."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from whichwall import __version__
from whichwall.collect.completeness import count_kernels, count_unrecorded
from whichwall.collect.kineto.trace import TraceFacts, read_trace
from whichwall.collect.sampler import Samples as Sampled
from whichwall.collect.spread import spread
from whichwall.schemas.ceilings import Ceilings
from whichwall.schemas.completions import Completions
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import (
    VERSION,
    EnergyFacts,
    EngineFacts,
    Environment,
    Gpu,
    Manifest,
    ProfilerFacts,
    RankFacts,
)
from whichwall.schemas.model import Model
from whichwall.schemas.parts import Parts
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import Points
from whichwall.schemas.requests import Requests
from whichwall.schemas.samples import Samples
from whichwall.schemas.tokens import Tokens

# Slowest over fastest tenth of the clean passes. Half as long again moves a share of launches
# of one half to two thirds: the verdict then depends on which pass one looks at.
UNSTABLE_RATIO = 1.5

COLLECTED = "collect"
NS_PER_MS = 1e6
NO_SAMPLES = Sampled([], None, [])

Row = dict[str, object]


@dataclass(frozen=True)
class Origin:
    """How a run came to be: what its manifest says before anything was measured."""

    mode: str
    command: str
    created_ns: int
    on_gpu: bool
    model: Model | None = None
    weights: str | None = None


@dataclass(frozen=True)
class TakenTrace:
    """A trace file that was just taken, the point it belongs to, and how it was taken."""

    path: Path
    profiler: ProfilerFacts
    point: int = 0


@dataclass(frozen=True)
class Measured:
    """What a session brought home; rows as their tables say."""

    points: list[Row]
    environment: Environment
    gpu: Gpu | None = None
    passes: list[Row] = field(default_factory=list)
    requests: list[Row] = field(default_factory=list)
    completions: list[Row] = field(default_factory=list)
    tokens: list[Row] = field(default_factory=list)
    parts: list[Row] = field(default_factory=list)
    ceilings: list[Row] = field(default_factory=list)
    samples: Sampled = NO_SAMPLES
    energy: EnergyFacts | None = None
    engine: EngineFacts | None = None
    traces: list[TakenTrace] = field(default_factory=list)
    role_trace: TakenTrace | None = None  # only to check roles by, at a point of its own
    reference_trace: TakenTrace | None = None  # tells roles of graph replays, likewise
    diagnostics: list[Diagnostic] = field(default_factory=list)
    rank: int | None = None  # of several: each then has files of its own


def write_run(writer: RunWriter, origin: Origin, measured: Measured) -> Path:
    """Write the tables, import the traces, and finish the folder."""
    return writer.finish(write_tables(writer, origin, measured))


def write_tables(writer: RunWriter, origin: Origin, measured: Measured) -> Manifest:
    """Write the tables, import the traces, and return the manifest to finish the folder with."""
    rank = measured.rank
    taken = [_import(writer, one, rank) for one in measured.traces]
    role_check = _aside(writer, measured.role_trace, rank)
    reference = _aside(writer, measured.reference_trace, rank)
    # After the last trace, since counting closes the tables.
    profiler = [_counted(writer, one, rank) for one in measured.traces]
    for table, rows in (
        (Points, measured.points),
        (Passes, measured.passes),
        (Requests, measured.requests),
        (Completions, measured.completions),
        (Tokens, measured.tokens),
        (Parts, measured.parts),
        (Ceilings, measured.ceilings),
        (Samples, measured.samples.rows),
    ):
        if rows:
            writer.write(table, rows, rank)
    first = taken[0] if taken else None
    return Manifest(
        schema_version=VERSION,
        id="",  # the writer gives both
        name="",
        created_ns=origin.created_ns,
        tool_version=__version__,
        command=origin.command,
        mode=origin.mode,
        model=origin.model,
        weights=origin.weights,
        ranks=[_collected(facts) for facts in taken],
        gpus=[measured.gpu] if measured.gpu else [],
        environment=msgspec.structs.replace(
            measured.environment, cupti=first.metadata.cupti if first else None
        ),
        sampler=measured.samples.facts,
        energy=measured.energy,
        engine=measured.engine,
        profiler=profiler[0] if profiler else None,
        role_check=role_check,
        reference=reference,
        diagnostics=[
            *measured.diagnostics,
            *measured.samples.diagnostics,
            *(said for facts in taken for said in facts.diagnostics),
            *_find_empty(taken, profiler, on_gpu=origin.on_gpu),
        ],
    )


def _import(writer: RunWriter, taken: TakenTrace, rank: int | None) -> TraceFacts:
    numbered = rank is not None
    facts = read_trace(taken.path, writer, rank=rank or 0, numbered=numbered, point=taken.point)
    taken.path.unlink()
    return facts


def _aside(writer: RunWriter, taken: TakenTrace | None, rank: int | None) -> RankFacts | None:
    """Import a trace that is no part of what was measured."""
    return None if taken is None else _collected(_import(writer, taken, rank))


def _collected(facts: TraceFacts) -> RankFacts:
    return msgspec.structs.replace(facts.rank, source=COLLECTED)


def _counted(writer: RunWriter, taken: TakenTrace, rank: int | None) -> ProfilerFacts:
    """Count what a trace holds and lacks, from the run's own finished files."""
    kernels, launches = writer.table(Kernels, rank), writer.table(Launches, rank)
    kernels.close()
    launches.close()
    return msgspec.structs.replace(
        taken.profiler,
        kernels=count_kernels(kernels.path, taken.point),
        launches_without_kernel=count_unrecorded(kernels.path, launches.path, taken.point),
    )


def _find_empty(
    taken: list[TraceFacts], profiler: list[ProfilerFacts], *, on_gpu: bool
) -> list[Diagnostic]:
    """Return an error for each trace of a GPU that holds no kernel."""
    text = (
        "the profiler recorded {} events and no kernel: CUPTI is in use by another tool, or not "
        "allowed here; `whichwall doctor` tries it"
    )
    return [
        Diagnostic("no_gpu_activity", "error", None, text.format(facts.rank.events))
        for facts, found in zip(taken, profiler, strict=True)
        if on_gpu and not found.kernels
    ]


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
