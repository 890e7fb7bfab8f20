"""Say which dimensions roles were read by, what each is from, and where a config is wrong."""

from collections.abc import Iterator
from dataclasses import replace

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

_HEADS = ("heads", "kv_heads", "head_dim", "value_dim")

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
    said = _as_stated(dims_of(calls, given), given)
    seen = dims_of(calls, None)
    found = [*_differences(said, seen), *_inner_differences(given, said, seen)]
    if _is_whole(roles):
        found += _plain_differences(given, said, seen)
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


def _as_stated(said: Dims, given: Model) -> Dims:
    """Return the dimensions with the heads of an unknown architecture as its config states them.

    Roles take them from the shapes. Key heads as many as queries' and a head size that fills
    the hidden width may be what a config is taken to mean that does not state them.
    """
    if not given.assumed:
        return said
    stated = given.kv_heads != given.heads
    sized = given.head_dim * given.heads != given.hidden
    return replace(
        said,
        kv_heads=max(given.kv_heads // said.shards, 1) if stated else None,
        head_dim=given.head_dim if sized else None,
    )


def _differences(said: Dims, seen: Dims) -> Iterator[str]:
    """Yield what config and shapes contradict each other in; `said` is one rank's part already."""
    for name in ("hidden", *_HEADS, "experts", "experts_per_token", "positions"):
        config, shapes = getattr(said, name), getattr(seen, name)
        if config is not None and shapes is not None and not _agree(name, said, seen):
            yield f"{name} {config}, shapes {shapes} ({_source(seen, name)})"
    if said.vocab and seen.vocab and not _same_vocab(said, seen.vocab):
        yield f"vocab {said.vocab}, shapes {seen.vocab} ({_source(seen, 'vocab')})"
    if said.latent and seen.latent and not said.latent & seen.latent:
        yield f"latent {sorted(said.latent)}, shapes {sorted(seen.latent)} (the trace)"


def _agree(name: str, said: Dims, seen: Dims) -> bool:
    config, shapes = getattr(said, name), getattr(seen, name)
    if config == shapes:
        return True
    if name in _HEADS and said.latent and not seen.latent:
        return True  # attention may work on the latent rows themselves, of no head's size
    if name == "kv_heads" and not seen.cached_keys:
        return bool(shapes == said.heads)  # attention may be called with keys repeated for queries
    return bool(name == "experts" and config == shapes * said.shards)  # whole ones on each rank


def _inner_differences(given: Model, said: Dims, seen: Dims) -> Iterator[str]:
    """Yield the widths inside the MLPs, or inside routed experts, if shapes show others alone."""
    if given.experts is None:
        if seen.inner and not said.inner & seen.inner:
            source = _source(seen, "inner")
            yield f"inner {sorted(said.inner)}, shapes {sorted(seen.inner)} ({source})"
        return
    # Ranks may share experts' widths, or each have whole experts.
    routed = {given.expert_intermediate} | said.expert_inner
    if seen.expert_inner and not routed & seen.expert_inner:
        yield (
            f"experts' inner {given.expert_intermediate}, shapes {sorted(seen.expert_inner)} "
            f"({_source(seen, 'experts')})"
        )


def _plain_differences(given: Model, said: Dims, seen: Dims) -> Iterator[str]:
    """Yield the widths of MLPs beside routed experts that a whole pass must show and does not.

    An unknown architecture may have none.
    """
    shown = seen.inner - seen.expert_inner
    if given.experts is None or given.assumed or not shown:
        return
    dense = given.intermediate if given.sparse_layers < given.layers else 0
    # As wide as heads together, an MLP is taken for attention.
    heads = {said.query_width, said.value_width, said.kv_width}
    # Ranks share what each layer has; an expert for every token may be whole on each of them.
    parts = {dense: {dense // said.shards}}
    parts[given.shared_width] = {given.shared_width, given.shared_width // said.shards}
    for width in sorted(parts.keys() - {0}):
        if not parts[width] & (seen.inner | heads):
            yield f"inner {width}, shapes {sorted(shown)} ({_source(seen, 'inner')})"


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


def _is_whole(roles: pl.DataFrame) -> bool:
    return set(roles[Roles.role].unique()) >= ENDS_OF_PASS


def _layer_difference(roles: pl.DataFrame, given: Model) -> list[str]:
    seen = _layers(roles)
    if seen is None or seen == given.layers or (seen < given.layers and not _is_whole(roles)):
        return []
    return [f"{given.layers} layers, the order of kernels shows {seen}"]
