"""What a running vLLM says of itself: what it was given, and what it chose."""

from typing import Any

from whichwall.schemas.engines import VLLM
from whichwall.schemas.manifest import EngineFacts


def read_facts(engine: Any, given: dict[str, Any]) -> EngineFacts:
    """Return what an engine was given and what it chose; what a version does not tell is null.

    Args:
        engine: vLLM's own, started in this process.
        given: its arguments; no folder of theirs is kept.
    """
    import vllm

    config = engine.vllm_config
    scheduler, cache, compilation = (
        config.scheduler_config, config.cache_config, config.compilation_config
    )  # fmt: skip
    profiler = ", ".join(
        f"{name}={value}"
        for name, value in given["profiler_config"].items()
        if name != "torch_profiler_dir"
    )
    told = given | {"profiler_config": profiler}
    on_gpu = "gpu_memory_utilization" in given
    return EngineFacts(
        name=VLLM,
        version=str(vllm.__version__),
        given={name: str(value) for name, value in told.items()},
        longest_tokens=config.model_config.max_model_len,
        step_sequences=scheduler.max_num_seqs,
        step_tokens=scheduler.max_num_batched_tokens,
        cache_tokens=_cache_tokens(cache),
        cache_block_tokens=cache.block_size,
        memory_share=cache.gpu_memory_utilization if on_gpu else None,
        attention=_attention(engine),
        runner=_runner(config),
        compilation=getattr(compilation.mode, "name", None),
        graphs=getattr(compilation.cudagraph_mode, "name", None),
        graph_sizes=len(compilation.cudagraph_capture_sizes or ()),
        async_scheduling=bool(getattr(scheduler, "async_scheduling", False)),
        chunked_prefill=getattr(scheduler, "enable_chunked_prefill", None),
        prefix_caching=cache.enable_prefix_caching,
    )


def _cache_tokens(cache: Any) -> int | None:
    """Return what the cache holds; blocks alone do not say it where layers differ."""
    found = getattr(cache, "kv_cache_size_tokens", None)
    if found is None and cache.num_gpu_blocks is not None:
        found = cache.num_gpu_blocks * cache.block_size
    return found


def _runner(config: Any) -> str | None:
    second = getattr(config, "use_v2_model_runner", None)
    return None if second is None else "V2" if second else "V1"


def _attention(engine: Any) -> str | None:
    """Return the names of the backends that its layers use, where its runner tells them."""
    try:
        groups = engine.model_executor.driver_worker.worker.model_runner.attn_groups
        names = {group.backend.get_name() for groups_of_one in groups for group in groups_of_one}
    except (AttributeError, TypeError):
        return None
    return ", ".join(sorted(names)) or None
