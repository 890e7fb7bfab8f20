"""Say what the GPU works on: time by role, and the kernels that take most of it."""

from dataclasses import dataclass

import polars as pl

from whichwall.analyze.names import short_name
from whichwall.analyze.quantities import count, duration, percent, significant
from whichwall.analyze.report.document import Block, Code, Figure, Heading, Paragraph, Table, Text
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.subject import Subject
from whichwall.schemas.activities import Activities
from whichwall.schemas.roles import (
    BY_NAME,
    BY_ORDER,
    BY_REFERENCE,
    BY_SHAPE,
    OTHER,
    Roles,
)
from whichwall.schemas.summary import RoleTotal

# The rest is in roles.parquet; a dozen kernels usually hold nine tenths of the time.
MOST_KERNELS = 12
NAME_WIDTH = 56

_METHODS = {
    BY_SHAPE: "the shapes of their operators",
    BY_ORDER: "their place in the order of a layer",
    BY_REFERENCE: "a run of the same model that was traced eagerly",
    BY_NAME: "their names",
}
_FIGURES = {
    "layers": "GPU time of each role in each layer.",
    "phases": "What decode and prefill spend their GPU time on, side by side.",
}
UNRATED = 4  # columns of the table of roles without rates
_RATES = (
    "GB/s and TFLOP/s are the weights, cache and products that a step needs by the model's "
    "dimensions, over the time of the role: known for roles of matrix products."
)
_TOTAL, _COUNT, _MEDIAN, _SHORT = "total", "count", "median", "short"


@dataclass(frozen=True)
class Totals:
    """Time per role, and what it is the time of."""

    rows: list[RoleTotal]  # those that took any, the largest first
    steps: int | None  # how many steps they add up; null: the whole recording
    on_gpu: bool

    @property
    def per(self) -> str:
        """Return the words that follow a quantity."""
        return "in all" if self.steps is None else "per step"

    @property
    def divisor(self) -> int:
        """What brings the totals to that quantity."""
        return self.steps or 1


def totals(inputs: ReportInputs, subject: Subject) -> Totals:
    """Return the totals per role of the subject: its steps, its device, or the CPU's operators."""
    steps = None
    rows = inputs.summary.cpu_roles
    if subject.group and subject.group.roles:
        rows, steps = subject.group.roles, max(1, subject.group.count)
    elif subject.device:
        rows = subject.device.roles
    busy = sorted((t for t in rows if t.busy_ns > 0), key=lambda t: (-t.busy_ns, t.role))
    return Totals(busy, steps, on_gpu=subject.device is not None)


def work(inputs: ReportInputs, subject: Subject, figures: set[str]) -> list[Block]:
    """Return the tables of roles and kernels."""
    found = totals(inputs, subject)
    where = "GPU" if found.on_gpu else "CPU"
    blocks: list[Block] = [Heading(f"What the {where} works on")]
    if not found.rows:
        blocks.append(Paragraph(f"Not known: no {where} activity with a role is on record."))
        return blocks
    if "roles" in figures:
        blocks.append(Figure("roles", f"{where} time by the part of the model it works for."))
    blocks += [Figure(name, said) for name, said in _FIGURES.items() if name in figures]
    table = _roles_table(found)
    blocks.append(table)
    if len(table.head) > UNRATED:
        blocks.append(Paragraph(_RATES))
    if found.on_gpu:
        blocks.append(Paragraph(_attribution(subject)))
        blocks += _kernels(inputs, subject)
    return blocks


def _roles_table(found: Totals) -> Table:
    what = "activities" if found.on_gpu else "operators"
    head = ("role", f"time {found.per}", "share", f"{what} {found.per}")
    rated = any(t.achieved_gbps or t.achieved_tflops for t in found.rows)
    rows: list[tuple[Text, ...]] = []
    for t in found.rows:
        row: tuple[Text, ...] = (
            Code(t.role),
            duration(t.busy_ns / found.divisor),
            percent(t.share),
            count(t.kernels / found.divisor),
        )
        rows.append((*row, _rate(t.achieved_gbps), _rate(t.achieved_tflops)) if rated else row)
    if rated:
        return Table(head=(*head, "GB/s", "TFLOP/s"), rows=tuple(rows), align="lrrrrr")
    return Table(head=head, rows=tuple(rows), align="lrrr")


def _rate(value: float | None) -> str:
    """Return a rate while the role was at work; blank where it is not known."""
    return "" if value is None else significant(value)


def _attribution(subject: Subject) -> str:
    known = subject.group.attributed_share if subject.group else None
    if known is None and subject.device:
        known = subject.device.attributed_share
    if known == 1:
        said = "All of this time has a role."
    else:
        said = f"{percent(known)} of this time has a role; the rest is called {OTHER}."
    methods = subject.device.methods if subject.device else {}
    told = [
        f"by {_METHODS[method]} ({count(number)})"
        for method, number in methods.items()
        if number and method in _METHODS
    ]
    return f"{said} Activities were told apart {'; '.join(told)}." if told else said


def _kernels(inputs: ReportInputs, subject: Subject) -> list[Block]:
    ranked = kernels(inputs, subject)
    if ranked.is_empty():
        return []
    whole = int(ranked.select(pl.col(_TOTAL).sum()).item())
    shown = ranked.head(MOST_KERNELS)
    rows = tuple(
        (
            Code(row[_SHORT]),
            Code(row[Roles.role]),
            count(row[_COUNT] / subject.count),
            duration(row[_TOTAL] / subject.count),
            duration(row[_MEDIAN]),
            percent(row[_TOTAL] / whole),
        )
        for row in shown.iter_rows(named=True)
    )
    head = (
        "kernel or copy", "role", f"count {subject.per}", f"time {subject.per}", "median", "share",
    )  # fmt: skip
    left = ranked.height - shown.height
    rest = 1 - int(shown.select(pl.col(_TOTAL).sum()).item()) / whole
    said = "The kernels that take most of the time, their names shortened"
    tail = f"; {count(left)} more take {percent(rest)} together." if left else "."
    return [
        Paragraph(f"{said}{tail} Whole names are in roles.parquet."),
        Table(head=head, rows=rows, align="llrrrr"),
    ]


def kernels(inputs: ReportInputs, subject: Subject) -> pl.DataFrame:
    """Return the subject's activities by shortened name and role, those with most time first."""
    mine = (
        inputs.activities.select(Activities.name, Activities.dur_ns)
        .with_columns(inputs.roles.get_column(Roles.role))
        .filter(subject.work.to_series())
    )
    names = mine.get_column(Activities.name).unique().to_list()
    short = [short_name(name, NAME_WIDTH) for name in names]
    return (
        mine.with_columns(
            pl.col(Activities.name)
            .replace_strict(names, short, return_dtype=pl.String)
            .alias(_SHORT)
        )
        .group_by(_SHORT, Roles.role)
        .agg(
            pl.col(Activities.dur_ns).sum().alias(_TOTAL),
            pl.len().alias(_COUNT),
            pl.col(Activities.dur_ns).median().alias(_MEDIAN),
        )
        .sort(_TOTAL, _SHORT, Roles.role, descending=[True, False, False])
    )
