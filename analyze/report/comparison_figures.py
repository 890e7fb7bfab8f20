"""Draw two runs beside each other: steps of all points, roles of one, and what changed in them."""

from collections.abc import Sequence

from altair.typing import ChartType

from whichwall.analyze.charts.bars import Scale, bars
from whichwall.analyze.charts.differences import differences
from whichwall.analyze.charts.lines import Axes, lines
from whichwall.analyze.comparison_words import (
    MOSTLY,
    called,
    direction,
    more,
    of_phase,
    signed,
    verdict,
)
from whichwall.analyze.quantities import duration
from whichwall.schemas.chart import Bars, Lines
from whichwall.schemas.comparison import Comparison, Pair, PointSide, RoleChange
from whichwall.schemas.run import frame

STEPS, ROLES, CHANGES = "steps", "roles", "changes"
NS_PER_MS, NS_PER_US = 1e6, 1e3
# Sizes that a sweep varies, with the words of their axis.
_SIZES = (
    ("batch", "sequences generating at once"),
    ("context_tokens", "tokens in the cache"),
    ("prompt_tokens", "tokens of the prompt"),
    ("new_tokens", "tokens generated"),
)
FEWEST_ON_A_LINE = 2


def figures(found: Comparison) -> dict[str, ChartType]:
    """Return the charts by name; without data, none."""
    drawn = {STEPS: _steps(found), ROLES: _roles(found), CHANGES: _changes(found)}
    return {name: chart for name, chart in drawn.items() if chart is not None}


def pair_with_roles(found: Comparison) -> Pair | None:
    """Return the pair whose roles are drawn: the first that was traced on both sides."""
    traced = [pair for pair in found.pairs if pair.roles]
    return next((pair for pair in of_phase(found) if pair in traced), next(iter(traced), None))


def _steps(found: Comparison) -> ChartType | None:
    timed = [pair for pair in of_phase(found) if pair.step is not None]
    if len(timed) < FEWEST_ON_A_LINE:
        return None
    subtitle = ["Clean steps, with p10 to p90 of their passes."]
    axis = f"one {found.phase or 'clean'} step, ms"
    size = _varied(timed)
    if size is not None:
        fact, words = size
        rows = [row for pair in timed for row in _points(pair, fact)]
        table = frame(Lines, rows).sort(Lines.series, Lines.x)
        return lines(table, Axes(words, axis), _most(timed), subtitle)
    rows = [row for pair in timed for row in _bars(pair)]
    return bars(frame(Bars, rows), Scale(axis), _most(timed), subtitle)


def _varied(timed: Sequence[Pair]) -> tuple[str, str] | None:
    """Return the one size that all pairs differ in, where each is then a place on a line."""
    if any(pair.a.label or pair.b.label for pair in timed):
        return None
    for fact, words in _SIZES:
        values = [getattr(pair.a, fact) for pair in timed]
        if None not in values and len(set(values)) == len(timed):
            return fact, words
    return None


def _most(timed: Sequence[Pair]) -> str:
    seen = [(pair, pair.step) for pair in timed if pair.step and pair.step.seen]
    if not seen:
        return "No difference between A and B that this data can show"
    pair, step = max(seen, key=lambda one: max(one[1].ratio, 1 / one[1].ratio))
    return f"B is {direction(step.ratio)} at {pair.name}, {MOSTLY}"


def _points(pair: Pair, fact: str) -> list[dict[str, object]]:
    return [
        {
            Lines.x: getattr(pair.a, fact),
            Lines.y: (side.step_ns or 0) / NS_PER_MS,
            Lines.low: _ms(side.step_ns_p10),
            Lines.high: _ms(side.step_ns_p90),
            Lines.series: name,
            Lines.floor: False,
        }
        for name, side in (("A", pair.a), ("B", pair.b))
    ]


def _bars(pair: Pair) -> list[dict[str, object]]:
    return [
        {
            Bars.name: pair.name,
            Bars.group: name,
            Bars.value: _ms(side.step_ns),
            Bars.low: _ms(side.step_ns_p10),
            Bars.high: _ms(side.step_ns_p90),
            Bars.label: _said(pair, name, side),
        }
        for name, side in (("A", pair.a), ("B", pair.b))
    ]


def _said(pair: Pair, name: str, side: PointSide) -> str:
    step = duration(side.step_ns)
    return step if name == "A" else f"{step}  ·  {verdict(pair.step)}"


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / NS_PER_MS


def _roles(found: Comparison) -> ChartType | None:
    pair = pair_with_roles(found)
    if pair is None:
        return None
    largest = sorted(pair.roles, key=lambda one: (-max(one.a_ns, one.b_ns), one.role))
    rows = [row for one in largest for row in _role_bars(one)]
    whole = [sum(getattr(one, side) for one in pair.roles) for side in ("a_ns", "b_ns")]
    title = f"GPU work of a step: {duration(whole[0])} in A, {duration(whole[1])} in B"
    return bars(frame(Bars, rows), Scale("µs per step"), title, [_which(found, pair)])


def _role_bars(one: RoleChange) -> list[dict[str, object]]:
    return [
        {
            Bars.name: one.role,
            Bars.group: side,
            Bars.value: ns / NS_PER_US,
            Bars.label: duration(ns) if ns else "none",
        }
        for side, ns in (("A", one.a_ns), ("B", one.b_ns))
    ]


def _changes(found: Comparison) -> ChartType | None:
    pair = pair_with_roles(found)
    if pair is None:
        return None
    rows: list[dict[str, object]] = [
        {
            Bars.name: one.role,
            Bars.group: CHANGES,
            Bars.value: one.difference_ns / NS_PER_US,
            Bars.label: signed(one.difference_ns),
        }
        for one in pair.roles
    ]
    most = pair.roles[0]
    title = "No role takes other GPU time in B"
    if round(most.difference_ns):
        title = f"{most.role} changes most: {more(most.difference_ns)} per step in B"
    return differences(frame(Bars, rows), "µs per step, B less A", title, [_which(found, pair)])


def _which(found: Comparison, pair: Pair) -> str:
    where = "" if len(found.pairs) == 1 else f"{called(pair)}: "
    text = f"{where}mean of the traced steps of each side."
    return text[:1].upper() + text[1:]
