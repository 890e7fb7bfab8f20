"""Say what a step cannot go below, what would confirm the verdict, and what is left without it."""

from whichwall.analyze.floor import DATASHEET, MEASURED
from whichwall.analyze.quantities import (
    NOT_KNOWN,
    amount_of_bytes,
    amount_of_flops,
    count,
    duration,
    significant,
)
from whichwall.analyze.report.document import Block, Heading, Items, Paragraph, Strong, Table, Text
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.summary import Floor

_FROM = {
    MEASURED: "measured on this device",
    DATASHEET: "from the datasheet: not measured on this device",
}


def floor(inputs: ReportInputs) -> list[Block]:
    """Return the floors of each phase, and where the ceilings under them come from."""
    blocks: list[Block] = [Heading("The floor: the least a step can take")]
    floors = inputs.summary.floors_by_phase or (
        [inputs.summary.floors] if inputs.summary.floors else []
    )
    if not floors:
        return [*blocks, Paragraph(f"{NOT_KNOWN.capitalize()}: {_no_floor(inputs)}")]
    said = (
        "Each operation must read its bytes and do its arithmetic; the floor adds up, over all "
        "operations, the longer of the two at the ceilings of this device. The bytes and "
        "arithmetic floors are the plain totals of either."
    )
    table = Table(
        head=(
            "phase", "batch", "context, median tokens", "bytes", "FLOPs", "floor", "bytes floor",
            "arithmetic floor",
        ),
        rows=tuple(_row(one) for one in floors),
        align="lrrrrrrr",
    )  # fmt: skip
    blocks += [Paragraph(said), table, Items(tuple(_ceilings(floors[0])))]
    if any(one.cached_weights for one in floors):
        cached = (
            "The weights are under four times the last-level cache, so a good part of them need "
            "not be read from memory at every step: the bytes floor is no floor here."
        )
        blocks.append(Paragraph(cached))
    return blocks


def _no_floor(inputs: ReportInputs) -> str:
    if inputs.summary.model is None and inputs.manifest.model is None:
        return "the model's dimensions are not known, so its bytes and FLOPs cannot be counted."
    return "no bandwidth or matmul rate is known for this device."


def _row(one: Floor) -> tuple[Text, ...]:
    return (
        one.phase,
        count(one.batch),
        count(one.context_tokens),
        amount_of_bytes(one.bytes),
        amount_of_flops(one.flops),
        duration(one.floor_ns),
        duration(one.bytes_ns),
        duration(one.arithmetic_ns),
    )


def _ceilings(one: Floor) -> list[Text]:
    return [
        _ceiling("bandwidth", one.bandwidth_gbps, "GB/s", one.bandwidth_from),
        _ceiling("matmul rate", one.tflops, "TFLOP/s", one.tflops_from),
    ]


def _ceiling(name: str, value: float | None, unit: str, source: str | None) -> Text:
    if value is None:
        return f"{name}: {NOT_KNOWN}, neither measured nor in a datasheet row"
    where = _FROM.get(source or "", source or "source not recorded")
    return f"{name}: {significant(value)} {unit}, {where}"


def confirm(inputs: ReportInputs) -> list[Block]:
    """Return the test that would confirm the verdict, and the step predicted without this wall."""
    verdict = inputs.summary.verdict
    blocks: list[Block] = [Heading("What would confirm it")]
    if verdict.wall is None:
        needed = verdict.confirm_with or "a verdict comes first; its reason above says what lacks"
        return [*blocks, Paragraph(f"{needed[:1].upper()}{needed[1:].rstrip('.')}.")]
    items: list[Text] = []
    if verdict.confirm_with:
        items.append((Strong("test"), f": {verdict.confirm_with}"))
    if verdict.predicted_step_ms is not None:
        how = f" ({verdict.predicted_how})" if verdict.predicted_how else ""
        predicted = duration(verdict.predicted_step_ms * 1e6)
        items.append((Strong("predicted step without this wall"), f": {predicted}{how}"))
    else:
        items.append((Strong("predicted step without this wall"), f": {NOT_KNOWN}"))
    if verdict.tested is not None:
        items.append((Strong("the test was run"), f": {verdict.tested}"))
    return [*blocks, Items(tuple(items))]
