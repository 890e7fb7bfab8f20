"""Say at which value of a sweep the wall changes, on the clock and on paper."""

from itertools import groupby

from whichwall.analyze.quantities import NOT_KNOWN, count
from whichwall.analyze.report.document import Block, Paragraph, Table, Text
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.sweep import Sweep
from whichwall.schemas.turns import BOUNDED, BY_FLOOR, TRACED, Turn, Turns

_UNITS = {
    Sweep.batch: ("a batch of", "batches"),
    Sweep.context_tokens: ("a context of", "contexts"),
    Sweep.prompt_tokens: ("a prompt of", "prompts"),
}
HOW = {
    TRACED: "by its trace",
    BY_FLOOR: "its floor is at least half of the step",
    BOUNDED: "busy time lies between that of traced points",
}


def turned(inputs: ReportInputs) -> list[Block]:
    """Return where the wall changes along the sweep, and the wall of each point."""
    found = inputs.summary.turns
    if found is None:
        return []
    alike = groupby(found.walls, key=lambda one: (one.wall, one.how, one.floor_of))
    rows = tuple(_row(key, [one.value for one in same]) for key, same in alike)
    table = Table(
        head=(_UNITS[found.varied][1], "wall", "told how", "larger floor"),
        rows=rows,
        align="rlll",
    )
    return [Paragraph(" ".join([_walls(found), *_paper(found)])), table]


def _row(key: tuple[str | None, str | None, str | None], values: list[int]) -> tuple[Text, ...]:
    wall, how, of = key
    first, last = count(values[0]), count(values[-1])
    return (
        first if len(values) == 1 else f"{first} to {last}",
        wall or NOT_KNOWN,
        HOW.get(how or "", "neither trace, floor nor bounds tell"),
        of or NOT_KNOWN,
    )


def _walls(found: Turns) -> str:
    known = [one for one in found.walls if one.wall is not None]
    if not known:
        return "Which wall each point stands at is not known: no trace of a step tells."
    if found.turns:
        return " ".join(_turn(turn, found, "The wall") for turn in found.turns)
    first, last = known[0], known[-1]
    if first is last:
        rest = "; elsewhere it is not known" if len(found.walls) > 1 else ""
        return f"The wall at {_at(found, first.value)} is {first.wall}{rest}."
    return (
        f"The wall is {first.wall} from {_at(found, first.value)} to {count(last.value)}: no value "
        "measured turns it."
    )


def _paper(found: Turns) -> list[str]:
    of = [one.floor_of for one in found.walls if one.floor_of]
    if found.floor_turns:
        return [_turn(turn, found, "On paper the larger floor") for turn in found.floor_turns]
    if not of:
        return []
    return [f"On paper the {of[0]} floor is the larger one all along."]


def _turn(turn: Turn, found: Turns, what: str) -> str:
    return (
        f"{what} turns from {turn.old} to {turn.new} between {_at(found, turn.after)} and "
        f"{count(turn.at)}."
    )


def _at(found: Turns, value: int) -> str:
    return f"{_UNITS[found.varied][0]} {count(value)}"
