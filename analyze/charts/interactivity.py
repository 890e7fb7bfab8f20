"""Draw what each user gets against what all get: the roofline dashed, what was measured solid."""

import math

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import ROLE_COLOURS, SERIES_COLOURS
from whichwall.analyze.quantities import count, significant, with_unit
from whichwall.schemas import roles
from whichwall.schemas.chart import Interactivity

HEIGHT = 460
# A colour per context; more than these are not told apart.
COLOURS = (*SERIES_COLOURS, ROLE_COLOURS[roles.KV_CACHE], ROLE_COLOURS[roles.COMMUNICATION])
# Room for the names of curves at their left ends, and for batches beside the right ones.
LEFT_PX, RIGHT_PX, ENDS_PX = 150, 60, 30
LABEL_PX = 16
LEAST_SPAN = math.log(2)  # of an axis on which all values are one

_NAME, _SAID, _LABEL_Y = "name", "said", "label_y"


def interactivity(rows: pl.DataFrame, title: str, subtitle: list[str]) -> ChartType:
    """Draw `Interactivity`: a curve per context and engine, a point per batch, both axes log."""
    rows = rows.with_columns(pl.Series(_NAME, _names(rows), pl.String))
    paper = rows.filter(pl.col(Interactivity.engine).is_null())
    run = rows.filter(pl.col(Interactivity.engine).is_not_null())
    layers: list[alt.Chart] = []
    if paper.height:
        layers += _curves(paper, rows, dashed=True)
    if run.height:
        layers += _curves(run, rows, dashed=False)
    layers += _batches(rows)
    layers += _labels(rows)
    chart: ChartType = alt.layer(*layers).properties(
        width=theme.WIDTH, height=HEIGHT, title=alt.TitleParams(text=title, subtitle=subtitle)
    )
    return theme.themed(chart)


def finding(rows: pl.DataFrame) -> str:
    """Return the title: what one sequence gets, and what the largest batch of its curve gets."""
    shown = _leading(rows)
    first, last = shown.row(0, named=True), shown.row(-1, named=True)
    engine, batch = first[Interactivity.engine], first[Interactivity.batch]
    most = "at most " if engine is None else ""
    ran = f" with {engine}" if _engines(rows) > 1 else ""
    one = with_unit(first[Interactivity.tokens_per_s_each], "tokens/s")
    alone = "One sequence gets" if batch == 1 else f"Each of {count(batch)} sequences gets"
    if shown.height == 1:
        return f"{alone} {most}{one}{ran}"
    return (
        f"{alone} {most}{one}{ran}; {count(last[Interactivity.batch])} together get "
        f"{with_unit(last[Interactivity.tokens_per_s], 'tokens/s')}, "
        f"{significant(last[Interactivity.tokens_per_s_each])} each"
    )


def _leading(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the curve that reaches the most tokens, by batch; a measured one if there is any."""
    run = rows.filter(pl.col(Interactivity.engine).is_not_null())
    shown = run if run.height else rows
    best = shown.sort(Interactivity.tokens_per_s, descending=True, maintain_order=True).head(1)
    curve = [Interactivity.context_tokens, Interactivity.engine]
    same = shown.join(best.select(curve), on=curve, how="semi", nulls_equal=True)
    return same.sort(Interactivity.batch)


def _engines(rows: pl.DataFrame) -> int:
    return rows.get_column(Interactivity.engine).drop_nulls().n_unique()


def _names(rows: pl.DataFrame) -> list[str]:
    """Name each row's curve by its context, and by its engine where several ran."""
    several = _engines(rows) > 1
    return [
        f"{count(row[Interactivity.context_tokens])} tokens"
        + (f", {row[Interactivity.engine]}" if several and row[Interactivity.engine] else "")
        for row in rows.iter_rows(named=True)
    ]


def _x(rows: pl.DataFrame) -> alt.X:
    values = rows.get_column(Interactivity.tokens_per_s_each)
    low, high = _domain(values, theme.WIDTH, LEFT_PX, RIGHT_PX)
    return alt.X(
        f"{Interactivity.tokens_per_s_each}:Q",
        title="interactivity: tokens per second for each sequence",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=_round(low, high), format=",~r", labelOverlap="greedy"),
    )


def _y(rows: pl.DataFrame, field: str = Interactivity.tokens_per_s) -> alt.Y:
    low, high = _y_domain(rows)
    return alt.Y(
        f"{field}:Q",
        title="throughput: tokens per second for all",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=_round(low, high), format=",~r"),
    )


def _y_domain(rows: pl.DataFrame) -> tuple[float, float]:
    return _domain(rows.get_column(Interactivity.tokens_per_s), HEIGHT, ENDS_PX, ENDS_PX)


def _domain(values: pl.Series, size_px: int, before_px: int, after_px: int) -> tuple[float, float]:
    """Return the ends of a logarithmic axis with so many pixels free on either side."""
    found = values.to_list()
    span = math.log(max(found) / min(found)) or LEAST_SPAN
    per_px = span / (size_px - before_px - after_px)
    return min(found) / math.exp(before_px * per_px), max(found) * math.exp(after_px * per_px)


def _round(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 of each power of ten between two values."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= high]


def _colour(rows: pl.DataFrame) -> alt.Color:
    contexts = sorted(rows.get_column(Interactivity.context_tokens).unique())
    colours = [COLOURS[place % len(COLOURS)] for place in range(len(contexts))]
    scale = alt.Scale(domain=contexts, range=colours)
    return alt.Color(f"{Interactivity.context_tokens}:N", scale=scale, legend=None)


def _curves(mine: pl.DataFrame, rows: pl.DataFrame, *, dashed: bool) -> list[alt.Chart]:
    x, y, colour = _x(rows), _y(rows), _colour(rows)
    base = alt.Chart(mine)
    line = base.mark_line(strokeWidth=1.6, strokeDash=[4, 3]) if dashed else base.mark_line()
    size = 22 if dashed else 46
    return [
        line.encode(
            x=x,
            y=y,
            color=colour,
            detail=f"{_NAME}:N",
            order=alt.Order(f"{Interactivity.batch}:Q"),
        ),
        base.mark_point(filled=True, size=size, opacity=1).encode(
            x=x,
            y=y,
            color=colour,
            tooltip=[
                alt.Tooltip(f"{_NAME}:N", title="context"),
                alt.Tooltip(f"{Interactivity.batch}:Q", title="batch", format=","),
                alt.Tooltip(f"{Interactivity.tokens_per_s_each}:Q", title="each", format=",.4~r"),
                alt.Tooltip(f"{Interactivity.tokens_per_s}:Q", title="all", format=",.4~r"),
            ],
        ),
    ]


def _batches(rows: pl.DataFrame) -> list[alt.Chart]:
    """Write the batch beside the points of the leading curve."""
    leading = _leading(rows)
    said = [
        f"batch {count(batch)}" if place == 0 else count(batch)
        for place, batch in enumerate(leading.get_column(Interactivity.batch))
    ]
    labelled = leading.with_columns(pl.Series(_SAID, said, pl.String))
    return [
        alt.Chart(labelled)
        .mark_text(style=theme.NOTE, align="left", baseline="bottom", dx=5, dy=-4)
        .encode(x=_x(rows), y=_y(rows), text=alt.Text(f"{_SAID}:N"))
    ]


def _labels(rows: pl.DataFrame) -> list[alt.Chart]:
    """Name each curve at its left end, where curves lie apart; names never touch."""
    by_batch = rows.sort(Interactivity.batch, maintain_order=True)
    curve = [_NAME, Interactivity.engine]
    last = by_batch.group_by(curve, maintain_order=True).last()
    last = last.sort(Interactivity.tokens_per_s, descending=True, maintain_order=True)
    low, high = _y_domain(rows)
    per_px = math.log(high / low) / HEIGHT
    places: list[float] = []  # pixels from the top
    for value in last.get_column(Interactivity.tokens_per_s):
        down = math.log(high / value) / per_px
        places.append(max(down, places[-1] + LABEL_PX if places else 0.0))
    heights = [high / math.exp(px * per_px) for px in places]
    base = alt.Chart(last.with_columns(pl.Series(_LABEL_Y, heights, pl.Float64)))
    return [
        base.transform_filter(f"datum.{Interactivity.engine} {equals} null")
        .mark_text(style=style, align="right", baseline="middle", dx=-9)
        .encode(x=_x(rows), y=_y(rows, _LABEL_Y), text=alt.Text(f"{_NAME}:N"))
        for equals, style in (("===", theme.NOTE), ("!==", theme.STRONG))
    ]
