"""What a run or an analysis has to confess: stable codes, severity, count and a sentence."""

from typing import Literal

import msgspec

Severity = Literal["info", "warning", "error"]

Code = Literal[
    "repaired_json", "dropped_events", "truncated", "nonfinite_numbers", "legacy_format",
    "integer_microseconds", "unknown_time_origin", "no_gpu_activity", "gpu_records_lost",
    "invalid_gpu_rows", "overlapping_kernels", "untrusted_external_id", "unlinked_kernels",
    "launch_after_kernel", "profiler_overhead", "graph_underrecorded", "buffer_cap",
    "missing_rank", "no_shapes", "no_clean_timing", "unstable_steps", "sampler_gap",
    "sampler_clock_step", "samples_missing", "power_not_measurable", "shared_gpu",
    "split_steps", "assumed_ceiling", "cached_weights",
    "dimensions_differ", "loop_ended_early", "part_not_timed", "sweep_resumed",
    "trace_failed", "step_below_floor",
    "requests_failed", "server_gone", "fields_refused", "prompt_is_text", "client_busy",
]  # fmt: skip


class Diagnostic(msgspec.Struct, frozen=True):
    """One thing that a reader of the numbers must know."""

    code: Code
    severity: Severity
    count: int | None
    message: str
