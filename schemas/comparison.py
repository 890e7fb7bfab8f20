"""compare.json: two runs side by side, A and B. Keys are stable; additions are allowed.

Every value that is not known is null. A ratio is B over A, a difference B less A.
"""

import msgspec

VERSION = 1


class Change(msgspec.Struct, frozen=True):
    """One thing in which the runs, or the points, differ; null: not said by that side."""

    what: str
    a: str | None
    b: str | None


class Quantity(msgspec.Struct, frozen=True):
    """One measured quantity of both sides."""

    name: str
    unit: str
    a: float | None
    b: float | None
    ratio: float | None


class RoleChange(msgspec.Struct, frozen=True):
    """GPU time of one role in a traced step, mean over the steps; 0: it does not occur."""

    role: str
    a_ns: float
    b_ns: float
    difference_ns: float
    a_kernels: float
    b_kernels: float


class PointSide(msgspec.Struct, frozen=True):
    """One phase of a point in one run, and what its clean step was measured on."""

    point: int
    phase: str | None
    label: str | None
    engine: str | None
    attention: str | None
    dtype: str | None
    batch: int | None
    context_tokens: int | None
    prompt_tokens: int | None
    new_tokens: int | None
    outcome: str | None
    reason: str | None
    processes: int  # with clean passes
    visits: int  # in all
    passes: int
    step_ns: float | None  # median of a visit; of visits and processes the geometric mean
    step_ns_p10: int | None
    step_ns_p90: int | None
    process_ns_lowest: float | None  # steps of single processes
    process_ns_highest: float | None


class StepChange(msgspec.Struct, frozen=True):
    """B's clean step over A's, with the ends of its 95 % interval."""

    ratio: float
    low: float | None  # null where one pass stands alone
    high: float | None
    seen: bool | None  # the interval excludes 1; null without one
    processes_known: bool  # both sides ran in several processes, so how these differ is in it


class Pair(msgspec.Struct, frozen=True):
    """A point that both runs have, in one phase."""

    name: str
    phase: str | None
    a: PointSide
    b: PointSide
    step: StepChange | None  # null: not timed clean on both sides
    changes: list[Change]
    quantities: list[Quantity]
    roles: list[RoleChange]  # empty unless both were traced on a GPU


class RunSide(msgspec.Struct, frozen=True):
    """Which run stands on a side."""

    id: str
    run: str
    mode: str
    wall: str | None
    answer: str | None


class Check(msgspec.Struct, frozen=True):
    """Whether B is slower than A by more than a limit beyond doubt."""

    limit_percent: float
    above: bool | None  # null: no step of both is known with its spread
    says: str


class Comparison(msgspec.Struct, frozen=True):
    """The whole of compare.json."""

    schema_version: int
    a: RunSide
    b: RunSide
    answer: str
    phase: str | None  # that the answer speaks of
    changes: list[Change]
    same: dict[str, str]
    pairs: list[Pair]  # those of `phase` first
    only_a: list[PointSide]
    only_b: list[PointSide]
    quantities: list[Quantity]  # of the whole runs
    limits: list[Quantity]
    check: Check | None = None

    def encode(self) -> bytes:
        """Return the text of compare.json, indented and ending in a newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"
