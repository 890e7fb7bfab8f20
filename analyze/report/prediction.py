"""Write a prediction for a terminal: tables of operations, and below them what they come to."""

import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from whichwall.analyze.quantities import (
    NOT_KNOWN,
    amount_of_bytes,
    amount_of_flops,
    count,
    duration,
    several,
    significant,
    whole_percent,
    with_unit,
)
from whichwall.schemas.passes import DECODE
from whichwall.schemas.prediction import (
    Communication,
    Crossover,
    Limits,
    Memory,
    PredictedOperation,
    PredictedPass,
    Prediction,
)

# Where output goes into a file or a pipe, no terminal says how wide a line may be.
PIPED_WIDTH = 100
# The widest table, which is never cut: a narrower terminal folds its lines.
LEAST_WIDTH = 84
NONE = "–"
COLUMNS = ("operation", "×", "FLOPs", "bytes", "FLOP/B", "T_mem", "T_comp", "binds")


def render(found: Prediction, *, terminal: bool = False) -> str:
    """Return the text of a prediction; in a terminal with emphasis, else plain."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=None if terminal else PIPED_WIDTH,
        force_terminal=terminal,
        markup=False,
        highlight=False,
        emoji=False,
    )
    console.width = max(console.width, LEAST_WIDTH)
    console.print(_head(found))
    for one in found.passes:
        console.print(f"\n{_title(one)}", style="bold")
        console.print(_operations(one.operations))
        _points(console, _totals(one, found.limits))
    console.print("\nCrossover", style="bold")
    _points(console, _crossover(found.crossover))
    console.print("\nMemory of a card", style="bold")
    _points(console, _memory(found.memory, _batch(found)))
    console.print(_fits(found.memory))
    console.print("\nAssumed", style="bold")
    _points(console, found.assumed)
    console.print("\nNot counted", style="bold")
    _points(console, found.not_counted)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _head(found: Prediction) -> str:
    limits = found.limits
    name = "".join(c for c in found.model if c.isprintable())
    active = ""
    if found.active_parameters != found.parameters:
        active = f", {count(found.active_parameters)} active for a token"
    rate = "arithmetic rate not known"
    if limits.tflops is not None:
        dtype = f" {limits.tflops_dtype}" if limits.tflops_dtype else ""
        rate = f"{with_unit(limits.tflops, 'TFLOP/s')}{dtype} ({limits.tflops_from})"
    ranks = f", tensor parallel over {found.tensor_parallel}" if found.tensor_parallel > 1 else ""
    lines = [
        f"{name}: {count(found.parameters)} parameters{active}; weights {found.dtype}, "
        f"cache {found.kv_dtype}{ranks}",
        f"{limits.name}: {with_unit(limits.bandwidth_gbps, 'GB/s')} ({limits.bandwidth_from}), "
        f"{rate}",
    ]
    return "\n".join([*lines, *([f"source: {limits.source}"] if limits.source else [])])


def _title(one: PredictedPass) -> str:
    if one.phase == DECODE:
        what = "a token of one sequence"
        if one.batch > 1:
            what = f"a token for each of {count(one.batch)} sequences"
        return f"Decode: {what}, {count(one.context_tokens)} tokens cached"
    return f"Prefill: {count(one.tokens)} tokens of {several(one.batch, 'sequence')}, none cached"


def _table(columns: Sequence[str]) -> Table:
    """Return a table whose first column is words and whose others are numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place else "left", no_wrap=True)
    return table


def _operations(rows: Iterable[PredictedOperation]) -> Table:
    table = _table(COLUMNS)
    for row in rows:
        table.add_row(
            row.name,
            count(row.count),
            amount_of_flops(row.flops) if row.flops else "0",
            amount_of_bytes(row.bytes),
            significant(row.intensity) if row.bytes else NONE,
            duration(row.memory_ns),
            duration(row.arithmetic_ns) if row.flops else "0",
            row.binds or NOT_KNOWN,
        )
    return table


def _totals(one: PredictedPass, limits: Limits) -> list[str]:
    each = with_unit(one.tokens_per_s_each, "tokens/s")
    rate = f"{with_unit(one.tokens_per_s, 'tokens/s')}, {each} for each sequence"
    if one.batch == 1:
        rate = each
    fed = ""
    if one.phase != DECODE:
        fed = f" of the prompt; no first token before {duration(one.step_ns)}"
    binding = ""
    if one.binds is not None:
        binding = f"; bytes bind for {whole_percent(one.bytes_share)} of it"
    found = [
        f"step {duration(one.step_ns)} = Σ max(T_mem, T_comp){binding}",
        f"bytes floor {duration(one.bytes_ns)} ({amount_of_bytes(one.bytes)}), arithmetic floor "
        f"{duration(one.arithmetic_ns)} ({amount_of_flops(one.flops)}); "
        f"{with_unit(one.intensity, 'FLOP/byte')}, and the card balances at "
        f"{with_unit(limits.balance, 'FLOP/byte')}",
        f"at most {rate}{fed}",
    ]
    if one.expected_experts is not None:
        found.append(f"{significant(one.expected_experts)} distinct experts expected in a layer")
    return found + _communication(one.communication)


def _communication(sent: Communication | None) -> list[str]:
    if sent is None:
        return []
    took = "in a time not known (no rate of the link), so not in the step"
    if sent.time_ns is not None:
        took = f"in {duration(sent.time_ns)}, which the step includes"
    return [
        f"{count(sent.all_reduces)} all-reduces of {amount_of_bytes(sent.all_reduce_bytes)} and "
        f"logits gathered: each rank sends {amount_of_bytes(sent.sent_bytes)} {took}"
    ]


def _crossover(found: Crossover) -> list[str]:
    if found.balance is None:
        return ["not known: it needs the card's arithmetic rate"]
    at = "at no batch"
    if found.weights is not None:
        at = f"at a batch of {count(found.weights)}"
    step = "at no batch: each sequence brings a cache of its own to read"
    if found.step is not None:
        step = f"at a batch of {count(found.step)}"
    return [
        f"decode's weights stop binding {at}: from there on, arithmetic with all weights takes at "
        "least as long as reading them",
        f"the whole decode step, with its cache of {count(found.context_tokens)} tokens a "
        f"sequence, {step}",
    ]


def _batch(found: Prediction) -> int:
    return found.passes[0].batch


def _memory(found: Memory, batch: int) -> list[str]:
    usable = ""
    if found.usable_bytes is not None:
        usable = f" of {amount_of_bytes(found.usable_bytes)} usable"
    lines = [
        f"weights {amount_of_bytes(found.weight_bytes)}; cache "
        f"{amount_of_bytes(found.cache_bytes_per_token)} per token and conversation; as asked "
        f"{amount_of_bytes(found.asked_bytes)}{usable}",
    ]
    if found.usable_bytes is None:
        return lines
    if found.usable_bytes < found.weight_bytes:
        return [*lines, "the weights alone do not fit"]
    if found.longest_context_tokens is None:
        reach = "any length: windows bound the cache"
        return [*lines, f"room for {several(batch, 'conversation')} of {reach}"]
    reach = count(found.longest_context_tokens)
    return [*lines, f"room for {several(batch, 'conversation')} of up to {reach} tokens"]


def _fits(found: Memory) -> Padding:
    table = _table(("tokens each", "cache of one", "conversations that fit"))
    for fit in found.fits:
        table.add_row(
            count(fit.context_tokens), amount_of_bytes(fit.cache_bytes), count(fit.conversations)
        )
    return Padding(table, (0, 0, 0, 2))


def _points(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        point = Table.grid(padding=(0, 1, 0, 0))
        point.add_row(" -", line)
        console.print(point)
