"""Put a comparison together: what B is beside A, how sure that is, and where it comes from."""

from collections.abc import Collection, Sequence

from whichwall import __version__
from whichwall.analyze.comparison_words import called, interval, of_phase, rests_on, signed, verdict
from whichwall.analyze.quantities import (
    NOT_KNOWN,
    amount_of_bytes,
    count,
    duration,
    percent,
    several,
    times,
    with_unit,
)
from whichwall.analyze.report.answer import sentence
from whichwall.analyze.report.comparison_figures import CHANGES, ROLES, STEPS
from whichwall.analyze.report.document import (
    Answer,
    Block,
    Code,
    Document,
    Heading,
    Paragraph,
    Table,
    Text,
)
from whichwall.analyze.report.document import Figure as Chart
from whichwall.schemas.comparison import Change, Comparison, Pair, PointSide, Quantity
from whichwall.schemas.points import DONE

# So many pairs get a table each; compare.json has them all.
MOST_TABLES = 12
NOTHING = "–"
_NAMES = {
    "step_ns": "clean step",
    "step_ns_p10": "tenth percentile of passes",
    "step_ns_p90": "ninetieth percentile of passes",
    "tokens_per_s": "throughput",
    "floor_ns": "floor",
    "times_floor": "step over its floor",
    "busy_ns": "GPU busy",
    "idle_ns": "idle: clean step less busy",
    "kernels": "kernels",
    "launches": "launch calls",
    "kernel_median_ns": "median kernel",
    "traced_step_ns": "step as traced",
    "gap_median_ns": "median gap, traced",
    "memory_bytes": "most memory",
    "setup_ns": "made ready in",
    "ttft_ns": "TTFT",
    "tpot_ns": "TPOT",
    "sm_clock_mhz": "SM clock",
    "memory_clock_mhz": "memory clock",
    "power_w": "power",
    "temperature_c": "temperature",
    "energy_j_per_token": "energy of a token",
}
METHOD = (
    "The step of a visit is its median pass, that of several visits or processes the geometric "
    "mean of theirs. Intervals hold the ratio of the steps with 95 %: a bootstrap that draws "
    "processes, of each its visits, of each its passes, scaled by Student's t for their number."
)


def document(found: Comparison, figures: Collection[str]) -> Document:
    """Return the whole comparison; `figures` names the charts that it may show."""
    made = Paragraph(
        f"Written by whichwall {__version__}. The same numbers for machines: compare.json."
    )
    return Document(
        _title(found),
        (
            _answer(found),
            *_steps(found, figures),
            *_changes(found),
            *_details(found.pairs),
            *_roles(found, figures),
            *_conditions(found),
            *_alone(found),
            made,
        ),
    )


def brief(found: Comparison) -> Document:
    """Return what a terminal shows: the answer, the steps, one pair whole, and what differs."""
    judged = of_phase(found)
    blocks = [_answer(found), *_steps(found, ())]
    if len(judged) == 1:
        blocks += [*_pair_table(judged[0]), *_role_table(judged[0])]
    blocks += [*_changes(found), *_conditions(found), *_alone(found)]
    return Document(_title(found), tuple(blocks))


def _title(found: Comparison) -> str:
    return f"A: {found.a.run}, B: {found.b.run}"


def _answer(found: Comparison) -> Block:
    notes = []
    if found.a.id == found.b.id:
        notes.append("A and B are the same run.")
    if found.check is not None:
        notes.append(sentence(found.check.says))
    if found.a.wall or found.b.wall:
        walls = [side.wall or NOT_KNOWN for side in (found.a, found.b)]
        same = walls[0] == walls[1]
        notes.append(f"The wall: {walls[0]}{' in both' if same else f' in A, {walls[1]} in B'}.")
    return Answer(wall=None, sentences=(found.answer,), figures=(), notes=tuple(notes))


def _steps(found: Comparison, figures: Collection[str]) -> list[Block]:
    if not found.pairs:
        return []
    rows = tuple(_step_row(pair) for pair in found.pairs)
    head = ("point", "phase", "A", "B", "B is", "95 % interval", "measured on")
    blocks: list[Block] = [Heading("Steps side by side"), Table(head, rows, "llrrlll")]
    if STEPS in figures:
        blocks.append(Chart(STEPS, "Clean steps of A and B at the points that both have."))
    return [*blocks, Paragraph(METHOD)]


def _step_row(pair: Pair) -> tuple[Text, ...]:
    step = pair.step
    return (
        pair.name,
        pair.phase or NOTHING,
        duration(pair.a.step_ns),
        duration(pair.b.step_ns),
        verdict(step),
        NOT_KNOWN if step is None else interval(step),
        rests_on(pair.a, pair.b) if step else NOTHING,
    )


def _changes(found: Comparison) -> list[Block]:
    blocks: list[Block] = [Heading("What differs between the runs")]
    if found.changes:
        blocks.append(_change_table(found.changes))
    else:
        blocks.append(Paragraph("Nothing that the runs have on record of themselves."))
    if found.same:
        said = "; ".join(f"{name} {value}" for name, value in found.same.items() if name != "card")
        blocks.append(Paragraph(f"The same in both: {said}."))
    return blocks


def _change_table(changes: Sequence[Change]) -> Table:
    rows = tuple((one.what, one.a or NOT_KNOWN, one.b or NOT_KNOWN) for one in changes)
    return Table(("what", "A", "B"), rows, "lll")


def _details(pairs: Sequence[Pair]) -> list[Block]:
    blocks = [block for pair in pairs[:MOST_TABLES] for block in _pair_table(pair)]
    if len(pairs) > MOST_TABLES:
        blocks.append(Paragraph(f"{len(pairs) - MOST_TABLES} more are in compare.json."))
    return blocks


def _pair_table(pair: Pair) -> list[Block]:
    rows = tuple(map(_row, pair.quantities))
    name = called(pair)
    blocks: list[Block] = [Heading(name[:1].upper() + name[1:])]
    if pair.changes:
        said = "; ".join(f"{c.what} {c.a or NOT_KNOWN} in A, {c.b or NOT_KNOWN} in B"
                         for c in pair.changes)  # fmt: skip
        blocks.append(Paragraph(f"Differs by {said}."))
    return [*blocks, Table(("of a step", "A", "B", "B over A"), rows, "lrrr")] if rows else []


def _row(one: Quantity) -> tuple[Text, ...]:
    ratio = NOTHING if one.ratio is None else times(one.ratio)
    return _name(one.name), _amount(one, one.a), _amount(one, one.b), ratio


def _name(name: str) -> str:
    if name.startswith("gaps_"):
        return f"gaps: {name.removeprefix('gaps_').removesuffix('_ns')}, traced"
    if name.startswith("throttle_"):
        return f"samples: {name.removeprefix('throttle_').replace('_', ' ')}"
    return _NAMES.get(name, name.replace("_", " "))


def _amount(one: Quantity, value: float | None) -> str:
    if value is None:
        return NOT_KNOWN
    match one.unit:
        case "ns":
            return duration(value)
        case "us":
            return duration(value * 1000)
        case "bytes":
            return amount_of_bytes(value)
        case "share":
            return percent(value)
        case "×":
            return times(value)
        case "":
            return count(value)
    return with_unit(value, one.unit)


def _roles(found: Comparison, figures: Collection[str]) -> list[Block]:
    blocks: list[Block] = []
    if ROLES in figures:
        blocks.append(Chart(ROLES, "GPU time by role in a traced step, A and B."))
    if CHANGES in figures:
        blocks.append(
            Chart(
                CHANGES,
                "B less A, means of traced steps, without an interval.",
            )
        )
    traced = [pair for pair in found.pairs if pair.roles][:MOST_TABLES]
    for pair in traced:
        blocks += _role_table(pair)
    if not traced:
        blocks = [Paragraph("Roles are not compared: no point was traced on a GPU in both runs.")]
    return [Heading("GPU time by role"), *blocks]


def _role_table(pair: Pair) -> list[Block]:
    if not pair.roles:
        return []
    rows: tuple[tuple[Text, ...], ...] = tuple(
        (Code(one.role), duration(one.a_ns), duration(one.b_ns), signed(one.difference_ns),
         _kernels(one.a_kernels, one.b_kernels))
        for one in pair.roles
    )  # fmt: skip
    head = (f"role, {called(pair)}", "A", "B", "B less A", "kernels")
    return [Table(head, rows, "lrrrr")]


def _kernels(a: float, b: float) -> str:
    return count(a) if a == b else f"{count(a)} and {count(b)}"


def _conditions(found: Comparison) -> list[Block]:
    blocks: list[Block] = []
    if found.quantities:
        head = ("of the run", "A", "B", "B over A")
        rows = tuple(map(_row, found.quantities))
        blocks += [Heading("Clocks, power and waits"), Table(head, rows, "lrrr")]
    if found.limits:
        head = ("limit of the card", "A", "B", "B over A")
        blocks += [Heading("Limits"), Table(head, tuple(map(_row, found.limits)), "lrrr")]
    return blocks


def _alone(found: Comparison) -> list[Block]:
    rows = [
        (name, *_alone_row(side))
        for name, sides in (("A", found.only_a), ("B", found.only_b))
        for side in sides
    ]
    if not rows:
        return []
    head = ("only in", "point", "phase", "clean step", "how it ended")
    return [
        Heading("Without a partner"),
        Paragraph(f"{several(len(rows), 'point')} of one run alone, by phase."),
        Table(head, tuple(rows), "lllrl"),
    ]


def _alone_row(side: PointSide) -> tuple[str, str, str, str]:
    ended = side.outcome or NOT_KNOWN
    said = f"{ended}: {side.reason}" if side.reason and ended != DONE else ended
    step = NOTHING if side.step_ns is None else duration(side.step_ns)
    return _point(side), side.phase or NOTHING, step, said


def _point(side: PointSide) -> str:
    if side.label:
        return side.label
    sizes = (
        ("batch", side.batch),
        ("context", side.context_tokens),
        ("new tokens", side.new_tokens),
    )
    said = [side.engine, *(f"{name} {count(size)}" for name, size in sizes if size)]
    return ", ".join(word for word in said if word) or f"point {side.point}"
