"""Say in words how two steps compare: direction, size, and how sure that is."""

from collections.abc import Sequence

from whichwall.analyze.processes import ONE_POINT
from whichwall.analyze.quantities import NOT_KNOWN, count, duration, percent, several, times
from whichwall.schemas.comparison import Check, Comparison, Pair, PointSide, StepChange

NONE_SEEN = "no difference that this data can show"
# Below, a ratio would round to little: it is said in percent.
AS_RATIO = 1.1
FASTER, SLOWER, SAME = "faster", "slower", "as fast"
MORE_PROCESSES = "collect both with --repeat 5 to know"
BEYOND = 100
MOSTLY = "more than anywhere else"
BOTH = 2


def answer(found: Comparison) -> str:
    """Say how B's step compares with A's, and where the difference lies."""
    judged = of_phase(found)
    if not judged:
        return "Not comparable: the runs have no point in common."
    known = [pair for pair in judged if pair.step is not None]
    if not known:
        return f"Not known how the steps compare: {_not_timed(judged[0])}."
    if len(judged) == 1:
        return " ".join([_one(known[0]), *_where(known[0]), *_unknown_spread(found, known)])
    return " ".join([_several(known, len(judged)), *_unknown_spread(found, known)])


def of_phase(found: Comparison) -> list[Pair]:
    """Return the pairs of the phase that the comparison is about."""
    return [pair for pair in found.pairs if pair.phase == found.phase]


def _not_timed(pair: Pair) -> str:
    who = [name for name, side in (("A", pair.a), ("B", pair.b)) if side.step_ns is None]
    return f"{' and '.join(who)} timed no step without a profiler"


def direction(ratio: float) -> str:
    """Say how B compares with A by the ratio of their steps: `1.31 × faster`, `3.2 % slower`."""
    if ratio == 1:
        return SAME
    factor, word = (ratio, SLOWER) if ratio > 1 else (1 / ratio, FASTER)
    if factor >= AS_RATIO:
        return f"{times(factor)} {word}"
    return f"{percent(abs(ratio - 1))} {word}"


def interval(step: StepChange) -> str:
    """Write the interval from its faster end to its slower one."""
    if step.low is None or step.high is None:
        return NOT_KNOWN
    low, high = _end(step.low), _end(step.high)
    if low == high:
        return low
    for word in (f" {FASTER}", f" {SLOWER}"):
        if low.endswith(word) and high.endswith(word):
            ends = (low, high) if word == f" {SLOWER}" else (high, low)
            return f"{ends[0].removesuffix(word)} to {ends[1]}"
    return f"{low} to {high}"


def _end(ratio: float) -> str:
    """Write an end of an interval; how far beyond all measure it lies says nothing."""
    if 1 / BEYOND <= ratio <= BEYOND:
        return direction(ratio)
    return f"more than {BEYOND} × {SLOWER if ratio > 1 else FASTER}"


def verdict(step: StepChange | None) -> str:
    """Say in a cell what B is."""
    if step is None:
        return NOT_KNOWN
    return NONE_SEEN if step.seen is False else direction(step.ratio)


def rests_on(a: PointSide, b: PointSide) -> str:
    """Say what each side's step was measured on."""
    mine, other = _rests_on(a), _rests_on(b)
    return f"{mine} each" if mine == other else f"{mine} of A, {other} of B"


def _rests_on(side: PointSide) -> str:
    if side.processes > 1:
        return f"{side.processes} processes"
    if side.visits > 1:
        return f"{side.visits} visits of one process"
    return f"{several(side.passes, 'pass', 'passes')} of one process"


def _one(pair: Pair) -> str:
    step = pair.step
    assert step is not None
    steps = f"{duration(pair.a.step_ns)} in A, {duration(pair.b.step_ns)} in B"
    sure = f"95 % interval: {interval(step)}; {rests_on(pair.a, pair.b)}"
    if step.seen is None:
        return f"B's {_step(pair)} is {direction(step.ratio)}: {steps}; the spread is not known."
    if not step.seen:
        return f"{NONE_SEEN.capitalize()}: a {_step(pair)} takes {steps} ({sure})."
    return f"B's {_step(pair)} is {direction(step.ratio)}: {steps} ({sure})."


def called(pair: Pair) -> str:
    """Return the name of a pair with its phase."""
    phase = pair.phase or ""
    return pair.name if phase in pair.name else f"{pair.name}, {phase}"


def _step(pair: Pair) -> str:
    return f"{pair.phase} step" if pair.phase else "step"


def _where(pair: Pair) -> list[str]:
    """Say how much of a difference is GPU work and how much idle time, where both are known."""
    known = {one.name: one for one in pair.quantities}
    parts = [known.get("busy_ns"), known.get("idle_ns")]
    if pair.step is None or pair.step.seen is False:
        return []
    said = []
    for part, verb in zip(parts, ("works", "idles"), strict=True):
        if part is None or part.a is None or part.b is None:
            return []
        said.append(f"{verb} {more(part.b - part.a)}")
    return [f"In a step of B the GPU {said[0]} and {said[1]}."]


def more(difference_ns: float) -> str:
    """Write a difference of times: `1.2 ms more`, `30 µs less`, `as long`."""
    if round(difference_ns) == 0:
        return "as long"
    return f"{duration(abs(difference_ns))} {'more' if difference_ns > 0 else 'less'}"


def signed(difference_ns: float) -> str:
    """Write a difference of times with its sign."""
    if round(difference_ns) == 0:
        return "0"
    return f"{'+' if difference_ns > 0 else '−'}{duration(abs(difference_ns))}"


def _several(known: Sequence[Pair], judged: int) -> str:
    groups: dict[str, list[Pair]] = {FASTER: [], SLOWER: []}
    for pair in known:
        if pair.step is not None and pair.step.seen:
            groups[SLOWER if pair.step.ratio > 1 else FASTER].append(pair)
    said = [
        f"{word} at {len(pairs)} (most: {_most(pairs)})" for word, pairs in groups.items() if pairs
    ]
    rest = sum(pair.step is not None and pair.step.seen is False for pair in known)
    if rest == judged:
        return f"At all {count(judged)} {_step(known[0])}s that both have there is {NONE_SEEN}."
    if rest:
        said.append(f"at {rest} there is {NONE_SEEN}")
    if unknown := judged - rest - sum(map(len, groups.values())):
        said.append(f"at {unknown} it is {NOT_KNOWN}")
    who = "B is " if any(groups.values()) else ""
    return f"Of {count(judged)} {_step(known[0])}s that both have, {who}{'; '.join(said)}."


def _most(pairs: Sequence[Pair]) -> str:
    most = max(
        pairs, key=lambda pair: max(pair.step.ratio, 1 / pair.step.ratio) if pair.step else 0
    )
    assert most.step is not None
    return f"{most.name}, {direction(most.step.ratio)}"


def _unknown_spread(found: Comparison, known: Sequence[Pair]) -> list[str]:
    """Say where an interval leaves out how processes differ."""
    if all(pair.step is not None and pair.step.processes_known for pair in known):
        return []
    pair = known[0]
    single = [name for name, side in (("A", pair.a), ("B", pair.b)) if side.processes == 1]
    whose = "" if len(single) == BOTH else f" of {single[0]}"
    said = f"How processes{whose} differ is not known, so no interval holds it"
    # In other modes --repeat is something else.
    if {found.a.mode, found.b.mode} <= {*ONE_POINT}:
        return [f"{said}: {MORE_PROCESSES}."]
    return [f"{said}."]


def slower_by_more_than(limit_percent: float, found: Comparison) -> Check:
    """Check that B's steps are not slower than A's by more than a limit, beyond doubt.

    Beyond doubt: the lower end of the interval lies above the limit, at one point at least.
    """
    judged = of_phase(found)
    known = [(pair, pair.step) for pair in judged if pair.step and pair.step.low is not None]
    limit = f"{limit_percent:g} %"
    if not known:
        return Check(limit_percent, None, "no step was timed without a profiler in both runs, often"
                     " enough to know its spread")  # fmt: skip
    most = 1 + limit_percent / 100
    above = [(pair, step) for pair, step in known if step.low is not None and step.low > most]
    if above:
        where = "; ".join(f"{pair.name}: {_told(step)}" for pair, step in above)
        return Check(limit_percent, above=True, says=f"B is slower by more than {limit}: {where}")
    pair, step = max(known, key=lambda one: one[1].high or 0)
    doubt = ", though it may be" if step.high is not None and step.high > most else ""
    left = len(judged) - len(known)
    rest = f"; {left} of {len(judged)} are {NOT_KNOWN}" if left else ""
    says = f"B is not slower by more than {limit} beyond doubt{doubt}: {pair.name}: {_told(step)}"
    return Check(limit_percent, above=False, says=f"{says}{rest}")


def _told(step: StepChange) -> str:
    return f"{direction(step.ratio)} (95 % interval: {interval(step)})"
