"""Answer up to how many sequences a step costs what it costs for one, and what each then gets."""

from collections.abc import Collection

import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts.interactivity import finding, interactivity
from whichwall.analyze.charts.lines import Axes, lines
from whichwall.analyze.experiments import varied
from whichwall.analyze.interactivity import floors, measured
from whichwall.analyze.quantities import count, duration, several, significant, times, with_unit
from whichwall.analyze.report.document import Block, Figure, Heading, Paragraph
from whichwall.analyze.report.experiments.drawn import line, step_lines, swept
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.experiments.rows import (
    CACHE,
    FLOOR,
    MEMORY,
    RATES,
    TIMES_FLOOR,
    Row,
    number,
    of_phase,
    steps,
    table,
    timed,
    traced,
)
from whichwall.analyze.report.experiments.turned import turned
from whichwall.analyze.report.experiments.words import FIT, notes, nothing_timed
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.moves import predicted_by_batch
from whichwall.schemas.experiments import BATCH
from whichwall.schemas.passes import DECODE
from whichwall.schemas.points import OUT_OF_MEMORY
from whichwall.schemas.sweep import Sweep

THROUGHPUT, INTERACTIVITY = "throughput", "interactivity"
FEWEST_POINTS = 2  # of a curve


def answer(inputs: ReportInputs) -> str:
    """Say where the free ride ends, and how the largest batch ended."""
    rows = _rows(inputs)
    if not rows:
        return nothing_timed(inputs)
    return " ".join([_ride(inputs, rows), *_memory(inputs)])


def _ride(inputs: ReportInputs, rows: list[Row]) -> str:
    first, last = rows[0], rows[-1]
    found = inputs.summary.knee
    one = f"{duration(first[Sweep.step_ns])} for {_several(first)}"
    if len(rows) == 1:
        return f"A step takes {one}; where the free ride ends is not known: one batch was timed."
    whole = f"{_several(last)} take {duration(last[Sweep.step_ns])} and give {_all(last)} in all"
    if found is None:
        return f"A step takes {one}, with no clear rise up to the largest batch timed: {whole}."
    if found.at == first[Sweep.batch]:
        return f"There is no free ride: a step takes {one} and rises from there on; {whole}."
    knee = next(row for row in rows if row[Sweep.batch] == found.at)
    ratio = last[Sweep.step_ns] / knee[Sweep.step_ns]
    return (
        f"Up to {_several(knee)} a step costs about what it costs for {_several(first)} "
        f"({duration(knee[Sweep.step_ns])} and {duration(first[Sweep.step_ns])}), which gives "
        f"{_all(knee)} in all; {_several(last)} take {times(ratio)} that step and give "
        f"{_all(last)}."
    )


def _memory(inputs: ReportInputs) -> list[str]:
    rows = of_phase(inputs, DECODE)
    out = [row for row in rows if row[Sweep.outcome] == OUT_OF_MEMORY and row[Sweep.batch]]
    if not out:
        return []
    least = min(out, key=lambda row: row[Sweep.batch])
    return [f"Memory ran out at {_several(least)}."]


def _several(row: Row) -> str:
    batch = row[Sweep.batch]
    return "one sequence" if batch == 1 else f"{count(batch)} sequences"


def _all(row: Row) -> str:
    return with_unit(row[Sweep.tokens_per_s], "tokens/s")


def _rows(inputs: ReportInputs) -> list[Row]:
    return timed(varied(BATCH, inputs.sweep).iter_rows(named=True))


def section(inputs: ReportInputs, figures: Collection[str]) -> list[Block]:
    """Return the table of batches, with step and throughput over them."""
    first = number("batch", Sweep.batch)
    rows = of_phase(inputs, DECODE)
    cells = (
        *steps("decode step"),
        *predicted_by_batch(inputs),
        ("tokens/s in all", lambda row: significant(row[Sweep.tokens_per_s])),
        ("per sequence", lambda row: significant(row[Sweep.tokens_per_s_each])),
        *RATES,
        CACHE,
        MEMORY,
        FLOOR,
        TIMES_FLOOR,
        *traced(rows),
    )
    blocks: list[Block] = [Heading("The step against the batch")]
    if BATCH in figures:
        blocks.append(Figure(BATCH, "Solid: measured, with p10 to p90. Dashed: the floor."))
    if THROUGHPUT in figures:
        blocks.append(Figure(THROUGHPUT, "Tokens a second, of all sequences and of each."))
    if INTERACTIVITY in figures:
        said = "Solid: measured, a point per batch. Dashed: the floor of the same steps."
        blocks.append(Figure(INTERACTIVITY, said))
    blocks += [table(rows, first, cells), Paragraph(FIT), *turned(inputs)]
    return blocks + notes(inputs, "Where a GPU's free ride ends needs one.", floor=True)


def charts(inputs: ReportInputs) -> dict[str, ChartType]:
    """Return the step over the batch, and the throughput."""
    rows = _rows(inputs)
    if not rows:
        return {}
    found = inputs.summary.knee
    context = several(rows[0][Sweep.context_tokens], "token")
    subtitle = [f"Context of {context}. Band: p10 to p90 of clean passes.", *_memory(inputs)]
    title = "No clear rise of the step with the batch, as far as was measured"
    if found is not None:
        title = f"The step rises with the batch from {count(found.at)} on"
    axes = swept("sequences generating at once", "one decode step, ms", found)
    drawn = {BATCH: lines(step_lines(rows, Sweep.batch), axes, title, subtitle)}
    rates = line(rows, Sweep.batch, "all sequences", lambda row: row[Sweep.tokens_per_s]).vstack(
        line(rows, Sweep.batch, "one sequence", lambda row: row[Sweep.tokens_per_s_each])
    )
    if rates.height:
        axes = Axes("sequences generating at once", "tokens per second")
        most = max(rows, key=lambda row: row[Sweep.tokens_per_s] or 0)
        title = f"{_all(most)} in all, generating {_several(most)}"
        drawn[THROUGHPUT] = lines(rates, axes, title, _memory(inputs))
    return drawn | _interactivity(inputs)


def _interactivity(inputs: ReportInputs) -> dict[str, ChartType]:
    """Return what each sequence gets against what all get, where several batches were timed."""
    swept_rows = varied(BATCH, inputs.sweep)
    points = measured(swept_rows)
    if points.height < FEWEST_POINTS:
        return {}
    rows = pl.concat([floors(swept_rows), points])
    return {INTERACTIVITY: interactivity(rows, finding(rows), _memory(inputs))}


EXPERIMENT = Experiment(answer, section, charts)
