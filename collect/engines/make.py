"""Make what an engine's name stands for: the model as it takes it, and the decoder that runs it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from whichwall.collect.decoder import Decoder
from whichwall.collect.device import Device
from whichwall.collect.engines.compiled import DEFAULT, REDUCE_OVERHEAD, CompiledDecoder
from whichwall.collect.engines.cuda_graph import CudaGraphDecoder
from whichwall.collect.engines.static_cache import StaticCacheDecoder
from whichwall.collect.engines.vllm_decoder import VllmDecoder
from whichwall.collect.engines.vllm_model import VllmModel, build_vllm
from whichwall.collect.models import Built, Source, build, switched_attention
from whichwall.collect.options import (
    COMPILE,
    COMPILE_REDUCE_OVERHEAD,
    CUDA_GRAPH,
    EAGER,
    STATIC_CACHE,
    VLLM,
)
from whichwall.collect.point import Point
from whichwall.schemas.errors import CollectError
from whichwall.schemas.manifest import EngineFacts

_DECODERS: dict[str, Callable[[Any], Decoder]] = {
    EAGER: Decoder,
    STATIC_CACHE: StaticCacheDecoder,
    CUDA_GRAPH: CudaGraphDecoder,
    COMPILE: lambda model: CompiledDecoder(model, DEFAULT),
    COMPILE_REDUCE_OVERHEAD: lambda model: CompiledDecoder(model, REDUCE_OVERHEAD),
    VLLM: VllmDecoder,
}
# Both are about launches; on a CPU there are none.
NEEDS_GPU = (CUDA_GRAPH, COMPILE_REDUCE_OVERHEAD)


def make_decoder(engine: str, model: Any, device: Device) -> Decoder:
    """Return a decoder of a model; `make_ready` comes before its first pass.

    Raises:
        CollectError: an engine that replays CUDA graphs, without a GPU.
    """
    if engine in NEEDS_GPU and not device.is_gpu:
        raise CollectError(f"--engine {engine} needs a GPU; {EAGER} and {COMPILE} run on a CPU")
    return _DECODERS[engine](model)


def build_for(
    engine: str, source: Source, device: Device, dtype: torch.dtype, attention: str
) -> Built:
    """Build a model as an engine takes it: a module of torch, or what its own engine loads.

    Raises:
        CollectError: it cannot be built or loaded, or the engine is not installed.
    """
    if engine == VLLM:
        return build_vllm(source, device, dtype)
    return build(source, device, dtype, attention)


def expect(built: Built, points: Sequence[Point]) -> None:
    """Tell an engine that starts once what it is going to run; others need not know."""
    if isinstance(built.module, VllmModel):
        built.module.expect(points)


def close(built: Built) -> None:
    """Give back what an engine of its own holds; a module of torch ends with its last reference."""
    if isinstance(built.module, VllmModel):
        built.module.close()


def engine_facts(built: Built) -> EngineFacts | None:
    """Return what an engine of its own was given and chose."""
    return built.module.engine_facts if isinstance(built.module, VllmModel) else None


def attention_of(built: Built, point: Point) -> AbstractContextManager[None]:
    """Return a block in which the model uses a point's attention.

    Raises:
        CollectError: on entering it, the model does not have it.
    """
    if isinstance(built.module, VllmModel):
        return nullcontext()
    return switched_attention(built.module, point.attention)


def how_it_starts(engine: str, device: Device) -> str:
    """Return what to say while an engine is made ready: some take long."""
    if engine == VLLM:
        return f"starting {VLLM}" + (", about a minute" if device.is_gpu else "")
    return f"making {engine} ready"
