"""Say what the parts of the model take on their own, and what is left once they are added up."""

from collections.abc import Iterator

from whichwall.analyze.quantities import NOT_KNOWN, count, duration, signed_duration
from whichwall.analyze.report.document import Block, Heading, Paragraph, Strong, Table, Text
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.experiments import PartsSum, PartTime


def parts(inputs: ReportInputs) -> list[Block]:
    """Return a table per phase, where parts were timed."""
    found = inputs.summary.parts
    if not found:
        return []
    blocks: list[Block] = [
        Heading("Parts timed on their own and added up to a step"),
        Paragraph(
            "Each part was called alone, back to back and without a profiler; calls × time adds up "
            "to a pass. What remains is residual additions, moving between parts, and the host's "
            "work around them; below 0, parts overlap inside a pass."
        ),
    ]
    for one in found:
        head = (
            f"part of a {one.phase} pass", "calls", "one call", "calls × wall", "one call, GPU",
            "calls × GPU",
        )  # fmt: skip
        blocks.append(Table(head=head, rows=tuple(_rows(one)), align="lrrrrr"))
    if any(one.sum_gpu_ns is None for one in found):
        blocks.append(Paragraph(f"Time on a GPU is {NOT_KNOWN} where none was used."))
    return blocks


def _rows(one: PartsSum) -> Iterator[tuple[Text, ...]]:
    yield from map(_part, one.parts)
    yield Strong("sum"), "", "", duration(one.sum_wall_ns), "", duration(one.sum_gpu_ns)
    yield "clean pass", "", "", duration(one.step_ns), "", duration(one.step_gpu_ns)
    yield (
        "remainder",
        "",
        "",
        signed_duration(one.rest_wall_ns),
        "",
        signed_duration(one.rest_gpu_ns),
    )


def _part(part: PartTime) -> tuple[Text, ...]:
    on_gpu = None if part.gpu_ns is None else part.calls * part.gpu_ns
    return (
        part.part,
        count(part.calls),
        duration(part.wall_ns),
        duration(part.calls * part.wall_ns),
        duration(part.gpu_ns),
        duration(on_gpu),
    )
