"""Say at which rate each clean step moves bytes and does arithmetic."""

from whichwall.analyze.quantities import duration, significant
from whichwall.analyze.report.document import Block, Heading, Paragraph, Table, Text
from whichwall.analyze.report.experiments.rows import label
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.experiments import Rate
from whichwall.schemas.points import Points

# A sweep over many points has a table of its own; summary.json has all.
MOST_ROWS = 60


def rates(inputs: ReportInputs) -> list[Block]:
    """Return a row per point and phase whose bytes and FLOPs are known."""
    found = inputs.summary.rates
    if not found:
        return []
    labels = {row[Points.point]: label(row) for row in inputs.points.iter_rows(named=True)}
    head = ("point", "phase", "clean step", "GB/s", "TFLOP/s", "FLOP/byte")
    rows = tuple(_row(rate, labels.get(rate.point)) for rate in found[:MOST_ROWS])
    blocks: list[Block] = [
        Heading("Rates"),
        Paragraph(
            "Bytes and FLOPs are those that a pass must move and do, as its floor counts them, "
            "over the clean step; the last column is one over the other."
        ),
        Table(head=head, rows=rows, align="llrrrr"),
    ]
    if len(found) > MOST_ROWS:
        blocks.append(Paragraph(f"{len(found) - MOST_ROWS} more are in summary.json."))
    return blocks


def _row(rate: Rate, name: str | None) -> tuple[Text, ...]:
    return (
        name or str(rate.point),
        rate.phase or "–",
        duration(rate.step_ns),
        significant(rate.achieved_gbps),
        significant(rate.achieved_tflops),
        significant(rate.intensity),
    )
