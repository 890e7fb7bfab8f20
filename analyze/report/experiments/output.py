"""Answer what an answer's length costs: the first token, each further one, and all of it."""

from collections.abc import Collection

from altair.typing import ChartType

from whichwall.analyze.charts.lines import Axes, lines
from whichwall.analyze.knee import spread
from whichwall.analyze.quantities import NOT_KNOWN, count, duration, several, significant
from whichwall.analyze.report.document import Block, Figure, Heading
from whichwall.analyze.report.experiments.drawn import NS_PER_MS, left_out, line
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.experiments.rows import Row, number, of_phase, table, timed
from whichwall.analyze.report.experiments.words import notes, nothing_timed
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.experiments import OUTPUT
from whichwall.schemas.knee import LEAST_RISE, knee
from whichwall.schemas.passes import PREFILL
from whichwall.schemas.sweep import Sweep

NS_PER_S = 1e9


def answer(inputs: ReportInputs) -> str:
    """Say how much of a request is its first wait, and what each further token adds."""
    rows = _rows(inputs)
    if not rows:
        return nothing_timed(inputs)
    last = rows[-1]
    said = f"The first token takes {_span([row[Sweep.ttft_ns] for row in rows])}"
    each = [row[Sweep.tpot_ns] for row in rows if row[Sweep.tpot_ns] is not None]
    if len(rows) > 1:
        waits = [(row[Sweep.new_tokens] or 0, row[Sweep.ttft_ns]) for row in rows]
        grows = knee(waits, max(LEAST_RISE, spread(inputs.sweep)))
        said += ", longer before a long answer" if grows else ", whatever the answer's length"
    if not each:
        return f"{said}; what a further token takes is {NOT_KNOWN}: each answer has only one."
    return (
        f"{said}, and each further token {_span(each)}: an answer of "
        f"{count(last[Sweep.new_tokens])} tokens takes {duration(last[Sweep.request_ns])}, "
        f"{significant(_rate(last))} tokens/s."
    )


def _span(values: list[int]) -> str:
    low, high = min(values), max(values)
    return (
        duration(low) if duration(low) == duration(high) else f"{duration(low)} to {duration(high)}"
    )


def _rows(inputs: ReportInputs) -> list[Row]:
    found = [row for row in timed(of_phase(inputs, PREFILL)) if row[Sweep.request_ns]]
    return sorted(found, key=lambda row: row[Sweep.new_tokens] or 0)


def _rate(row: Row) -> float | None:
    """Return tokens a second over the whole request, all sequences together."""
    took, tokens = row[Sweep.request_ns], row[Sweep.request_tokens]
    if not took or tokens is None:
        return None
    return float((row[Sweep.batch] or 1) * tokens * NS_PER_S / took)


def section(inputs: ReportInputs, figures: Collection[str]) -> list[Block]:
    """Return the table of answers, and the chart of the whole request over its length."""
    first = number("new tokens", Sweep.new_tokens)
    cells = (
        ("first token (TTFT)", lambda row: duration(row[Sweep.ttft_ns])),
        ("each further (TPOT)", lambda row: duration(row[Sweep.tpot_ns])),
        ("whole request", lambda row: duration(row[Sweep.request_ns])),
        ("tokens/s", lambda row: significant(_rate(row))),
        ("visits", lambda row: count(row[Sweep.visits])),
    )
    blocks: list[Block] = [Heading("The request against the length of its answer")]
    if OUTPUT in figures:
        blocks.append(Figure(OUTPUT, "The whole request, and the part of it before a first token."))
    blocks.append(table(of_phase(inputs, PREFILL), first, cells))
    return blocks + notes(inputs, "How a GPU's waits divide needs one.")


def charts(inputs: ReportInputs) -> dict[str, ChartType]:
    """Return the whole request and its first wait over the length of the answer."""
    rows = _rows(inputs)
    if not rows:
        return {}
    whole, first = (
        (lambda row, column=column: row[column] / NS_PER_MS)
        for column in (Sweep.request_ns, Sweep.ttft_ns)
    )
    drawn = line(rows, Sweep.new_tokens, "whole request", whole).vstack(
        line(rows, Sweep.new_tokens, "first token", first)
    )
    axes = Axes("tokens of the answer", "ms")
    last = rows[-1]
    title = (
        f"{several(last[Sweep.new_tokens], 'token')} in {duration(last[Sweep.request_ns])}, "
        f"the first in {duration(last[Sweep.ttft_ns])}"
    )
    subtitle = [
        f"Prompt of {several(last[Sweep.prompt_tokens], 'token')}, batch {last[Sweep.batch]}."
    ]
    subtitle += left_out(of_phase(inputs, PREFILL), Sweep.new_tokens)
    return {OUTPUT: lines(drawn, axes, title, subtitle)}


EXPERIMENT = Experiment(answer, section, charts)
