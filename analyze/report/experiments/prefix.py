"""Answer what a beginning that prompts share saves: later first tokens against those of unique."""

from collections.abc import Collection

from altair.typing import ChartType

from whichwall.analyze.charts.bars import Scale, bars
from whichwall.analyze.quantities import NOT_KNOWN, count, duration, several, times
from whichwall.analyze.report.document import Block, Figure, Heading, Paragraph, Table, Text
from whichwall.analyze.report.experiments.drawn import NS_PER_MS
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.experiments.serving_tables import failures, spread
from whichwall.analyze.report.experiments.words import notes
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.chart import Bars
from whichwall.schemas.experiments import PREFIX
from whichwall.schemas.run import frame
from whichwall.schemas.serving import PrefixReuse, Reuse, Waits

NONE_SEEN = "no difference that this data can show"
FIRST, LATER, UNIQUE = (
    "first with its prefix", "later with that prefix", "a prompt of its own",
)  # fmt: skip


def answer(inputs: ReportInputs) -> str:
    """Say what later prompts wait for a first token, beside unique ones, and what was cached."""
    found = inputs.summary.prefix
    if found is None or found.later is None or found.unique is None:
        return " ".join(["Not known: too few requests were answered.", *_failed(found)])
    reuse = found.later_to_unique
    if reuse is None:
        return " ".join(["Not known: no round has an answer of both kinds.", *_failed(found)])
    size = f"{several(found.prefix_tokens, 'token')} of {count(found.prompt_tokens)}"
    later, unique = duration(found.later.median_ns), duration(found.unique.median_ns)
    if reuse.seen is False:
        said = (
            f"Sharing {size} makes {NONE_SEEN}: the first token of a later request comes after "
            f"{later}, that of a prompt of its own after {unique}; the ratio is {_ratio(reuse)}."
        )
    else:
        said = (
            f"With {size} shared, the first token of a later request comes after {later} instead "
            f"of {unique}, {_ratio(reuse)} the wait of a prompt of its own."
        )
    return " ".join([said, *_first(found), *_cached(found), *_failed(found)])


def _ratio(reuse: Reuse) -> str:
    if reuse.low is None or reuse.high is None:
        return f"{times(reuse.ratio)}, of one round,"
    return f"{times(reuse.ratio)} (95 % interval {times(reuse.low)} to {times(reuse.high)})"


def _first(found: PrefixReuse) -> list[str]:
    if found.first is None or found.first_to_unique is None:
        return []
    pays = f"The first request with a prefix waits {duration(found.first.median_ns)}"
    return [f"{pays}, {_ratio(found.first_to_unique)} that of a prompt of its own."]


def _cached(found: PrefixReuse) -> list[str]:
    if found.cached_tokens_later is None:
        return ["How many tokens came from a cache was not said."]
    tokens = several(found.cached_tokens_later, "token")
    return [f"By its own count {tokens} of a later prompt came from the cache."]


def _failed(found: PrefixReuse | None) -> list[str]:
    if found is None or not found.failed:
        return []
    verb = "was" if found.failed == 1 else "were"
    return [f"{several(found.failed, 'request')} {verb} not answered."]


def section(inputs: ReportInputs, figures: Collection[str]) -> list[Block]:
    """Return the first token of each kind of prompt, with the ratios."""
    found = inputs.summary.prefix
    blocks: list[Block] = [Heading("The first token with a shared prefix")]
    if found is None:
        return [*blocks, Paragraph(answer(inputs))]
    if PREFIX in figures:
        blocks.append(Figure(PREFIX, "Median TTFT, with p10 to p90."))
    blocks += [
        Table(
            head=("prompt", "answered", "TTFT", "p10 to p90", "to unique", "95 % interval",
                  "tokens cached"),
            rows=(
                _row(UNIQUE, found.unique, None, found.cached_tokens_unique),
                _row(FIRST, found.first, found.first_to_unique, found.cached_tokens_first),
                _row(LATER, found.later, found.later_to_unique, found.cached_tokens_later),
            ),
            align="lrrrrrr",
        ),
        Paragraph(
            f"{several(found.rounds, 'round')}, each with a prefix of "
            f"{several(found.prefix_tokens, 'token')} that no other had; all prompts are of "
            f"{several(found.prompt_tokens, 'token')}, asked for one after another, prompts of "
            "their own among the later ones. Ratios are between medians of one round; the interval "
            "is Student's over rounds, on the logarithms of their ratios."
        ),
    ]  # fmt: skip
    if (failed := failures(PREFIX, inputs.summary.serving)) is not None:
        blocks += [Heading("Requests that were not answered"), failed]
    if inputs.manifest.server is None:  # of a server it is not known
        blocks += notes(inputs, "What a shared prefix saves a GPU needs one.")
    return blocks


def _row(
    name: str, found: Waits | None, reuse: Reuse | None, cached: int | None
) -> tuple[Text, ...]:
    if found is None:
        return name, "0", NOT_KNOWN, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN
    ratio = interval = "–"
    if reuse is not None:
        ratio, interval = times(reuse.ratio), NOT_KNOWN
        if reuse.low is not None and reuse.high is not None:
            interval = f"{times(reuse.low)} to {times(reuse.high)}"
    return (
        name, count(found.count), duration(found.median_ns), spread(found), ratio, interval,
        count(cached),
    )  # fmt: skip


def charts(inputs: ReportInputs) -> dict[str, ChartType]:
    """Return a bar per kind of prompt."""
    found = inputs.summary.prefix
    if found is None or found.later is None or found.unique is None:
        return {}
    kinds = ((UNIQUE, found.unique), (FIRST, found.first), (LATER, found.later))
    rows: list[dict[str, object]] = [
        {
            Bars.name: name,
            Bars.group: PREFIX,
            Bars.value: waits.median_ns / NS_PER_MS,
            Bars.low: waits.p10_ns / NS_PER_MS,
            Bars.high: waits.p90_ns / NS_PER_MS,
            Bars.label: duration(waits.median_ns),
        }
        for name, waits in kinds
        if waits is not None
    ]
    reuse = found.later_to_unique
    title = (
        f"A later request waits {duration(found.later.median_ns)} for its first token, "
        f"{times(reuse.ratio if reuse else None)} what a prompt of its own waits"
    )
    return {
        PREFIX: bars(
            frame(Bars, rows),
            Scale("request to first token, ms"),
            title,
            [f"{several(found.prefix_tokens, 'token')} of {count(found.prompt_tokens)} shared."],
        )
    }


EXPERIMENT = Experiment(answer, section, charts)
