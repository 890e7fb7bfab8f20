"""Draw the charts of a report from its inputs: only those that have data, in order."""

import polars as pl
from altair.typing import ChartType

from whichwall.analyze import clocks as clock_readings
from whichwall.analyze.busy_bins import Window
from whichwall.analyze.charts.clocks import clocks
from whichwall.analyze.charts.gaps import gaps
from whichwall.analyze.charts.layers import layers
from whichwall.analyze.charts.phases import phases
from whichwall.analyze.charts.roles import roles
from whichwall.analyze.charts.shares import shares
from whichwall.analyze.charts.timeline import timeline
from whichwall.analyze.gap_lengths import gap_lengths, median_gap_us
from whichwall.analyze.layer_times import layer_times
from whichwall.analyze.phase_shares import phase_shares
from whichwall.analyze.quantities import count, duration, percent, several, whole_percent, with_unit
from whichwall.analyze.report.conditions import slowdowns, spoken
from whichwall.analyze.report.experiments.clocks import verdict
from whichwall.analyze.report.experiments.modes import experiment_of
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.subject import Subject, subject
from whichwall.analyze.report.wall_figures import (
    binding_figure,
    roofline_figure,
    waterfall_figure,
)
from whichwall.analyze.report.work import totals
from whichwall.analyze.role_times import role_times
from whichwall.analyze.sampled import CLEAN_STAGE
from whichwall.analyze.step_shares import known_shares, step_shares
from whichwall.analyze.timeline import median_step
from whichwall.analyze.timeline import timeline as reduced
from whichwall.analyze.walls import ARITHMETIC, BYTES, KERNELS, LAUNCHES
from whichwall.schemas.activities import Activities
from whichwall.schemas.chart import GapLengths, LayerTimes
from whichwall.schemas.steps import Steps
from whichwall.schemas.summary import SampleWindow

# One layer has nothing to be compared with.
FEWEST_LAYERS = 2

# A GPU that works for less than this share of a step is said to be idle for the rest.
MOSTLY_IDLE = 0.5

_TAKEN_BY = {
    LAUNCHES: "the GPU idle, waiting for launches",
    KERNELS: "kernels running above their floor",
    BYTES: "the floor of moving its bytes",
    ARITHMETIC: "the floor of doing its arithmetic",
}


def charts(inputs: ReportInputs) -> dict[str, ChartType]:
    """Return the charts by name, in the order in which a report shows them; without data, none."""
    chosen = subject(inputs)
    experiment = experiment_of(inputs)
    floor = inputs.summary.floors
    drawn = {
        **(experiment.charts(inputs) if experiment else {}),
        "shares": _shares(chosen),
        "waterfall": waterfall_figure(inputs, chosen),
        "timeline": _timeline(inputs, chosen),
        "roles": _roles(inputs, chosen),
        "layers": _layers(inputs, chosen),
        "phases": _phases(inputs),
        "gaps": _gaps(chosen),
        "clocks": _clocks(inputs),
        "roofline": roofline_figure(chosen, floor),
        "binding": binding_figure(inputs, chosen, floor),
    }
    return {name: chart for name, chart in drawn.items() if chart is not None}


def _shares(chosen: Subject) -> ChartType | None:
    group = chosen.group
    if group is None or group.shares is None or not group.clean_step_ns_median:
        return None
    parts = known_shares(group.shares)
    wall = max(parts, key=lambda name: parts[name])
    title = f"{whole_percent(parts[wall])} of the clean {chosen.step} is {_TAKEN_BY[wall]}"
    subtitle = f"{duration(group.clean_step_ns_median)} per step, timed without the profiler."
    return shares(step_shares(group.shares, group.clean_step_ns_median), title, [subtitle])


def _timeline(inputs: ReportInputs, chosen: Subject) -> ChartType | None:
    row = median_step(chosen.steps)
    window = _step_window(row) if row else _recording(inputs, chosen)
    if window is None:
        return None
    data = reduced(
        window, inputs.activities, inputs.roles, inputs.gaps, inputs.ops, inputs.launches
    )
    if data is None:
        return None
    busy = row[Steps.busy_ns] if row else (chosen.device.busy_ns if chosen.device else None)
    title, subtitle = _timeline_words(chosen, row, window, busy)
    if data.streams_left_out:
        subtitle += f" Streams with less work, not shown: {data.streams_left_out}."
    return timeline(data, chosen.whole, title, [subtitle])


def _timeline_words(
    chosen: Subject, row: dict[str, int] | None, window: Window, busy: int | None
) -> tuple[str, str]:
    what = f"{duration(window.span_ns)} {chosen.step}"
    if busy is None:
        title = f"One {what}"
    elif busy < MOSTLY_IDLE * window.span_ns:
        title = f"The GPU works {duration(busy)} of this {what} and is idle for the rest"
    else:
        title = f"The GPU works {duration(busy)} of this {what}"
    if row is None:
        return title, "The whole recording, as no steps were found."
    subtitle = "The only step, as traced"
    if chosen.steps.height > 1:
        subtitle = f"Step {row[Steps.step]}, the median one of {chosen.steps.height}, as traced"
    clean = chosen.group.clean_step_ns_median if chosen.group else None
    if clean is not None:
        return title, f"{subtitle}; without the profiler a step takes {duration(clean)}."
    return title, f"{subtitle}."


def _step_window(row: dict[str, int]) -> Window:
    start = row[Steps.start_ns]
    return Window(
        point=row[Steps.point],
        rank=row[Steps.rank],
        device=row[Steps.device],
        start_ns=start,
        end_ns=start + row[Steps.window_ns],
    )


def _recording(inputs: ReportInputs, chosen: Subject) -> Window | None:
    mine = inputs.activities.filter(chosen.work.to_series())
    if mine.is_empty():
        return None
    first = mine.row(0, named=True)
    ends = mine.select(pl.col(Activities.start_ns).min(), pl.col(Activities.end_ns).max())
    start, end = ends.row(0)
    return Window(
        first[Activities.point], first[Activities.rank], first[Activities.device], start, end
    )


def _roles(inputs: ReportInputs, chosen: Subject) -> ChartType | None:
    found = totals(inputs, chosen)
    if not found.rows:
        return None
    times = role_times(found.rows, found.divisor)
    whose = "the GPU's working time" if found.on_gpu else "the operators' time on the CPU"
    whole = sum(total.busy_ns for total in found.rows) / found.divisor
    per = "µs" if found.steps is None else "µs per step"
    if found.steps is None:
        subtitle = f"{duration(whole)} in the whole recording."
    elif found.steps == 1:
        subtitle = f"{duration(whole)} in the only step."
    else:
        subtitle = f"{duration(whole)} per step, mean of {found.steps} steps."
    return roles(times, whose, per, [subtitle])


def _layers(inputs: ReportInputs, chosen: Subject) -> ChartType | None:
    mine = chosen.work.to_series()
    times = layer_times(inputs.activities, inputs.roles, mine, chosen.count)
    if times.get_column(LayerTimes.layer).n_unique() < FEWEST_LAYERS:
        return None
    if chosen.group is None:
        return layers(times, "µs", ["GPU time by layer and role in the whole recording."])
    subtitle = f"GPU time by layer and role, mean of {several(chosen.count, 'traced step')}."
    return layers(times, "µs per step", [subtitle])


def _phases(inputs: ReportInputs) -> ChartType | None:
    shares = phase_shares(inputs.summary.steps.groups)
    if shares.is_empty():
        return None
    return phases(shares, ["Each bar is a share of its own phase's GPU time, as traced."])


def _gaps(chosen: Subject) -> ChartType | None:
    lengths = gap_lengths(chosen.gaps)
    if lengths.is_empty():
        return None
    whole = lengths.select(pl.col(GapLengths.total_ns).sum()).item() / chosen.count
    number = chosen.gaps.height / chosen.count
    subtitle = (
        f"As traced: {duration(whole)} idle {chosen.per} in {count(round(number))} gaps; "
        "the bars add up to 100 %."
    )
    return gaps(lengths, median_gap_us(chosen.gaps), [subtitle])


def _clocks(inputs: ReportInputs) -> ChartType | None:
    window = inputs.summary.samples
    samples = clock_readings.one_gpu(inputs.samples, window.gpu_uuid if window else None)
    if samples.is_empty():
        return None
    origin = clock_readings.origin_ns(samples, inputs.passes)
    readings = clock_readings.readings(samples, origin)
    bands = clock_readings.stage_bands(inputs.passes, origin)
    subtitle = "Red: the driver says that it holds the clock down."
    changed = inputs.summary.clocks
    title = verdict(inputs, changed) if changed else _clocks_title(window)
    return clocks(readings, bands, title, [subtitle])


def _clocks_title(window: SampleWindow | None) -> str:
    if window is None:
        return "Clocks and power over the run"
    where = "clean stage" if window.window == CLEAN_STAGE else "trace"
    clock = with_unit(window.sm_clock_mhz_median, "MHz")
    title = f"Medians of the {where}: SM clock {clock}, {with_unit(window.power_w_median, 'W')}"
    for reason, share in slowdowns(window).items():
        return f"{title}; {spoken(reason)} in {percent(share)} of samples"
    return title
