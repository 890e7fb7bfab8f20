"""Give a row to every device, rank, point and phase, and say what the analysis confesses."""

import polars as pl

from whichwall.analyze.quantities import NOT_KNOWN, count, duration, percent
from whichwall.analyze.report.document import Block, Code, Heading, Paragraph, Table, Text
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.measured import NOTHING
from whichwall.analyze.step_shares import known_shares
from whichwall.schemas.points import DONE, Points
from whichwall.schemas.summary import Device, StepGroup

# A sweep over ranks and points can have hundreds of groups; summary.json has them all.
MOST_ROWS = 60

_SEVERITIES = ("error", "warning", "info")


def groups(inputs: ReportInputs) -> list[Block]:
    """Return a row per group of steps, where there is more than the one of the details.

    What was only timed has a row too, with what the clock alone says.
    """
    found = inputs.summary.steps.groups
    if len(found) <= 1:
        return []
    points = {row[Points.point]: row for row in inputs.points.iter_rows(named=True)}
    head = (
        "point", "rank", "device", "phase", "batch", "prompt", "context", "engine", "steps traced",
        "clean step", "traced step", "GPU busy", "busy, clean", "largest part",
    )  # fmt: skip
    rows = tuple(_group_row(group, points.get(group.point, {})) for group in found[:MOST_ROWS])
    table = Table(head=head, rows=rows, align="rrrlrrrlrrrrrl")
    blocks: list[Block] = [Heading("All steps"), table]
    if len(found) > MOST_ROWS:
        blocks.append(Paragraph(f"{len(found) - MOST_ROWS} more are in summary.json."))
    return blocks


def _group_row(group: StepGroup, point: dict[str, object]) -> tuple[Text, ...]:
    shares = known_shares(group.shares) if group.shares else {}
    largest = max(shares, key=lambda wall: shares[wall], default=None)
    return (
        str(group.point),
        str(group.rank),
        NOTHING if group.device is None else str(group.device),
        group.phase or NOT_KNOWN,
        _number(group.batch),
        _number(point.get(Points.prompt_tokens)),
        _number(point.get(Points.context_tokens)),
        str(point.get(Points.engine) or NOT_KNOWN),
        count(group.count),
        duration(group.clean_step_ns_median),
        duration(group.window_ns_median),
        duration(group.busy_ns_median),
        percent(group.busy_fraction_clean),
        f"{largest} {percent(shares[largest])}" if largest else NOT_KNOWN,
    )


def _number(value: object) -> str:
    return count(value) if isinstance(value, int) else NOT_KNOWN


def devices(inputs: ReportInputs) -> list[Block]:
    """Return a row per device over the whole recording, where there are several."""
    found = inputs.summary.devices
    if len(found) <= 1:
        return []
    head = (
        "rank", "device", "activities", "recording", "busy", "busy without communication",
        "busy fraction", "idle", "median kernel",
    )  # fmt: skip
    said = (
        "Over the whole recording. A communication kernel that waits for another rank is busy "
        "but no work: busy without communication is what compares."
    )
    rows = tuple(_device_row(device) for device in found[:MOST_ROWS])
    return [Heading("All devices"), Paragraph(said), Table(head=head, rows=rows, align="rrrrrrrrr")]


def _device_row(device: Device) -> tuple[Text, ...]:
    return (
        str(device.rank),
        NOTHING if device.device is None else str(device.device),
        count(device.gpu_activities),
        duration(device.window_ns),
        duration(device.busy_ns),
        duration(device.busy_without_communication_ns),
        percent(device.busy_fraction),
        duration(device.gaps.total_ns),
        duration(device.kernel_median_ns),
    )


def unfinished(inputs: ReportInputs) -> list[Block]:
    """Return the points that did not end in done, with the reason."""
    rows = tuple(
        (str(row[Points.point]), row[Points.outcome], row[Points.reason] or NOT_KNOWN)
        for row in inputs.points.filter(pl.col(Points.outcome) != DONE).iter_rows(named=True)
    )
    if not rows:
        return []
    return [
        Heading("Points without a result"),
        Table(head=("point", "outcome", "reason"), rows=rows[:MOST_ROWS], align="rll"),
    ]


def confessions(inputs: ReportInputs) -> list[Block]:
    """Return every diagnostic in words, the gravest first."""
    blocks: list[Block] = [Heading("What to know about these numbers")]
    found = sorted(
        inputs.summary.diagnostics, key=lambda d: (_SEVERITIES.index(d.severity), d.code)
    )
    if not found:
        return [*blocks, Paragraph("Nothing stood out: no diagnostic was raised.")]
    rows: tuple[tuple[Text, ...], ...] = tuple(
        (d.severity, d.message, NOTHING if d.count is None else count(d.count), Code(d.code))
        for d in found
    )
    head = ("severity", "what", "count", "code")
    return [*blocks, Table(head=head, rows=rows, align="llrl")]
