"""Which page each mode gets: those whose question is another one than for the wall."""

from whichwall.analyze.report.experiments import (
    attention,
    batch,
    ceilings,
    clocks,
    context,
    ladder,
    output,
    prompt,
    request,
    tax,
)
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
}
