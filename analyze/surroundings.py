"""Say in what two runs differ before any step: software, device, model, what was asked for."""

from collections.abc import Iterable, Sequence

from whichwall.schemas.comparison import Change, PointSide
from whichwall.schemas.manifest import Gpu, Manifest
from whichwall.schemas.model import Model

Fact = tuple[str, str | None]
# What was asked for, by its name in a point.
_ASKED = (
    ("engine", "engine"), ("attention", "attention"), ("type", "dtype"), ("batch", "batch"),
    ("context", "context_tokens"), ("prompt", "prompt_tokens"), ("new tokens", "new_tokens"),
)  # fmt: skip


def surroundings(
    a: Manifest, b: Manifest, a_points: Sequence[PointSide], b_points: Sequence[PointSide]
) -> tuple[list[Change], dict[str, str]]:
    """Return what differs, and what is the same on both sides."""
    both = list(zip(_facts(a, a_points), _facts(b, b_points), strict=True))
    return changed(both), {
        name: mine for (name, mine), (_, other) in both if mine and mine == other
    }


def changed(both: Iterable[tuple[Fact, Fact]]) -> list[Change]:
    """Return the facts that the sides do not agree in."""
    return [Change(name, mine, other) for (name, mine), (_, other) in both if mine != other]


def point_changes(a: PointSide, b: PointSide) -> list[Change]:
    """Return in what was asked for two points differ, beside their names."""
    return changed(zip(_asked([a]), _asked([b]), strict=True))


def _facts(manifest: Manifest, points: Sequence[PointSide]) -> list[Fact]:
    environment, sampler = manifest.environment, manifest.sampler
    return [
        ("mode", manifest.mode),
        *_model(manifest.model),
        ("weights", manifest.weights),
        *_asked(points),
        *_gpu(manifest.gpus),
        ("torch", environment.torch),
        ("transformers", environment.transformers),
        ("CUDA", environment.cuda_runtime),
        ("driver", environment.driver),
        ("Python", environment.python),
        ("CPU", environment.cpu),
        ("CPU cores", _text(environment.cpu_cores)),
        ("platform", environment.platform),
        ("sampled every", f"{sampler.interval_ms} ms" if sampler and sampler.interval_ms else None),
        ("whichwall", manifest.tool_version),
    ]


def _model(model: Model | None) -> list[Fact]:
    return [
        ("model", model.name if model else None),
        ("parameters", f"{model.parameters:,}" if model and model.parameters else None),
    ]


def _gpu(gpus: Sequence[Gpu]) -> list[Fact]:
    first = gpus[0] if gpus else None
    limit = first.power_limit_w if first else None
    return [
        ("GPU", first.name if first else None),
        ("GPUs", str(len(gpus)) if gpus else None),
        # The same kind of card may be another one.
        ("card", first.uuid if first else None),
        ("memory", f"{first.memory_bytes:,} bytes" if first and first.memory_bytes else None),
        ("multiprocessors", _text(first.multiprocessors) if first else None),
        ("power limit", f"{limit:,.0f} W" if limit else None),
        ("MIG", _switch(first.mig) if first else None),
    ]


def _asked(points: Sequence[PointSide]) -> list[Fact]:
    return [(name, _listed(getattr(one, fact) for one in points)) for name, fact in _ASKED]


def _listed(values: Iterable[object]) -> str | None:
    known = dict.fromkeys(value for value in values if value is not None)
    said = (f"{value:,}" if isinstance(value, int) else str(value) for value in known)
    return ", ".join(said) or None


def _switch(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"


def _text(value: object) -> str | None:
    return None if value is None else str(value)
