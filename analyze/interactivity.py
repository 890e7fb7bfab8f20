"""Lay what each user gets against what all get together: on paper, and as a run measured it."""

from collections.abc import Iterable
from dataclasses import replace

import polars as pl

from whichwall.analyze.capacity import conversation_bytes, reaches
from whichwall.analyze.predict import predicted_pass
from whichwall.analyze.predict_setting import Setting
from whichwall.schemas.chart import Interactivity
from whichwall.schemas.engines import OPENAI
from whichwall.schemas.passes import DECODE
from whichwall.schemas.prediction import Memory
from whichwall.schemas.run import frame
from whichwall.schemas.serving import Served
from whichwall.schemas.sweep import Sweep

NS_PER_S = 1e9
# Batches are doubled up to here, or up to what memory holds.
LARGEST_BATCH = 512


def curves(asked: Setting, held: Memory, contexts: Iterable[int]) -> pl.DataFrame:
    """Return `Interactivity` of decode steps on paper: a curve per context, batches doubled.

    `held` is the setting's memory: where it is known, a curve ends at the last batch that fits.
    """
    rows: list[dict[str, object]] = []
    for context in contexts:
        batch = 1
        while batch <= LARGEST_BATCH and _fits(asked, held, context, batch):
            found = predicted_pass(replace(asked, batch=batch, context_tokens=context), DECODE)
            rows.append(_row(context, None, batch, found.step_ns))
            batch *= 2
    return frame(Interactivity, rows)


def measured(sweep: pl.DataFrame) -> pl.DataFrame:
    """Return `Interactivity` of the decode steps of a `Sweep`, points in order of their batch."""
    known = _decode(sweep)
    return frame(
        Interactivity,
        [
            _row(
                row[Sweep.context_tokens],
                row[Sweep.engine] or "measured",
                row[Sweep.batch],
                row[Sweep.step_ns],
            )
            for row in known.iter_rows(named=True)
        ],
    )


def served(found: Iterable[Served]) -> pl.DataFrame:
    """Return `Interactivity` of a server as a client saw it, a point per number of lanes.

    Each user gets 1 / TPOT while an answer comes; all get what came while every lane was under way,
    their waits for first tokens included.
    """
    rows = [
        {
            Interactivity.context_tokens: one.prompt_tokens,
            Interactivity.engine: OPENAI,
            Interactivity.batch: one.lanes,
            Interactivity.tokens_per_s_each: NS_PER_S / one.tpot.median_ns,
            Interactivity.tokens_per_s: one.tokens_per_s,
        }
        for one in found
        if one.tpot is not None and one.tpot.median_ns > 0
        if one.tokens_per_s and one.prompt_tokens is not None and one.lanes is not None
    ]
    order = [Interactivity.context_tokens, Interactivity.batch]
    return frame(Interactivity, rows).sort(order, maintain_order=True)


def floors(sweep: pl.DataFrame) -> pl.DataFrame:
    """Return `Interactivity` of the floors of the same steps: the roofline below each."""
    known = _decode(sweep).filter(pl.col(Sweep.floor_ns) > 0)
    pairs = known.unique([Sweep.context_tokens, Sweep.batch], keep="first", maintain_order=True)
    return frame(
        Interactivity,
        [
            _row(row[Sweep.context_tokens], None, row[Sweep.batch], row[Sweep.floor_ns])
            for row in pairs.iter_rows(named=True)
        ],
    )


def _decode(sweep: pl.DataFrame) -> pl.DataFrame:
    asked = pl.col(Sweep.batch).is_not_null() & pl.col(Sweep.context_tokens).is_not_null()
    timed = (pl.col(Sweep.phase) == DECODE) & (pl.col(Sweep.step_ns) > 0)
    return sweep.filter(asked & timed).sort(
        Sweep.context_tokens, Sweep.engine, Sweep.batch, Sweep.point, maintain_order=True
    )


def _fits(asked: Setting, held: Memory, context: int, batch: int) -> bool:
    if not reaches(asked.model, context + 1):
        return False
    if held.usable_bytes is None:
        return True
    entry = held.cache_bytes_per_token // asked.model.layers
    # The share of a rank has fewer heads, which `held` counts already, and the same layers.
    of_one = conversation_bytes(asked.model, entry, context)
    return held.weight_bytes + batch * of_one <= held.usable_bytes


def _row(context: int, engine: str | None, batch: int, step_ns: int) -> dict[str, object]:
    each = NS_PER_S / step_ns
    return {
        Interactivity.context_tokens: context,
        Interactivity.engine: engine,
        Interactivity.batch: batch,
        Interactivity.tokens_per_s_each: each,
        Interactivity.tokens_per_s: batch * each,
    }
