"""What the numbers of a trace cannot be trusted for, as diagnostics."""

from collections.abc import Callable
from dataclasses import dataclass

from whichwall.analyze.completeness import Completeness
from whichwall.analyze.quantities import duration
from whichwall.schemas.diagnostics import Code, Diagnostic, Severity
from whichwall.schemas.experiments import MODES
from whichwall.schemas.manifest import RankFacts

Say = Callable[[Code, Severity, int | None, str], None]


@dataclass(frozen=True)
class Findings:
    """Facts found while analyzing, ready to be said."""

    mode: str
    ranks: list[RankFacts]
    activities: int
    void_rows: int
    overlapping: int
    external_ids_trusted: bool
    split_annotations: int
    complete: Completeness
    profiler_gaps_ns: list[int]
    below_floor: int  # kinds of step
    has_clean: bool
    is_served: bool  # the run measured a server from outside
    short_power_window: bool


def diagnose(found: Findings) -> list[Diagnostic]:
    """Return the diagnostics that these findings call for, in a fixed order."""
    said: list[Diagnostic] = []

    def say(code: Code, severity: Severity, count: int | None, message: str) -> None:
        said.append(Diagnostic(code, severity, count, message))

    _say_completeness(found, say)
    if found.void_rows:
        say(
            "invalid_gpu_rows", "warning", found.void_rows,
            "GPU rows that cannot be an activity (no time, negative, or far past the recording) "
            "are left out",
        )  # fmt: skip
    if found.overlapping:
        say(
            "overlapping_kernels", "info", found.overlapping,
            "activities start before an earlier one on their device has ended; busy time is the "
            "union",
        )  # fmt: skip
    if not found.external_ids_trusted:
        say(
            "untrusted_external_id", "info", None,
            "External ids repeat the correlation, so they name no operator: operators are found "
            "by containment of the launch",
        )  # fmt: skip
    if found.split_annotations:
        say(
            "split_steps", "info", found.split_annotations,
            "annotations hold several passes each: they are split where the kernels repeat",
        )  # fmt: skip
    if found.profiler_gaps_ns:
        say(
            "profiler_overhead", "warning", len(found.profiler_gaps_ns),
            f"gaps are the profiler's own work, {duration(sum(found.profiler_gaps_ns))} in all",
        )  # fmt: skip
    if any(rank.has_shapes is False for rank in found.ranks):
        say(
            "no_shapes",
            "info",
            None,
            "operators carry no input shapes: roles rest on names and order",
        )
    _say_timing(found, say)
    return said


def _say_timing(found: Findings, say: Say) -> None:
    if found.below_floor:
        say(
            "step_below_floor", "error", found.below_floor,
            "kinds of clean step are shorter than their bytes and FLOPs allow: their timing, or "
            "the size they are said to have, is wrong",
        )  # fmt: skip
    if found.activities and not found.has_clean:
        say(
            "no_clean_timing", "warning", None,
            "no clean step time: the profiler widens gaps, so idle time in the trace is too high; "
            "pass --clean-step-ms or collect a run",
        )  # fmt: skip
    if found.short_power_window:
        say(
            "power_not_measurable", "info", None,
            "the window is shorter than two seconds, and power is an average over one",
        )  # fmt: skip


def no_activity(found: Findings) -> str:
    """Return why there is no GPU activity."""
    if found.complete.lost:
        return "launches are on record, but the profiler lost all GPU records"
    if any(rank.source == "legacy" for rank in found.ranks):
        return "the old exporter's format holds no GPU rows"
    return "the trace holds no GPU activity"


def _say_completeness(found: Findings, say: Say) -> None:
    complete = found.complete
    # Most experiments take no trace, and a server rarely: there is none to miss.
    takes_one = found.mode not in MODES and not found.is_served
    if not found.activities and (found.ranks or takes_one):
        say("no_gpu_activity", "warning", None, no_activity(found))
    if complete.lost and complete.lost_at_end:
        say(
            "buffer_cap", "error", complete.lost,
            f"GPU records stop while launches go on: {complete.lost} of {complete.launches} "
            "launches lack one, as when the profiler's buffers are full: lost, not idle",
        )  # fmt: skip
    elif complete.lost:
        say(
            "gpu_records_lost", "error", complete.lost,
            f"{complete.lost} of {complete.launches} launches left no GPU record: lost, not idle",
        )  # fmt: skip
    if complete.unlinked:
        say(
            "unlinked_kernels", "warning", complete.unlinked,
            "GPU activities have no launch on record: causes of their gaps are unknown",
        )  # fmt: skip
    if complete.late_launches:
        say(
            "launch_after_kernel", "warning", complete.late_launches,
            "GPU activities start before their own launch: the clocks of host and GPU disagree",
        )  # fmt: skip
    if complete.underrecorded_replays:
        say(
            "graph_underrecorded", "warning", complete.underrecorded_replays,
            "graph replays hold far fewer kernels than the others: busy time is too low there",
        )  # fmt: skip
