"""Answer how long the first token takes to come, prompt by prompt, and at what rate."""

from collections.abc import Collection

from altair.typing import ChartType

from whichwall.analyze.charts.lines import lines
from whichwall.analyze.experiments import varied
from whichwall.analyze.quantities import duration, several, significant, with_unit
from whichwall.analyze.report.document import Block, Figure, Heading, Paragraph
from whichwall.analyze.report.experiments.drawn import NS_PER_MS, left_out, line, step_lines, swept
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.experiments.rows import (
    FLOOR,
    GPU_TIME,
    RATES,
    TIMES_FLOOR,
    Row,
    number,
    of_phase,
    steps,
    table,
    timed,
)
from whichwall.analyze.report.experiments.turned import turned
from whichwall.analyze.report.experiments.words import (
    FIT,
    floors,
    not_timed,
    notes,
    nothing_timed,
    rise,
)
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.experiments import PROMPT
from whichwall.schemas.passes import PREFILL
from whichwall.schemas.sweep import Sweep

RATE = "rate"


def answer(inputs: ReportInputs) -> str:
    """Say how the first wait grows with the prompt, and where the rate is highest."""
    rows = _rows(inputs)
    if not rows:
        return nothing_timed(inputs)
    first, last = rows[0], rows[-1]
    said = f"The first token takes {duration(first[Sweep.step_ns])} with {_prompt(first)}"
    if first is not last:
        said += (
            f" and {duration(last[Sweep.step_ns])} with {_prompt(last)}, {_rise(inputs, rows)}"
            f"{floors(first, last)}"
        )
    return " ".join([f"{said}.", _best(rows), *not_timed(of_phase(inputs, PREFILL))])


def _best(rows: list[Row]) -> str:
    known = [row for row in rows if row[Sweep.achieved_tflops] is not None]
    if not known:
        return "The arithmetic rate is not known: the model's FLOPs cannot be counted."
    best = max(known, key=lambda row: row[Sweep.achieved_tflops])
    rate = with_unit(best[Sweep.achieved_tflops], "TFLOP/s")
    return f"The highest rate is {rate}, with {_prompt(best)}."


def _prompt(row: Row) -> str:
    return f"{several(row[Sweep.prompt_tokens], 'token')} of prompt"


def _rise(inputs: ReportInputs, rows: list[Row]) -> str:
    return rise(inputs.summary.knee, rows[0][Sweep.prompt_tokens], "token")


def _rows(inputs: ReportInputs) -> list[Row]:
    return timed(varied(PROMPT, inputs.sweep).iter_rows(named=True))


def _each(row: Row) -> str:
    tokens = row[Sweep.prompt_tokens]
    return significant(row[Sweep.step_ns] / NS_PER_MS / tokens if tokens else None)


def section(inputs: ReportInputs, figures: Collection[str]) -> list[Block]:
    """Return the table of prompts, with the wait and the rate over them."""
    first = number("prompt, tokens", Sweep.prompt_tokens)
    cells = (*steps("first token (TTFT)"), ("ms a token", _each), GPU_TIME, FLOOR, TIMES_FLOOR)
    blocks: list[Block] = [Heading("The first token against the prompt")]
    if PROMPT in figures:
        blocks.append(Figure(PROMPT, "Solid: measured, with p10 to p90. Dashed: the floor."))
    if RATE in figures:
        blocks.append(Figure(RATE, "The arithmetic of a prefill over its time."))
    blocks += [table(of_phase(inputs, PREFILL), first, (*cells, *RATES)), Paragraph(FIT)]
    blocks += turned(inputs)
    return blocks + notes(
        inputs, "From which prompt on a GPU's arithmetic binds needs one.", floor=True
    )


def charts(inputs: ReportInputs) -> dict[str, ChartType]:
    """Return the wait over the prompt, and the rate."""
    rows = _rows(inputs)
    if not rows:
        return {}
    subtitle = [f"Batch {rows[0][Sweep.batch]}. Band: p10 to p90 of clean passes."]
    subtitle += left_out(of_phase(inputs, PREFILL), Sweep.prompt_tokens)
    axes = swept("tokens of prompt", "first token, ms", inputs.summary.knee)
    title = f"The first token over the prompt, {_rise(inputs, rows)}"
    drawn = {PROMPT: lines(step_lines(rows, Sweep.prompt_tokens), axes, title, subtitle)}
    rates = line(rows, Sweep.prompt_tokens, "reached", lambda row: row[Sweep.achieved_tflops])
    if rates.height:
        axes = swept("tokens of prompt", "TFLOP/s", None)
        drawn[RATE] = lines(rates, axes, _best(rows).rstrip("."), ["FLOPs of matrix products."])
    return drawn


EXPERIMENT = Experiment(answer, section, charts)
