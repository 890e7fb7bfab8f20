"""Answer where the time of one request goes, and what waiting for each of its steps costs."""

from collections.abc import Collection, Iterator

import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts.request import request as draw
from whichwall.analyze.quantities import (
    NOT_KNOWN,
    count,
    duration,
    percent,
    several,
    times,
    whole_percent,
)
from whichwall.analyze.report.document import Block, Figure, Heading, Paragraph, Table, Text
from whichwall.analyze.report.experiments.drawn import NS_PER_MS
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.experiments.words import notes
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.request_times import decode_passes, total_ns
from whichwall.analyze.thresholds import LOOPS_ALIKE
from whichwall.schemas.chart import RequestStages
from whichwall.schemas.experiments import REQUEST, LoopTime, RequestTimes
from whichwall.schemas.passes import Passes
from whichwall.schemas.requests import FREE, GENERATE, WAITING, Requests
from whichwall.schemas.run import frame

LOOPS = {
    WAITING: "by hand, waiting for each pass",
    FREE: "by hand, waiting only at the end",
    GENERATE: "the library's own generate",
}


def answer(inputs: ReportInputs) -> str:
    """Say what takes most of a request, what waiting costs, and whether the tokens are the same."""
    found = inputs.summary.request
    if found is None:
        return "Not known: no whole request was timed."
    return " ".join([_whole(found), *_compared(found), _tokens(found)])


def _whole(found: RequestTimes) -> str:
    size = f"{several(found.prompt_tokens, 'token')} in and {count(found.new_tokens)} out"
    if found.total_ns is None:
        return f"A request of {size} was timed as a whole only."
    parts = [
        f"{name} {whole_percent(took / found.total_ns)}"
        for name, took in _stages(found)
        if took is not None
    ]
    without = "" if found.tokenize_ns is not None else " (no tokenizer: text is not part of it)"
    divided = f": {', '.join(parts)}" if parts else ""
    return f"A request of {size} takes {duration(found.total_ns)}{without}{divided}."


def _stages(found: RequestTimes) -> list[tuple[str, int | None]]:
    return [
        ("tokenize", found.tokenize_ns),
        ("prefill", found.prefill_ns),
        ("decode steps", found.steps_ns),
        ("detokenize", found.detokenize_ns),
    ]


def _compared(found: RequestTimes) -> list[str]:
    loops = {loop.loop: loop for loop in found.loops}
    free, said = loops.get(FREE), []
    if free is not None and (waiting := loops.get(WAITING)) is not None:
        said.append(f"Waiting for each pass to end {_cost(waiting, free)}.")
    if free is not None and (library := loops.get(GENERATE)) is not None:
        said.append(f"The library's generate takes {times(library.to_free)} the loop by hand.")
    return said


def _cost(loop: LoopTime, free: LoopTime) -> str:
    """Say what a loop costs over the free one; within the spread of either, nothing is seen."""
    ratio = loop.to_free or 1.0
    apart = loop.model_ns_lowest > free.model_ns_highest or (
        loop.model_ns_highest < free.model_ns_lowest
    )
    if abs(ratio - 1) < LOOPS_ALIKE:
        return f"costs nothing that can be seen ({times(ratio)})"
    if not apart:
        return f"costs less than requests of one loop differ by ({times(ratio)})"
    return f"makes a request {times(ratio)} as long"


def _tokens(found: RequestTimes) -> str:
    if found.same_tokens is None:
        return f"Whether the loops make the same tokens is {NOT_KNOWN}."
    if found.same_tokens:
        return "All loops made the same tokens."
    return (
        f"{found.requests_alike} of {found.requests_told} requests made the same tokens, the rest "
        "others: where two tokens are about as likely, rounding decides."
    )


def section(inputs: ReportInputs, figures: Collection[str]) -> list[Block]:
    """Return the stages of a request, the loops beside each other, and the timeline."""
    found = inputs.summary.request
    blocks: list[Block] = [Heading("One request, from text to text")]
    if found is None:
        return [*blocks, Paragraph(answer(inputs))]
    if REQUEST in figures:
        blocks.append(Figure(REQUEST, "Each stage at its place; every other step is paler."))
    blocks += [
        Table(head=("stage", "time", "of the request"), rows=tuple(_rows(found)), align="lrr"),
        Heading("Three ways of making the same tokens"),
        Table(
            head=("loop", "requests", "model time", "lowest to highest", "to the free loop"),
            rows=tuple(_loop(loop) for loop in found.loops),
            align="lrrrr",
        ),
        Paragraph(_tokens(found)),
    ]
    needs = (
        "What a loop that does not wait saves, and how far the host runs ahead of a GPU, needs one."
    )
    return blocks + notes(inputs, needs)


def _rows(found: RequestTimes) -> Iterator[tuple[Text, ...]]:
    for name, took in _stages(found):
        share = took / found.total_ns if took is not None and found.total_ns else None
        yield name, duration(took), percent(share)
    yield "whole request", duration(found.total_ns), ""
    yield "first step", duration(found.step_ns_first), ""
    yield "median step", duration(found.step_ns_median), ""
    yield "slowest step", duration(found.step_ns_slowest), ""


def _loop(loop: LoopTime) -> tuple[Text, ...]:
    return (
        LOOPS.get(loop.loop, loop.loop),
        count(loop.requests),
        duration(loop.model_ns),
        f"{duration(loop.model_ns_lowest)} to {duration(loop.model_ns_highest)}",
        times(loop.to_free),
    )


def charts(inputs: ReportInputs) -> dict[str, ChartType]:
    """Return the timeline of the median request of each loop."""
    found = inputs.summary.request
    rows = [
        row
        for loop in (WAITING, FREE, GENERATE)
        for row in _drawn(loop, inputs.requests, inputs.passes)
    ]
    if found is None or not rows:
        return {}
    title = _whole(found).rstrip(".")
    median = found.step_ns_median
    subtitle = ["The median request of each loop."]
    if median is not None and found.new_tokens:
        number = several(found.new_tokens - 1, "decode step")
        subtitle = [f"The median request of each loop; {number}, {duration(median)} each."]
    return {REQUEST: draw(frame(RequestStages, rows), title, subtitle)}


def _drawn(loop: str, requests: pl.DataFrame, passes: pl.DataFrame) -> list[dict[str, object]]:
    """Return `RequestStages` of the request of a loop that took the median time."""
    mine = requests.filter(pl.col(Requests.loop) == loop)
    if mine.is_empty():
        return []
    chosen = mine.sort(total_ns(), Requests.start_ns).row((mine.height - 1) // 2, named=True)
    name = LOOPS[loop]
    rows: list[dict[str, object]] = []
    at = 0.0

    def add(stage: str, took: int | None, number: int | None = None) -> None:
        nonlocal at
        if took is None:
            return
        end = at + took / NS_PER_MS
        rows.append(
            {
                RequestStages.loop: name,
                RequestStages.stage: stage,
                RequestStages.from_ms: at,
                RequestStages.to_ms: end,
                RequestStages.number: number,
            }
        )
        at = end

    add("tokenize", chosen[Requests.tokenize_ns])
    steps = decode_passes(chosen, passes)[Passes.wall_ns].to_list() if loop == WAITING else []
    if chosen[Requests.prefill_ns] is not None and steps:
        add("prefill", chosen[Requests.prefill_ns])
        for number, took in enumerate(steps, 1):
            add("step", took, number)
    else:
        add("model, not divided", chosen[Requests.model_ns])
    add("detokenize", chosen[Requests.detokenize_ns])
    return rows


EXPERIMENT = Experiment(answer, section, charts)
