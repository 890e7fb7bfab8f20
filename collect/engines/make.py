"""Make the decoder that an engine's name stands for."""

from collections.abc import Callable
from typing import Any

from whichwall.collect.decoder import Decoder
from whichwall.collect.device import Device
from whichwall.collect.engines.compiled import DEFAULT, REDUCE_OVERHEAD, CompiledDecoder
from whichwall.collect.engines.cuda_graph import CudaGraphDecoder
from whichwall.collect.engines.static_cache import StaticCacheDecoder
from whichwall.collect.options import (
    COMPILE,
    COMPILE_REDUCE_OVERHEAD,
    CUDA_GRAPH,
    EAGER,
    STATIC_CACHE,
)
from whichwall.schemas.errors import CollectError

_DECODERS: dict[str, Callable[[Any], Decoder]] = {
    EAGER: Decoder,
    STATIC_CACHE: StaticCacheDecoder,
    CUDA_GRAPH: CudaGraphDecoder,
    COMPILE: lambda model: CompiledDecoder(model, DEFAULT),
    COMPILE_REDUCE_OVERHEAD: lambda model: CompiledDecoder(model, REDUCE_OVERHEAD),
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
