"""Say where a step's time goes between its floor and its measured time, part by part."""

from whichwall.analyze.quantities import (
    count,
    duration,
    percent,
    several,
    signed_duration,
    signed_percent,
)
from whichwall.analyze.report.answer import sentence
from whichwall.analyze.report.document import (
    Block,
    Figure,
    Heading,
    Items,
    Paragraph,
    Strong,
    Table,
    Text,
)
from whichwall.analyze.report.experiments.rows import label
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.subject import Subject
from whichwall.analyze.report.wall_figures import account_of
from whichwall.analyze.waterfall import part_name
from whichwall.schemas.account import (
    CLEAN_STEP,
    FLOOR,
    GRAPH_IDLE,
    HOST,
    IDLE,
    KERNELS,
    REMAINDER,
    Account,
)
from whichwall.schemas.points import Points

FIGURE = "waterfall"


def account(inputs: ReportInputs, chosen: Subject, figures: set[str]) -> list[Block]:
    """Return the parts of the step that the report speaks of, and the rules they follow."""
    found = account_of(inputs, chosen)
    if found is None:
        return []
    blocks: list[Block] = [Heading(f"From the floor to the {found.of} {chosen.step}")]
    if FIGURE in figures:
        blocks.append(Figure(FIGURE, "Parts of a step, each from where the last one ends."))
    blocks.append(_parts(found))
    notes: list[Text] = [sentence(note) for note in found.notes]
    blocks.append(Items((*notes, *_graph(found))))
    return blocks


def _parts(found: Account) -> Table:
    rows = [
        (part_name(part), signed_duration(part.ns), _share(part.ns, found.step_ns))
        for part in found.parts
    ]
    whole = (Strong("step"), duration(found.step_ns), percent(1.0))
    head = (f"part of the {found.of} step", "time", "of the step")
    return Table(head=head, rows=(*rows, whole), align="lrr")


def _share(ns: int, step_ns: int) -> str:
    if ns >= 0:
        return percent(ns / step_ns if step_ns else None)
    return f"−{percent(-ns / step_ns)}"


def _graph(found: Account) -> list[Text]:
    """Say how near kernels, nodes and host come to the step, told without its traced gaps."""
    if found.expected_ns is None:
        return []
    return [
        f"Kernels, idle time of {several(found.graph_nodes, 'node')} and the host's part make "
        f"{duration(found.expected_ns)}: {signed_percent(found.error)} against the clean step."
    ]


def accounts(inputs: ReportInputs) -> list[Block]:
    """Return the accounts of all clean steps that were traced, where there are several."""
    found = [one for one in inputs.summary.account if one.of == CLEAN_STEP]
    if len(found) < 2:
        return []
    labels = {row[Points.point]: label(row) for row in inputs.points.iter_rows(named=True)}
    head = (
        "point", "phase", "floor", "kernels over it", "between graph nodes", "other gaps",
        "host", "remainder", "clean step", "graph nodes", "kernels + nodes + host",
    )  # fmt: skip
    said = (
        "Each row adds up to its clean step. The last column is what a graph step is told to take "
        "without its traced gaps, and how far that is from the step; where the host works between "
        "replays, as a compiled step's does, its gaps are missing there."
    )
    rows = tuple(_row(one, labels.get(one.point, str(one.point))) for one in found)
    table = Table(head=head, rows=rows, align="llrrrrrrrrr")
    return [Heading("From the floor to each clean step"), Paragraph(said), table]


def _row(one: Account, name: str) -> tuple[Text, ...]:
    kinds = (FLOOR, KERNELS, GRAPH_IDLE, IDLE, HOST, REMAINDER)
    sums = [sum(part.ns for part in one.parts if part.kind == kind) for kind in kinds]
    told = "–"
    if one.expected_ns is not None:
        told = f"{duration(one.expected_ns)} ({signed_percent(one.error)})"
    nodes = count(one.graph_nodes)
    return (
        name, one.phase or "–", *map(signed_duration, sums), duration(one.step_ns), nodes, told
    )  # fmt: skip
