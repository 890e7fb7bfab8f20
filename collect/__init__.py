"""Make runs: workloads, timing, profiler, sampler, ceilings, importers. No polars here."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whichwall.collect.recorder import record

__all__ = ["record"]


def __getattr__(name: str) -> object:
    """Import `record` on first use, so that importing collect stays free of torch."""
    if name == "record":
        from whichwall.collect.recorder import record

        return record
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
