"""Say what a step measured, traced and clean side by side."""

import polars as pl

from whichwall.analyze.groups import FROM_COMPLETIONS, FROM_PASSES
from whichwall.analyze.processes import ONE_POINT
from whichwall.analyze.quantities import (
    NOT_KNOWN,
    count,
    duration,
    percent,
    several,
    times,
    with_unit,
)
from whichwall.analyze.report.answer import ENOUGH, sentence
from whichwall.analyze.report.document import Block, Figure, Heading, Paragraph, Table, Text
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.subject import Subject
from whichwall.schemas.diagnostics import Code as DiagnosticCode
from whichwall.schemas.passes import CLEAN, Passes
from whichwall.schemas.summary import StepGroup, Summary
from whichwall.schemas.sweep import Sweep

NOTHING = "–"


def diagnostic(summary: Summary, code: DiagnosticCode) -> str | None:
    """Return the sentence of a diagnostic; null if the analysis has none of that code."""
    return next((d.message for d in summary.diagnostics if d.code == code), None)


def no_clean_reason(summary: Summary) -> str:
    """Say in a sentence why there is no clean time."""
    said = diagnostic(summary, "no_clean_timing") or (
        "the run holds no passes timed without the profiler, and no clean step was given"
    )
    return sentence(said)


def shares(inputs: ReportInputs, subject: Subject, figures: set[str]) -> list[Block]:
    """Return how the clean step divides, and the test that makes a verdict of it."""
    blocks: list[Block] = [Heading(f"Where the clean {_step(subject)} goes")]
    if "shares" in figures:
        blocks.append(Figure("shares", "Parts of the clean step; they add up to all of it."))
        test = (
            "The test: a wall is named when its part of the clean step is "
            f"{ENOUGH}; otherwise the answer is mixed. Launches are the time in which the GPU is "
            "idle, kernels the time it works beyond its floor, bytes or arithmetic the floor "
            "itself, named after the larger of its two totals."
        )
        blocks.append(Paragraph(test))
    else:
        blocks.append(Paragraph(f"{NOT_KNOWN.capitalize()}. {_no_shares(inputs.summary, subject)}"))
    return blocks


def _step(subject: Subject) -> str:
    return subject.step if subject.group else "step"


def _no_shares(summary: Summary, subject: Subject) -> str:
    if subject.device is None:
        return sentence(summary.verdict.reason or "the run holds no GPU activity")
    if subject.group is None:
        return "No steps were found in the trace, so there is no step to divide."
    if subject.group.clean_step_ns_median is None:
        return no_clean_reason(summary)
    return "There is no floor to compare the work with; see the section on the floor."


def measured(inputs: ReportInputs, subject: Subject, figures: set[str]) -> list[Block]:
    """Return the table of one step, the profiler's view beside the clean one."""
    group = subject.group
    heading = f"The {subject.step}, traced and clean" if group else "The recording"
    blocks: list[Block] = [Heading(heading)]
    if group is None:
        blocks.append(Paragraph(_no_steps(subject)))
    else:
        blocks += [
            Paragraph(_how(inputs, group)),
            Table(
                head=(f"median {subject.step}", "traced, under the profiler", "clean, without it"),
                rows=tuple(_rows(inputs.summary, group)),
                align="lrr",
            ),
        ]
    if "timeline" in figures:
        says = (
            "Host and GPU over time: above, height is the share of each stretch that is covered; "
            "below, a part of it activity by activity."
        )
        blocks.append(Figure("timeline", says))
    return blocks


def _no_steps(subject: Subject) -> str:
    if subject.device is None:
        return "No steps and no GPU activity are on record."
    device = subject.device
    return (
        "No steps were found, so the numbers are of the whole recording: "
        f"{duration(device.window_ns)} from the first GPU activity to the last, of which the GPU "
        f"is busy {duration(device.busy_ns)} ({percent(device.busy_fraction)})."
    )


def _how(inputs: ReportInputs, group: StepGroup) -> str:
    found = inputs.summary.steps.found_by
    said = f"{several(group.count, 'step')}, found by {found or 'means unknown'}. "
    if group.clean_step_ns_median is None:
        return f"{said}The clean step is {NOT_KNOWN}. {no_clean_reason(inputs.summary)}"
    passes = _clean_passes(inputs.passes, group)
    source = "one given by hand"
    if group.clean_from == FROM_COMPLETIONS:
        source = "the time per token (TPOT) of the requests of this run"
    if group.clean_from == FROM_PASSES and passes:
        source = f"the median of {several(passes, 'pass of this run', 'passes of this run')}"
    said += f"The clean step is {source}."
    if group.busy_ns_median is None:
        return said
    return (
        f"{said} The profiler lengthens the host's part of a step, so gaps and fractions of the "
        "trace are not those of the clean step; the work of the GPU is taken to be the same in "
        "both."
    )


def _clean_passes(passes: pl.DataFrame, group: StepGroup) -> int:
    return passes.filter(
        pl.col(Passes.point) == group.point,
        pl.col(Passes.stage) == CLEAN,
        pl.col(Passes.phase).eq_missing(pl.lit(group.phase, pl.String)),
    ).height


def _rows(summary: Summary, group: StepGroup) -> list[tuple[Text, Text, Text]]:
    clean = duration(group.clean_step_ns_median)
    if group.clean_step_ns_p10 is not None and group.clean_step_ns_p90 is not None:
        clean += (
            f" (p10 {duration(group.clean_step_ns_p10)}, p90 {duration(group.clean_step_ns_p90)})"
        )
    rows: list[tuple[Text, Text, Text]] = [("step", duration(group.window_ns_median), clean)]
    rows += _processes(summary, group)
    if group.busy_ns_median is not None:
        rows += _gpu_rows(group)
    rows.append(("throughput", NOTHING, with_unit(group.tokens_per_s, "tokens/s")))
    rows.append(("bytes achieved", NOTHING, with_unit(group.achieved_gbps, "GB/s")))
    rows.append(("arithmetic achieved", NOTHING, with_unit(group.achieved_tflops, "TFLOP/s")))
    rows.append(("step over its floor", NOTHING, times(group.times_floor)))
    waits = (("TTFT", summary.ttft_ns), ("TPOT", summary.tpot_ns))
    return rows + [(name, NOTHING, duration(ns)) for name, ns in waits if ns is not None]


def _processes(summary: Summary, group: StepGroup) -> list[tuple[Text, Text, Text]]:
    """Return the spread between processes, where the clean step was timed in several."""
    if summary.mode not in ONE_POINT:
        return []
    for row in summary.sweep:
        if (row[Sweep.point], row[Sweep.phase]) == (group.point, group.phase):
            number = row[Sweep.visits]
            lowest, highest = row[Sweep.visit_ns_lowest], row[Sweep.visit_ns_highest]
            if isinstance(number, int) and number > 1 and lowest and highest:
                spread = f"{duration(float(lowest))} to {duration(float(highest))}"
                return [(f"medians of {number} processes", NOTHING, spread)]
    return []


def _gpu_rows(group: StepGroup) -> list[tuple[Text, Text, Text]]:
    same = NOT_KNOWN if group.clean_step_ns_median is None else "the same"
    return [
        ("GPU busy", duration(group.busy_ns_median), same),
        ("busy fraction", percent(group.busy_fraction_traced), percent(group.busy_fraction_clean)),
        ("kernels", count(group.kernels_median), NOTHING),
        ("launch calls", count(group.launches_median), NOTHING),
        ("median kernel", duration(group.kernel_median_ns), NOTHING),
        ("median gap", duration(group.gap_median_ns), NOT_KNOWN),
    ]
