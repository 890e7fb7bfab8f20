"""Put a report together: the answer first, then the evidence, then what limits it."""

from collections.abc import Collection

from whichwall import __version__
from whichwall.analyze.report import (
    account,
    conditions,
    idle,
    limits,
    measured,
    moves,
    others,
    parts,
    rates,
    role_check,
    roofs,
    setting,
    work,
)
from whichwall.analyze.report.answer import headline, verdict_in_words
from whichwall.analyze.report.document import Answer, Block, Document, Heading, Paragraph
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.experiments.modes import experiment_of
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.subject import Subject, subject
from whichwall.schemas.experiments import BATCH, CEILINGS, CLOCKS, CONTEXT, LADDER, PROMPT

# Experiments whose own table has the rates of each point, or that time no pass of a model.
RATED = {BATCH, CEILINGS, CONTEXT, LADDER, PROMPT}


def contents(inputs: ReportInputs, figures: Collection[str]) -> Document:
    """Return the report of a run; `figures` names the charts that it may show."""
    shown = set(figures)
    experiment = experiment_of(inputs)
    if experiment is None:
        blocks = _wall(inputs, subject(inputs), shown)
    else:
        blocks = _experiment(inputs, experiment, subject(inputs), shown)
    made = Paragraph(
        f"Written by whichwall {__version__}. The same numbers for machines: summary.json; "
        "every activity with its role: roles.parquet."
    )
    return Document(title=inputs.summary.run, blocks=(*blocks, made))


def said(inputs: ReportInputs) -> str:
    """Answer what the run was made for: its mode's question, else which wall it stands at."""
    experiment = experiment_of(inputs)
    return experiment.answer(inputs) if experiment else verdict_in_words(inputs)


def _wall(inputs: ReportInputs, chosen: Subject, shown: set[str]) -> list[Block]:
    """Return the page of a run that is asked for its wall."""
    return [
        headline(inputs, chosen),
        *setting.setting(inputs, chosen),
        *measured.shares(inputs, chosen, shown),
        *account.account(inputs, chosen, shown),
        *measured.measured(inputs, chosen, shown),
        *parts.parts(inputs),
        *rates.rates(inputs),
        *work.work(inputs, chosen, shown),
        *role_check.role_check(inputs),
        *idle.idle(chosen, shown),
        *conditions.clocks(inputs, shown),
        *conditions.tax(inputs),
        *limits.floor(inputs),
        *roofs.roofs(shown),
        *limits.confirm(inputs),
        *moves.moves(inputs, chosen),
        *others.groups(inputs),
        *others.devices(inputs),
        *others.unfinished(inputs),
        *others.confessions(inputs),
    ]


def _experiment(
    inputs: ReportInputs, experiment: Experiment, chosen: Subject, shown: set[str]
) -> list[Block]:
    """Return the page of an experiment: its answer, its table and chart, then what it has besides.

    A trace, samples and floors get the sections that they get elsewhere.
    """
    mode = inputs.manifest.mode
    blocks: list[Block] = [
        Answer(wall=None, sentences=(said(inputs),), figures=()),
        *experiment.section(inputs, shown),
        *setting.setting(inputs, chosen),
    ]
    if mode not in RATED:
        blocks += rates.rates(inputs)
    if inputs.manifest.ranks:
        blocks += _traced(inputs, chosen, shown)
    if inputs.samples.height and mode != CLOCKS:
        blocks += conditions.clocks(inputs, shown)
    if inputs.summary.floors_by_phase:
        blocks += limits.floor(inputs)
        blocks += roofs.roofs(shown)
    return [
        *blocks,
        *others.devices(inputs),
        *others.unfinished(inputs),
        *others.confessions(inputs),
    ]


def _traced(inputs: ReportInputs, chosen: Subject, shown: set[str]) -> list[Block]:
    """Return what the trace of one point of an experiment says."""
    blocks: list[Block] = [
        Heading("Inside a traced step"),
        headline(inputs, chosen),
        *account.account(inputs, chosen, shown),
        *measured.measured(inputs, chosen, shown),
        *work.work(inputs, chosen, shown),
        *idle.idle(chosen, shown),
    ]
    if inputs.summary.verdict.wall is not None:
        blocks += limits.confirm(inputs)
    return [*blocks, *moves.moves(inputs, chosen), *account.accounts(inputs)]
