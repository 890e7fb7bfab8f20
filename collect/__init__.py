"""Make runs: workloads, timing, profiler, sampler, ceilings, importers. No polars here."""
