"""Which page each mode gets: those whose question is another one than for the wall."""

from whichwall.analyze.report.experiments import (
    attention,
    batch,
    ceilings,
    clocks,
    context,
    ladder,
    output,
    prefix,
    prompt,
    request,
    serving,
    tax,
)
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas import experiments as names

EXPERIMENTS = {
    names.CONTEXT: context.EXPERIMENT,
    names.PROMPT: prompt.EXPERIMENT,
    names.OUTPUT: output.EXPERIMENT,
    names.BATCH: batch.EXPERIMENT,
    names.LADDER: ladder.EXPERIMENT,
    names.ATTENTION: attention.EXPERIMENT,
    names.REQUEST: request.EXPERIMENT,
    names.CEILINGS: ceilings.EXPERIMENT,
    names.CLOCKS: clocks.EXPERIMENT,
    names.TAX: tax.EXPERIMENT,
    names.PREFIX: prefix.EXPERIMENT,
}


def experiment_of(inputs: ReportInputs) -> Experiment | None:
    """Return the page of a run: that of its mode, or of a server in whatever mode it was asked."""
    mode = inputs.manifest.mode
    if inputs.summary.serving and mode != names.PREFIX:
        return serving.EXPERIMENT
    return EXPERIMENTS.get(mode)
