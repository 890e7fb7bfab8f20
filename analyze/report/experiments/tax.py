"""Answer what watching costs: a step before, under and after the profiler, and under a sampler."""

from collections.abc import Collection

from altair.typing import ChartType

from whichwall.analyze.charts.bars import Scale, bars
from whichwall.analyze.quantities import NOT_KNOWN, duration, several, times
from whichwall.analyze.report.document import Block, Figure, Heading, Paragraph, Table, Text
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.experiments.words import not_timed, notes
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.chart import Bars
from whichwall.schemas.experiments import TAX, Cost, Observer, Process
from whichwall.schemas.run import frame

NONE_SEEN = "no difference that this data can show"


def answer(inputs: ReportInputs) -> str:
    """Say what a step takes under the profiler and after it, and with the sampler."""
    found = inputs.summary.observer
    if found is None:
        said = "Not known: no clean step was timed with the sampler off or on."
        return " ".join([said, *not_timed(inputs.sweep.iter_rows(named=True))])
    before = "what it takes before"
    return (
        f"Under the profiler a {found.phase} step takes {_said(found.profiled, before)}, after it "
        f"{_said(found.after, before)}; with the sampler of clocks and power on it takes "
        f"{_said(found.sampler, 'what it takes without')}."
    )


def _said(cost: Cost | None, beside: str) -> str:
    if cost is None:
        return f"a time that is {NOT_KNOWN}"
    seen = f" ({NONE_SEEN})" if cost.seen is False else ""
    return f"{times(cost.ratio)} {beside}{seen}"


def section(inputs: ReportInputs, figures: Collection[str]) -> list[Block]:
    """Return the step in each condition, and the ratios with their intervals."""
    found = inputs.summary.observer
    blocks: list[Block] = [Heading("What watching costs")]
    if found is None:
        return [*blocks, Paragraph(answer(inputs))]
    if TAX in figures:
        blocks.append(Figure(TAX, "Ratios of medians in the same process, 95 % interval."))
    blocks += [
        Table(
            head=(f"{found.phase} step", "median of processes", "lowest to highest", "processes"),
            rows=tuple(_side(side) for side in found.sides),
            align="lrrr",
        ),
        Table(
            head=("ratio", "median", "95 % interval", "processes", "says"),
            rows=tuple(_row(name, cost) for name, cost in costs(found)),
            align="lrrrl",
        ),
        Paragraph(
            "Each process is fresh: a profiler taxes the rest of the process it ran in. Ratios "
            "are between medians of one process; the interval is Student's over processes, on the "
            "logarithms of their ratios."
        ),
    ]
    return blocks + notes(inputs, "What a profiler of GPU work, and sampling one, cost needs one.")


def costs(found: Observer) -> list[tuple[str, Cost | None]]:
    """Return the three costs, named."""
    return [
        ("under the profiler, to before", found.profiled),
        ("after the profiler, to before", found.after),
        ("sampler on, to off", found.sampler),
    ]


def _side(side: Process) -> tuple[Text, ...]:
    spread = f"{duration(side.lowest_ns)} to {duration(side.highest_ns)}"
    return side.name, duration(side.median_ns), spread, str(side.processes)


def _row(name: str, cost: Cost | None) -> tuple[Text, ...]:
    if cost is None:
        return name, NOT_KNOWN, NOT_KNOWN, "0", "not measured"
    return name, times(cost.ratio), _interval(cost), str(cost.processes), _verdict(cost)


def _interval(cost: Cost) -> str:
    if cost.low is None or cost.high is None:
        return f"{NOT_KNOWN}: {several(cost.processes, 'process', 'processes')}"
    return f"{times(cost.low)} to {times(cost.high)}"


def _verdict(cost: Cost) -> str:
    if cost.seen is None:
        return "one process says nothing of the spread"
    if not cost.seen:
        return NONE_SEEN
    return "slower" if cost.ratio > 1 else "faster"


def charts(inputs: ReportInputs) -> dict[str, ChartType]:
    """Return a bar per ratio."""
    found = inputs.summary.observer
    known = [] if found is None else [(name, cost) for name, cost in costs(found) if cost]
    if not known:
        return {}
    rows: list[dict[str, object]] = [
        {
            Bars.name: name,
            Bars.group: TAX,
            Bars.value: cost.ratio,
            Bars.low: cost.low,
            Bars.high: cost.high,
            Bars.label: f"{times(cost.ratio)}{'' if cost.seen else f': {_verdict(cost)}'}",
        }
        for name, cost in known
    ]
    seen = [one for one in known if one[1].seen]
    title = "No cost that this data can show"
    if seen:
        name, most = max(seen, key=lambda one: one[1].ratio)
        title = f"{name.partition(',')[0]} the step takes {times(most.ratio)}"
        title = title[:1].upper() + title[1:]
    scale = Scale("times the step it is compared with", reach=1.2, line=1.0)
    subtitle = ["Thin line: 95 % interval over processes. Broken line: no cost."]
    return {TAX: bars(frame(Bars, rows), scale, title, subtitle)}


EXPERIMENT = Experiment(answer, section, charts)
