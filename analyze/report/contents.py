"""Put a report together: the answer first, then the evidence, then what limits it."""

from collections.abc import Collection

from whichwall import __version__
from whichwall.analyze.report import (
    conditions,
    idle,
    limits,
    measured,
    others,
    role_check,
    setting,
    work,
)
from whichwall.analyze.report.answer import headline
from whichwall.analyze.report.document import Block, Document, Paragraph
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.subject import subject


def contents(inputs: ReportInputs, figures: Collection[str]) -> Document:
    """Return the report of a run; `figures` names the charts that it may show."""
    chosen = subject(inputs)
    shown = set(figures)
    blocks: list[Block] = [
        headline(inputs, chosen),
        *setting.setting(inputs, chosen),
        *measured.shares(inputs, chosen, shown),
        *measured.measured(inputs, chosen, shown),
        *work.work(inputs, chosen, shown),
        *role_check.role_check(inputs),
        *idle.idle(chosen, shown),
        *conditions.clocks(inputs, shown),
        *conditions.tax(inputs),
        *limits.floor(inputs),
        *limits.confirm(inputs),
        *others.groups(inputs),
        *others.devices(inputs),
        *others.unfinished(inputs),
        *others.confessions(inputs),
        Paragraph(
            f"Written by whichwall {__version__}. The same numbers for machines: summary.json; "
            "every activity with its role: roles.parquet."
        ),
    ]
    return Document(title=inputs.summary.run, blocks=tuple(blocks))
