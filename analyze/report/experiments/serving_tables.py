"""Tables of what a client got of a server: waits, rates and how requests failed."""

from collections.abc import Iterable, Sequence

from whichwall.analyze.quantities import NOT_KNOWN, count, duration, significant
from whichwall.analyze.report.document import Table, Text
from whichwall.schemas.experiments import BATCH, OUTPUT, PROMPT
from whichwall.schemas.points import DONE
from whichwall.schemas.serving import Served, Waits

NOTHING = "–"
_NAMES = {BATCH: "in flight", OUTPUT: "new tokens", PROMPT: "prompt tokens"}


def varied(mode: str, one: Served) -> int | None:
    """Return the value of what a mode varies, else how many requests were in flight."""
    return {OUTPUT: one.new_tokens, PROMPT: one.prompt_tokens}.get(mode, one.lanes)


def varied_name(mode: str) -> str:
    """Return what a mode varies, as a column or an axis calls it."""
    return _NAMES.get(mode, _NAMES[BATCH])


def waits_of_one(one: Served) -> Table:
    """Return each kind of wait of a point in a row."""
    kinds = (
        ("first token (TTFT)", one.ttft),
        ("each further token (TPOT)", one.tpot),
        ("between chunks (ITL)", one.itl),
        ("whole answer", one.total),
    )
    return Table(
        head=("wait", "number", "median", "p10 to p90", "p99"),
        rows=tuple((name, *_row_of(found)) for name, found in kinds if found is not None),
        align="lrrrr",
    )


def _row_of(found: Waits) -> tuple[Text, ...]:
    return count(found.count), duration(found.median_ns), spread(found), _p99(found)


def waits_of_several(mode: str, served: Iterable[Served]) -> Table:
    """Return a row per point; one without an answer says how it ended."""
    head = [varied_name(mode), "answered"]
    for name in ("TTFT", "TPOT", "ITL"):
        head += [name, "p10 to p90", "p99"]
    rows = []
    for one in served:
        cells: list[Text] = [count(varied(mode, one)), f"{one.done} of {one.requests}"]
        if not one.done:
            cells += [ended(one), *[NOTHING] * 8]
        else:
            for found in (one.ttft, one.tpot, one.itl):
                cells += _cells(found)
        rows.append(tuple(cells))
    return Table(head=tuple(head), rows=tuple(rows), align="r" * len(head))


def _cells(found: Waits | None) -> list[Text]:
    if found is None:
        return [NOTHING] * 3
    return [duration(found.median_ns), spread(found), _p99(found)]


def spread(found: Waits) -> str:
    """Return where eight of ten waits lie."""
    return f"{duration(found.p10_ns)} to {duration(found.p90_ns)}"


def _p99(found: Waits) -> str:
    return NOTHING if found.p99_ns is None else duration(found.p99_ns)


def rates(mode: str, served: Sequence[Served]) -> Table:
    """Return what came while every lane was under way, a row per point that answered."""
    head = (
        varied_name(mode), "tokens/s in all", "each", "requests/s", "lanes busy", "window",
        "prompt, as served", "of it cached", "new tokens", "tokens a chunk",
    )  # fmt: skip
    rows = tuple(
        (
            count(varied(mode, one)),
            significant(one.tokens_per_s),
            significant(one.tokens_per_s_each),
            significant(one.requests_per_s),
            significant(one.lanes_busy),
            duration(one.window_ns),
            count(one.prompt_tokens_served),
            count(one.cached_tokens),
            count(one.new_tokens_served),
            significant(one.tokens_per_chunk),
        )
        for one in served
        if one.done
    )
    return Table(head=head, rows=rows, align="r" * len(head))


def failures(mode: str, served: Iterable[Served]) -> Table | None:
    """Return requests that were not answered, by point and kind; None where all were."""
    rows = tuple(
        (
            one.label or count(varied(mode, one)),
            kind.replace("_", " "),
            f"{number} of {one.requests}",
            one.reasons.get(kind) or NOT_KNOWN,
        )
        for one in served
        for kind, number in one.failures.items()
    )
    if not rows:
        return None
    head = (varied_name(mode), "ended", "requests", "the first of them")
    return Table(head=head, rows=rows, align="rlrl")


def ended(one: Served) -> str:
    """Say how a point without an answer ended."""
    if one.outcome == DONE:
        return "not answered"
    return f"{one.outcome}: {one.reason}" if one.reason else one.outcome
