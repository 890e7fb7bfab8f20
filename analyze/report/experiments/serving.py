"""Answer what a client gets of a server: the first token, each further one, and tokens a second."""

from collections.abc import Collection, Sequence

import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts.interactivity import finding, interactivity
from whichwall.analyze.charts.lines import Axes, lines
from whichwall.analyze.charts.waits import waits as draw_waits
from whichwall.analyze.interactivity import served as users
from whichwall.analyze.quantities import (
    NOT_KNOWN,
    count,
    duration,
    several,
    significant,
    with_unit,
)
from whichwall.analyze.report.document import Block, Figure, Heading, Paragraph
from whichwall.analyze.report.experiments.drawn import NS_PER_MS
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.experiments.serving_tables import (
    ended,
    failures,
    rates,
    varied,
    varied_name,
    waits_of_one,
    waits_of_several,
)
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.serving import ITL, answered, chunks
from whichwall.analyze.wait_shares import wait_shares
from whichwall.schemas.chart import Lines
from whichwall.schemas.completions import Completions
from whichwall.schemas.experiments import BATCH, OUTPUT, PROMPT
from whichwall.schemas.passes import CLEAN
from whichwall.schemas.run import frame
from whichwall.schemas.serving import Served, Waits

WAITS, THROUGHPUT, INTERACTIVITY = "waits", "throughput", "interactivity"
SWEPT = (BATCH, OUTPUT, PROMPT)
FEWEST_POINTS = 2  # of a line
# A server that puts more than this many tokens into a chunk has ITL of another meaning than TPOT.
ONE_A_CHUNK = 1.05
DEFINED = (
    "Times are a client's, from sending a request: TTFT to its first token, TPOT (last - first) / "
    "(tokens - 1), ITL between two chunks of one stream that brought tokens. Rates are of the time "
    "in which every lane had a request on its way. Requests that were not answered are in none of "
    "these. A p99 takes a hundred values."
)


def answer(inputs: ReportInputs) -> str:
    """Say what requests got, how many were not answered, and whether the server went away."""
    served = inputs.summary.serving
    done = [one for one in served if one.done]
    said = [_got(inputs.manifest.mode, done)] if done else [_nothing(served)]
    return " ".join([*said, *(_failed(served) if done else []), *_gone(inputs)])


def _nothing(served: Sequence[Served]) -> str:
    """Say that no request was answered, and why."""
    asked = sum(one.requests for one in served)
    reasons = list(dict.fromkeys(one.reason or ended(one) for one in served))
    if not asked:
        what = "no request was answered"
    elif asked == 1:
        what = "the only request was not answered"
    else:
        what = f"none of {count(asked)} requests was answered"
    return f"Not known: {what} ({'; '.join(reasons)})."


def _got(mode: str, done: Sequence[Served]) -> str:
    first, last = done[0], done[-1]
    if mode == BATCH and len(done) > 1:
        return (
            f"From {count(first.lanes)} to {several(last.lanes, 'request')} in flight the server "
            f"goes from {significant(first.tokens_per_s)} to "
            f"{with_unit(last.tokens_per_s, 'tokens/s')} in all; the first token comes after "
            f"{_from_to(first.ttft, last.ttft)}, each further one after "
            f"{_from_to(first.tpot, last.tpot)}."
        )
    if mode == PROMPT and len(done) > 1:
        return (
            f"From a prompt of {count(first.prompt_tokens)} to {count(last.prompt_tokens)} tokens "
            f"the first token comes after {_from_to(first.ttft, last.ttft)}."
        )
    load = "One request at a time" if first.lanes == 1 else f"{count(first.lanes)} in flight, each"
    size = f"{several(last.prompt_tokens, 'token')} in and {count(last.new_tokens)} out"
    further = "" if last.tpot is None else f" and each further one {duration(last.tpot.median_ns)}"
    after = "" if last.tpot is None else " later (TPOT)"
    return (
        f"{load}, {size}: the first token comes after {_median(last.ttft)} (TTFT){further}{after}"
        f"; {with_unit(last.tokens_per_s, 'tokens/s')} in all."
    )


def _median(found: Waits | None) -> str:
    return NOT_KNOWN if found is None else duration(found.median_ns)


def _from_to(first: Waits | None, last: Waits | None) -> str:
    low, high = _median(first), _median(last)
    return low if low == high else f"{low} at first and {high} in the end"


def _failed(served: Sequence[Served]) -> list[str]:
    asked = sum(one.requests for one in served)
    failed = asked - sum(one.done for one in served)
    if not failed:
        return []
    kinds: dict[str, int] = {}
    for one in served:
        for kind, number in one.failures.items():
            kinds[kind] = kinds.get(kind, 0) + number
    said = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in kinds.items())
    verb = "was" if failed == 1 else "were"
    return [f"{failed} of {several(asked, 'request')} {verb} not answered ({said})."]


def _gone(inputs: ReportInputs) -> list[str]:
    said = [one.message for one in inputs.summary.diagnostics if one.code == "server_gone"]
    return [f"{text[:1].upper()}{text[1:]}." for text in said]


def section(inputs: ReportInputs, figures: Collection[str]) -> list[Block]:
    """Return waits, rates and failures, with the charts that there are."""
    served, mode = inputs.summary.serving, inputs.manifest.mode
    done = [one for one in served if one.done]
    blocks: list[Block] = [Heading("What a client gets")]
    if WAITS in figures:
        blocks.append(Figure(WAITS, "Of requests that were answered, timed by the client."))
    if len(served) > 1:
        blocks.append(waits_of_several(mode, served))
    elif done:
        blocks.append(waits_of_one(done[0]))
    if done:
        if THROUGHPUT in figures:
            blocks.append(Figure(THROUGHPUT, "While every lane had a request on its way."))
        if INTERACTIVITY in figures:
            said = "A point per number of requests in flight: 1 / TPOT against tokens of all."
            blocks.append(Figure(INTERACTIVITY, said))
        blocks += [rates(mode, done), Paragraph(DEFINED)]
    if (failed := failures(mode, served)) is not None:
        blocks += [Heading("Requests that were not answered"), failed]
    return [*blocks, *(Paragraph(text) for text in [*_notes(done), *_no_wall(inputs)])]


def _no_wall(inputs: ReportInputs) -> list[str]:
    """Say why such a run has no verdict, where nothing was traced."""
    if inputs.manifest.ranks:
        return []
    server = inputs.manifest.server
    tried = "" if server is None or server.profiled is None else f" ({server.profiled})"
    return [f"Which wall the server stands at is {NOT_KNOWN}: no trace was taken of it{tried}."]


def _notes(done: Sequence[Served]) -> list[str]:
    """Say what the numbers lack, or mean otherwise than usual."""
    found = []
    if any((one.tokens_per_chunk or 1) > ONE_A_CHUNK for one in done):
        found.append(
            "The server puts several tokens into a chunk: ITL is the wait between chunks, TPOT "
            "that per token."
        )
    if any(one.tokens_per_chunk is None for one in done):
        found.append(f"How many tokens a chunk holds is {NOT_KNOWN}: the server does not count.")
    short = [one for one in done if (one.new_tokens_served or 0) < (one.new_tokens or 0)]
    if any(one.new_tokens_served is not None for one in short):
        found.append("Answers ended before the number of tokens that was asked for.")
    cached = [one for one in done if one.cached_tokens]
    if cached:
        found.append(
            "The server found part of prompts in its cache, though each prompt was one of its own."
        )
    return found


def charts(inputs: ReportInputs) -> dict[str, ChartType]:
    """Return the waits; of a sweep over its values, and of requests in flight the rates too."""
    mode = inputs.manifest.mode
    done = [one for one in inputs.summary.serving if one.done]
    if not done:
        return {}
    if mode not in SWEPT or len(done) < FEWEST_POINTS:
        return _curves(inputs, done[0])
    drawn = _lines(mode, done)
    if mode == BATCH:
        drawn |= _throughput(mode, done)
        points = users(done)
        if points.height >= FEWEST_POINTS:
            drawn[INTERACTIVITY] = interactivity(points, finding(points), [])
    return drawn


def _curves(inputs: ReportInputs, one: Served) -> dict[str, ChartType]:
    clean = inputs.completions.filter(
        (pl.col(Completions.point) == one.point) & (pl.col(Completions.stage) == CLEAN)
    )
    shares = wait_shares(
        {
            "TTFT": answered(clean)[Completions.ttft_ns],
            "ITL": chunks(clean, inputs.tokens)[ITL],
        }
    )
    if shares.is_empty():
        return {}
    title = f"The first token comes after {_median(one.ttft)}"
    title += "" if one.tpot is None else f", each further one {_median(one.tpot)} later"
    flight = f"{several(one.lanes, 'request')} in flight"
    said = f"{several(one.done, 'request')} of {several(one.prompt_tokens, 'token')}, {flight}."
    return {WAITS: draw_waits(shares, title, [said])}


def _lines(mode: str, done: Sequence[Served]) -> dict[str, ChartType]:
    rows: list[dict[str, object]] = [
        {
            Lines.x: varied(mode, one),
            Lines.y: found.median_ns / NS_PER_MS,
            Lines.low: found.p10_ns / NS_PER_MS,
            Lines.high: found.p90_ns / NS_PER_MS,
            Lines.series: name,
            Lines.floor: False,
        }
        for name, found, one in _waits_of(done)
    ]
    if not rows:
        return {}
    axes = Axes(varied_name(mode), "wait, ms")
    first, last = done[0], done[-1]
    title = (
        f"The first token comes after {_median(first.ttft)} at {count(varied(mode, first))} "
        f"{axes.x}, after {_median(last.ttft)} at {count(varied(mode, last))}"
    )
    return {WAITS: lines(frame(Lines, rows), axes, title, ["Median, with a band of p10 to p90."])}


def _waits_of(done: Sequence[Served]) -> list[tuple[str, Waits, Served]]:
    found = [("TTFT", one.ttft, one) for one in done] + [("ITL", one.itl, one) for one in done]
    return [(name, waits, one) for name, waits, one in found if waits is not None]


def _throughput(mode: str, done: Sequence[Served]) -> dict[str, ChartType]:
    rates = [("all requests", one, one.tokens_per_s) for one in done]
    rates += [("one request", one, one.tokens_per_s_each) for one in done]
    rows: list[dict[str, object]] = [
        {Lines.x: varied(mode, one), Lines.y: rate, Lines.series: name, Lines.floor: False}
        for name, one, rate in rates
        if rate is not None
    ]
    if not rows:
        return {}
    most = max(done, key=lambda one: one.tokens_per_s or 0)
    title = (
        f"{with_unit(most.tokens_per_s, 'tokens/s')} in all, with "
        f"{several(most.lanes, 'request')} in flight"
    )
    axes = Axes("requests in flight", "tokens per second")
    return {THROUGHPUT: lines(frame(Lines, rows), axes, title, [])}


EXPERIMENT = Experiment(answer, section, charts)
