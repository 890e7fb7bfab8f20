"""Say which dimensions roles were read by, what each is from, and where a config is wrong."""

from collections.abc import Iterator

import polars as pl

from whichwall.analyze.roles.dims import Dims
from whichwall.analyze.roles.looks import dims_of
from whichwall.analyze.roles.matmuls import HEAD_PADDING
from whichwall.schemas.activities import Activities
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.model import Model
from whichwall.schemas.ops import Ops
from whichwall.schemas.roles import EMBEDDING, LM_HEAD, Roles
from whichwall.schemas.summary import Dimensions

FROM_CONFIG, FROM_SHAPES = "config", "shapes"

# Fewer layers than the config's mean nothing in a recording that does not hold a whole pass.
ENDS_OF_PASS = frozenset({EMBEDDING, LM_HEAD})


def dimensions(calls: pl.DataFrame, roles: pl.DataFrame, given: Model | None) -> Dimensions | None:
    """Return the dimensions that roles were read by; None where neither model nor shapes tell.

    Args:
        calls: what was called, as `calls_of` returns it.
        roles: rows of `Roles`, from whose order layers are counted.
        given: the model of a config, if there was one.
    """
    dims = dims_of(calls, given)
    if dims.hidden is None:
        return None
    return Dimensions(
        source=FROM_SHAPES if given is None else FROM_CONFIG,
        hidden=dims.hidden,
        vocab=dims.vocab,
        layers=given.layers if given else _layers(roles),
        heads=dims.heads,
        kv_heads=dims.kv_heads,
        head_dim=dims.head_dim,
        value_dim=dims.value_dim,
        inner=sorted(dims.inner),
        experts=dims.experts,
        experts_per_token=dims.experts_per_token,
        latent=sorted(dims.latent),
        shards=dims.shards,
        inferred_from=dict(dims.inferred_from),
    )


def contradictions(
    calls: pl.DataFrame, roles: pl.DataFrame, given: Model | None
) -> list[Diagnostic]:
    """Return a diagnostic where shapes show other dimensions than the config; the config wins."""
    if given is None:
        return []
    found = list(_differences(dims_of(calls, given), dims_of(calls, None)))
    found += _layer_difference(roles, given)
    if not found:
        return []
    return [
        Diagnostic(
            "dimensions_differ", "warning", len(found),
            f"the config says {'; '.join(found)}: roles and floors go by the config",
        )
    ]  # fmt: skip


def calls_of(activities: pl.DataFrame, ops: pl.DataFrame) -> pl.DataFrame:
    """Return what was called on the GPU, or without one on the CPU, as looks want it."""
    if activities.height:
        return activities
    return ops.select(
        pl.lit("").alias(Activities.name),
        pl.col(Ops.name).alias(Activities.op_name),
        pl.col(Ops.input_dims).alias(Activities.op_dims),
        pl.col(Ops.input_types).alias(Activities.op_types),
    )


def _differences(said: Dims, seen: Dims) -> Iterator[str]:
    """Yield what config and shapes contradict each other in; `said` is one rank's part already."""
    for name in ("hidden", "heads", "kv_heads", "head_dim", "experts"):
        config, shapes = getattr(said, name), getattr(seen, name)
        # Keys repeated for their queries are as many as these.
        repeated = name == "kv_heads" and shapes == said.heads
        if config is not None and shapes is not None and config != shapes and not repeated:
            yield f"{name} {config}, shapes {shapes} ({_source(seen, name)})"
    if said.vocab and seen.vocab and not _same_vocab(said, seen.vocab):
        yield f"vocab {said.vocab}, shapes {seen.vocab} ({_source(seen, 'vocab')})"
    halves = {width // 2 for width in seen.inner}
    if said.inner and seen.inner and not said.inner & (seen.inner | halves):
        yield f"inner {sorted(said.inner)}, shapes {sorted(seen.inner)} ({_source(seen, 'inner')})"


def _same_vocab(said: Dims, seen: int) -> bool:
    """Allow for padding to a round number, for one rank's part, and for a table of positions."""
    if said.vocab is None or seen == said.positions:
        return True
    return any(v <= seen < v + HEAD_PADDING for v in (said.vocab, said.vocab // said.shards))


def _source(seen: Dims, name: str) -> str:
    return next((text for names, text in seen.inferred_from.items() if name in names.split(", ")),
                "the trace")  # fmt: skip


def _layers(roles: pl.DataFrame) -> int | None:
    last = roles[Roles.layer].max()
    return last + 1 if isinstance(last, int) else None


def _layer_difference(roles: pl.DataFrame, given: Model) -> list[str]:
    seen = _layers(roles)
    whole = set(roles[Roles.role].unique()) >= ENDS_OF_PASS
    if seen is None or seen == given.layers or (seen < given.layers and not whole):
        return []
    return [f"{given.layers} layers, the order of kernels shows {seen}"]
