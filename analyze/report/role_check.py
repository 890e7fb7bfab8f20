"""Say how right the roles are on this model, where a pass was recorded to check them."""

import math

from whichwall.analyze.quantities import NOT_KNOWN, count, duration
from whichwall.analyze.report.answer import ended, sentence
from whichwall.analyze.report.document import Block, Code, Heading, Paragraph, Table
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.role_ranges import SEPARATOR
from whichwall.schemas.summary import GPU_ACTIVITIES, OPERATORS, Confusion, RoleCheck

# Right ones by the dozen tell little; of the wrong ones, those with most time come first.
MOST_ROWS = 24
NOTHING_RAN = "nothing ran under the ranges recorded for it"
_WORDS = {
    GPU_ACTIVITIES: ("GPU", "kernels and copies"),
    OPERATORS: ("operators'", "operators known by name"),
}


def accuracy(check: RoleCheck) -> str:
    """Return how right the roles are as a sentence without its end."""
    if not check.kernels:
        return NOTHING_RAN
    where, what = _WORDS[check.of]
    layers = (
        ""
        if check.layers_right is None
        else f"; of those inside layers {_share(check.layers_right)} have the right layer"
    )
    return (
        f"{_share(check.time_right)} of the {where} time and {_share(check.kernels_right)} of "
        f"{count(check.kernels)} {what} have an accepted role{layers}"
    )


def _share(share: float | None) -> str:
    """Return a share cut to two decimals, not rounded: nothing but all is 100 %."""
    return NOT_KNOWN if share is None else f"{math.floor(share * 10_000) / 100:.2f} %"


def checked(inputs: ReportInputs) -> list[str]:
    """Return how right the roles are as a line for a terminal; none if nothing was recorded."""
    check = inputs.summary.role_check
    return [] if check is None else [ended(f"Roles checked: {accuracy(check)}")]


def role_check(inputs: ReportInputs) -> list[Block]:
    """Return the section; nothing where no such pass was recorded."""
    check = inputs.summary.role_check
    if check is None:
        return []
    blocks: list[Block] = [
        Heading("How right the roles are here"),
        Paragraph(sentence(accuracy(check))),
    ]
    if check.kernels:
        wrong = [pair for pair in check.confusion if not pair.right]
        right = [pair for pair in check.confusion if pair.right]
        blocks += [
            Paragraph(
                "A pass was recorded under ranges around the model's modules and functions, which "
                "say what each kernel or operator really works for; roles were found without "
                "them. Several are accepted where code between two parts may serve either. "
                "Mistakes come first."
            ),
            *_rest(check.not_judged),
            _table([*wrong, *right][:MOST_ROWS]),
        ]
    return blocks


def _rest(number: int) -> list[Block]:
    said = f"{count(number)} more ran where what is right is not known, or under no range."
    return [Paragraph(said)] if number else []


def _table(pairs: list[Confusion]) -> Table:
    return Table(
        head=("expected", "found", "", "count", "time"),
        rows=tuple(
            (
                Code(pair.expected.replace(SEPARATOR, " or ")),
                Code(pair.found),
                "right" if pair.right else "wrong",
                count(pair.kernels),
                duration(pair.busy_ns),
            )
            for pair in pairs
        ),
        align="lllrr",
    )
