"""Answer what this device can reach at most: memory, arithmetic, launches; burst and sustained."""

from collections.abc import Collection

from altair.typing import ChartType

from whichwall.analyze.charts.bars import Scale, bars
from whichwall.analyze.floor import plain_dtype
from whichwall.analyze.quantities import NOT_KNOWN, percent, significant, whole_percent, with_unit
from whichwall.analyze.reached import SUSTAINED
from whichwall.analyze.report.document import Block, Code, Figure, Heading, Paragraph, Table, Text
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas import ceilings as names
from whichwall.schemas.chart import Bars
from whichwall.schemas.experiments import CEILINGS, Reached
from whichwall.schemas.points import Points
from whichwall.schemas.run import frame

SPOKEN = {
    names.READ: "reads memory at",
    names.COPY: "copies memory at",
    names.MATMUL: "multiplies matrices at",
}
LAUNCHING = {
    names.EAGER_OP: "an eager operation",
    names.BARE_LAUNCH: "a bare launch",
    names.GRAPH_NODE: "a node of a graph",
    names.ROUND_TRIP: "a round trip to the GPU",
}


def answer(inputs: ReportInputs) -> str:
    """Say the memory and matmul rates, of the datasheet and sustained, and what a launch costs."""
    found = inputs.summary.ceilings
    if not found:
        return "Not known: no limit was measured."
    told = [one for one in found if one.name in SPOKEN and one.name != names.MATMUL]
    rates = [_rate(one, found) for one in (*told, *_product(inputs, found))]
    costs = [
        f"{LAUNCHING[one.name]} takes {significant(one.value)} µs"
        for one in found
        if one.name in LAUNCHING
    ]
    said = []
    if rates:
        said.append(f"This device {', '.join(rates)}.")
    if costs:
        costs[0] = costs[0][:1].upper() + costs[0][1:]
        said.append(f"{', '.join(costs)}.")
    return " ".join(said) or "Not known: neither a rate nor a launch was measured."


def _product(inputs: ReportInputs, found: list[Reached]) -> list[Reached]:
    """Return the matrix product to speak of: that of the run's own type, else the fastest."""
    products = [one for one in found if one.name == names.MATMUL]
    own = {plain_dtype(dtype) for dtype in inputs.points[Points.dtype].drop_nulls()}
    mine = [one for one in products if one.dtype and plain_dtype(one.dtype) in own]
    return [max(mine or products, key=lambda one: one.value)] if products else []


def _rate(one: Reached, found: list[Reached]) -> str:
    said = f"{SPOKEN[one.name]} {with_unit(one.value, one.unit)}"
    if one.dtype and one.name == names.MATMUL:
        said += f" in {plain_dtype(one.dtype)}"
    notes = []
    if one.share is not None:
        notes.append(f"{whole_percent(one.share)} of the datasheet")
    long = next((o for o in found if (o.name, o.dtype) == (one.name + SUSTAINED, one.dtype)), None)
    if long is not None and long.sustained_of is not None:
        notes.append(f"sustained {whole_percent(long.sustained_of)} of that")
    return f"{said} ({', '.join(notes)})" if notes else said


def section(inputs: ReportInputs, figures: Collection[str]) -> list[Block]:
    """Return the limits beside the datasheet, with the conditions of measuring."""
    found = inputs.summary.ceilings
    blocks: list[Block] = [Heading("What this device can reach")]
    if not found:
        return [*blocks, Paragraph(answer(inputs))]
    if CEILINGS in figures:
        blocks.append(Figure(CEILINGS, "Measured, as a share of what the datasheet prints."))
    head = (
        "limit", "type", "of what", "measured", "p10 to p90", "datasheet", "of it",
        "of the burst", "SM clock", "temperature",
    )  # fmt: skip
    blocks.append(Table(head=head, rows=tuple(map(_row, found)), align="lllrrrrrrr"))
    if not inputs.manifest.gpus:
        blocks.append(
            Paragraph("This run used no GPU: these are limits of the host; a GPU's need one.")
        )
    elif all(one.datasheet is None for one in found):
        blocks.append(Paragraph(f"The datasheet of this device is {NOT_KNOWN} here."))
    return blocks


def _row(one: Reached) -> tuple[Text, ...]:
    spread = f"{significant(one.p10)} to {significant(one.p90)}"
    return (
        Code(one.name),
        plain_dtype(one.dtype) if one.dtype else "–",
        one.shape or "–",
        with_unit(one.value, _unit(one)),
        "–" if one.p10 is None or one.p90 is None else spread,
        "–" if one.datasheet is None else with_unit(one.datasheet, one.unit),
        "–" if one.share is None else percent(one.share),
        "–" if one.sustained_of is None else percent(one.sustained_of),
        with_unit(one.sm_clock_mhz, "MHz"),
        with_unit(one.temperature_c, "°C"),
    )


def _unit(one: Reached) -> str:
    return "µs" if one.unit == "us" else one.unit


def charts(inputs: ReportInputs) -> dict[str, ChartType]:
    """Return each limit as a share of the datasheet's, where there is one."""
    known = [one for one in inputs.summary.ceilings if one.share is not None]
    if not known:
        return {}
    rows: list[dict[str, object]] = [
        {
            Bars.name: _called(one),
            Bars.group: "sustained" if SUSTAINED in one.name else "burst",
            Bars.value: one.share,
            Bars.low: one.p10 / one.datasheet if one.p10 and one.datasheet else None,
            Bars.high: one.p90 / one.datasheet if one.p90 and one.datasheet else None,
            Bars.label: f"{percent(one.share)}: {with_unit(one.value, one.unit)}",
        }
        for one in known
    ]
    best = max(known, key=lambda one: one.share or 0.0)
    title = f"{_called(best)} reaches {whole_percent(best.share)} of the datasheet"
    title = title[:1].upper() + title[1:]
    scale = Scale("share of what the datasheet prints", reach=1.0, line=1.0, format=".0%")
    subtitle = ["Thin line: p10 to p90 of the repeats."]
    return {CEILINGS: bars(frame(Bars, rows), scale, title, subtitle)}


def _called(one: Reached) -> str:
    return f"{one.name.removesuffix(SUSTAINED)} {plain_dtype(one.dtype or '')}".strip()


EXPERIMENT = Experiment(answer, section, charts)
