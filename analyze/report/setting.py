"""Say what was run: model, device, engine, batch, prompt, software, and where the data is from."""

from datetime import UTC, datetime

import polars as pl

from whichwall.analyze.dimensions import FROM_SHAPES
from whichwall.analyze.quantities import NOT_KNOWN, amount_of_bytes, count
from whichwall.analyze.report.document import Block, Code, Heading, Table, Text
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.subject import Subject
from whichwall.schemas.manifest import Environment, Gpu, Manifest
from whichwall.schemas.model import Model
from whichwall.schemas.points import DONE, Points
from whichwall.schemas.summary import Summary


def setting(inputs: ReportInputs, subject: Subject) -> list[Block]:
    """Return the table of what was run."""
    manifest = inputs.manifest
    rows: list[tuple[Text, Text]] = [
        ("model", _model(inputs.summary.model or manifest.model, manifest)),
        *_dimensions(inputs.summary),
        *_server(manifest),
        ("GPU", _gpus(manifest.gpus)),
        *_point(inputs, subject),
        ("mode", Code(manifest.mode)),
        ("command", Code(manifest.command) if manifest.command else NOT_KNOWN),
        ("software", _software(manifest.environment)),
        ("host", _host(manifest.environment)),
        ("trace", _trace(manifest)),
        ("steps", _steps(inputs)),
        ("taken", datetime.fromtimestamp(manifest.created_ns / 1e9, UTC).strftime(
            "%Y-%m-%d %H:%M UTC")),
    ]  # fmt: skip
    return [Heading("What was run"), Table(head=("what", "value"), rows=tuple(rows), align="ll")]


def _model(model: Model | None, manifest: Manifest) -> Text:
    if model is None and not manifest.ranks:
        return "none on record"
    if model is None:
        return f"{NOT_KNOWN}: the run names no model and its shapes do not give one away"
    said = [
        f"{model.layers} layers, hidden {model.hidden:,}, {model.heads} heads "
        f"({model.kv_heads} of keys and values), vocabulary {model.vocab:,}"
    ]
    if model.experts:
        said.append(f"{model.experts} experts, {model.experts_per_token} a token")
    if model.parameters:
        said.append(f"{count(model.parameters)} parameters")
    if model.weight_bytes:
        said.append(f"{amount_of_bytes(model.weight_bytes)} of weights")
    if manifest.weights:
        said.append(f"{manifest.weights} weights")
    return (Code(model.name), ": ", "; ".join(said))


def _dimensions(summary: Summary) -> list[tuple[Text, Text]]:
    """Return what dimensions were read from, where no config gave them, and the reference."""
    rows: list[tuple[Text, Text]] = []
    dims = summary.dimensions
    if dims is not None and dims.source == FROM_SHAPES:
        read = "; ".join(f"{names} from {source}" for names, source in dims.inferred_from.items())
        rows.append(("dimensions", f"read from the trace's own shapes: {read}"))
    if summary.reference is not None:
        rows.append(("reference", ("roles of graph replays by ", Code(summary.reference))))
    return rows


def _server(manifest: Manifest) -> list[tuple[Text, Text]]:
    """Return where the server was that was measured, and what it says of itself."""
    found = manifest.server
    if found is None:
        return []
    said = [f"serves {found.model}"]
    if found.made_by or found.version:
        said.append(" ".join(("by", found.made_by or "an unnamed maker", found.version or "")))
    if found.longest_tokens is not None:
        said.append(f"takes {found.longest_tokens:,} tokens")
    said.append("asked with token ids" if found.prompts == "ids" else "asked with text")
    where = "on this machine" if found.is_here else "on another machine"
    return [("server", (Code(found.url), f", {where}: {', '.join(s.strip() for s in said)}"))]


def _gpus(gpus: list[Gpu]) -> Text:
    if not gpus:
        return "none on record"
    first = gpus[0]
    said = [first.name if len(gpus) == 1 else f"{len(gpus)} × {first.name}"]
    if first.memory_bytes:
        said.append(f"{amount_of_bytes(first.memory_bytes)} of memory")
    if first.multiprocessors:
        said.append(f"{first.multiprocessors} multiprocessors")
    if first.power_limit_w:
        said.append(f"power limit {first.power_limit_w:,.0f} W")
    if first.mig:
        said.append("a MIG slice")
    return ", ".join(said)


def _point(inputs: ReportInputs, subject: Subject) -> list[tuple[Text, Text]]:
    if inputs.points.height > 1:
        return _points(inputs.points)
    number = subject.group.point if subject.group else 0
    rows = inputs.points.filter(pl.col(Points.point) == number)
    if rows.is_empty():
        return []
    point = rows.row(0, named=True)
    shown: list[tuple[Text, Text]] = []
    engine = [point[Points.engine], point[Points.attention], point[Points.dtype]]
    names = ("engine", "attention", "type")
    known = [
        f"{name} {value}" for name, value in zip(names, engine, strict=True) if value is not None
    ]
    shown.append(("engine", ", ".join(known) if known else NOT_KNOWN))
    sizes = (
        ("batch", Points.batch, ""),
        ("prompt", Points.prompt_tokens, " tokens"),
        ("context", Points.context_tokens, " tokens"),
        ("new tokens", Points.new_tokens, ""),
    )
    load = [f"{name} {point[c]:,}{unit}" for name, c, unit in sizes if point[c] is not None]
    shown.append(("load", ", ".join(load) if load else NOT_KNOWN))
    if point[Points.outcome] != DONE:
        shown.append(("outcome", f"{point[Points.outcome]}: {point[Points.reason] or NOT_KNOWN}"))
    return shown


def _points(points: pl.DataFrame) -> list[tuple[Text, Text]]:
    """Return what the points of a sweep have in common, and in what they differ."""
    columns = (
        ("engine", Points.engine), ("attention", Points.attention), ("type", Points.dtype),
        ("batch", Points.batch), ("prompt", Points.prompt_tokens),
        ("context", Points.context_tokens), ("new tokens", Points.new_tokens),
    )  # fmt: skip
    said = []
    for name, column in columns:
        values = points[column].drop_nulls().unique(maintain_order=True).to_list()
        if values:
            shown = (f"{value:,}" if isinstance(value, int) else str(value) for value in values)
            said.append(f"{name} {', '.join(shown)}")
    done = points.filter(pl.col(Points.outcome) == DONE).height
    return [("points", f"{points.height}, of which {done} done"), ("load", "; ".join(said))]


def _software(environment: Environment) -> str:
    named = (
        ("torch", environment.torch),
        ("transformers", environment.transformers),
        ("CUDA", environment.cuda_runtime),
        ("driver", environment.driver),
        ("Python", environment.python),
    )
    return ", ".join(f"{name} {value}" for name, value in named if value) or NOT_KNOWN


def _host(environment: Environment) -> str:
    cores = f"{environment.cpu_cores} cores" if environment.cpu_cores else None
    known = [part for part in (environment.cpu, cores, environment.platform) if part]
    return ", ".join(known) or NOT_KNOWN


def _trace(manifest: Manifest) -> str:
    if not manifest.ranks:
        return "none"
    events = sum(rank.events for rank in manifest.ranks)
    sources = sorted({rank.source for rank in manifest.ranks})
    said = f"{count(events)} events from {', '.join(sources)}"
    for noun, number in (
        ("rank", len({rank.rank for rank in manifest.ranks})),
        ("point", len({rank.point for rank in manifest.ranks})),
    ):
        if number > 1:
            said += f", {number} {noun}s"
    return said


def _steps(inputs: ReportInputs) -> str:
    steps = inputs.summary.steps
    if not inputs.manifest.ranks:
        return "none traced"
    if steps.found_by is None:
        return "none found: numbers are of the whole recording"
    phases = ", ".join(f"{number} {phase}" for phase, number in steps.phase.items())
    phases = phases or f"{steps.groups[0].count} that are neither called prefill nor decode"
    return f"{phases}, found by {steps.found_by}"
