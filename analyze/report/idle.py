"""Say where the GPU is idle: gaps by cause, what each cause means, and what stands around them."""

import polars as pl

from whichwall.analyze.causes import LEGEND, MEANING
from whichwall.analyze.names import short_name
from whichwall.analyze.quantities import NOT_KNOWN, count, duration, percent
from whichwall.analyze.report.document import (
    Block,
    Code,
    Figure,
    Heading,
    Items,
    Paragraph,
    Strong,
    Table,
    Text,
)
from whichwall.analyze.report.subject import Subject
from whichwall.schemas.gaps import CAUSES, Gaps
from whichwall.schemas.steps import Steps

MOST_PLACES = 8
NAME_WIDTH = 40
_P99 = 0.99

_TOTAL, _COUNT, _MEDIAN, _TAIL = "total", "count", "median", "tail"


def idle(subject: Subject, figures: set[str]) -> list[Block]:
    """Return the table of gaps by cause with the meaning of each, and the costliest places."""
    blocks: list[Block] = [Heading("Where the GPU is idle")]
    if subject.device is None:
        return [*blocks, Paragraph(f"{NOT_KNOWN.capitalize()}: no GPU activity is on record.")]
    causes = by_cause(subject.gaps)
    if causes.is_empty():
        return [*blocks, Paragraph("Nowhere: there is no gap between its activities.")]
    window = _mean_window_ns(subject, subject.device.window_ns)
    whole = int(causes.select(pl.col(_TOTAL).sum()).item())
    said = (
        f"As traced, the GPU is idle {duration(whole / subject.count)} {subject.per}, in "
        f"{count(round(subject.gaps.height / subject.count))} gaps; the window of one "
        f"{subject.step} is {duration(window)} (both means). The profiler lengthens gaps whose end "
        "waits for the host."
    )
    blocks.append(Paragraph(said))
    if "gaps" in figures:
        blocks.append(Figure("gaps", "Idle time by the length of the gap and by its cause."))
    rows = tuple(_row(row, subject, whole, window) for row in causes.iter_rows(named=True))
    head = (
        "cause", f"gaps {subject.per}", f"idle {subject.per}", "of all idle",
        "of the mean window", "median gap", "p99 gap",
    )  # fmt: skip
    blocks.append(Table(head=head, rows=rows, align="lrrrrrr"))
    met = causes.get_column(Gaps.cause)
    blocks.append(Items(tuple(_meaning(cause) for cause in met)))
    return blocks + _places(subject, whole)


def _mean_window_ns(subject: Subject, recording_ns: int) -> float:
    """Return what idle time per step is a part of; totals over steps divide to means."""
    mean = subject.steps[Steps.window_ns].mean() if subject.group else None
    return mean if isinstance(mean, float) else float(recording_ns)


def by_cause(gaps: pl.DataFrame) -> pl.DataFrame:
    """Return count, total, median and 99th percentile of the gaps of each cause, in order."""
    length = pl.col(Gaps.dur_ns)
    return (
        gaps.group_by(Gaps.cause)
        .agg(
            pl.len().alias(_COUNT),
            length.sum().alias(_TOTAL),
            length.median().alias(_MEDIAN),
            length.quantile(_P99, interpolation="higher").alias(_TAIL),
        )
        .sort(
            pl.col(Gaps.cause).replace_strict(
                {cause: place for place, cause in enumerate(CAUSES)}, return_dtype=pl.Int32
            )
        )
    )


def _row(row: dict[str, float], subject: Subject, whole: int, window: float) -> tuple[Text, ...]:
    cause = str(row[Gaps.cause])
    each = row[_TOTAL] / subject.count
    return (
        (Code(cause), f" {LEGEND[cause]}"),
        count(row[_COUNT] / subject.count),
        duration(each),
        percent(row[_TOTAL] / whole),
        percent(each / window if window else None),
        duration(row[_MEDIAN]),
        duration(row[_TAIL]),
    )


def _meaning(cause: str) -> Text:
    return (Strong(cause), f": {MEANING[cause][:1].lower()}{MEANING[cause][1:]}")


def _places(subject: Subject, whole: int) -> list[Block]:
    """Name the operators between which most of the idle time lies."""
    # Grouped as numbers: texts would be written out in full for each gap.
    before = pl.coalesce(Gaps.before_op, Gaps.before_name).cast(pl.Categorical)
    after = pl.coalesce(Gaps.after_op, Gaps.after_name).cast(pl.Categorical)
    length = pl.col(Gaps.dur_ns)
    ranked = (
        subject.gaps.group_by(before.alias(Gaps.before_name), after.alias(Gaps.after_name))
        .agg(length.sum().alias(_TOTAL), pl.len().alias(_COUNT), length.median().alias(_MEDIAN))
        .with_columns(pl.col(Gaps.before_name, Gaps.after_name).cast(pl.String))
        .sort(_TOTAL, Gaps.before_name, Gaps.after_name, descending=[True, False, False])
        .head(MOST_PLACES)
    )
    rows = tuple(
        (
            Code(short_name(row[Gaps.before_name], NAME_WIDTH)),
            Code(short_name(row[Gaps.after_name], NAME_WIDTH)),
            count(row[_COUNT] / subject.count),
            duration(row[_TOTAL] / subject.count),
            duration(row[_MEDIAN]),
            percent(row[_TOTAL] / whole),
        )
        for row in ranked.iter_rows(named=True)
    )
    head = (
        "after", "before", f"gaps {subject.per}", f"idle {subject.per}", "median gap",
        "of all idle",
    )  # fmt: skip
    said = "The operators (or kernels, where no operator is on record) with most idle time between:"
    return [Paragraph(said), Table(head=head, rows=rows, align="llrrrr")]
