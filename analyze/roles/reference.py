"""Give kernels without an operator the roles that their twins in a reference run have.

A graph replay names no operator, but it runs the kernels of the same step run eagerly, in the
same order on each stream. Each distinct sequence of a replay is aligned with the reference pass
most like it; a kernel with a twin has the twin's role and layer, and the more of its
neighbourhood lies beside the twin's, the surer that is.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from whichwall.analyze.links import BY_CAPTURE
from whichwall.analyze.roles.align import NOBODY, Numbers, align
from whichwall.analyze.roles.captured import Captured
from whichwall.analyze.roles.tokens import (
    SAME_LAUNCH,
    SAME_NAME,
    SAME_WORK,
    Tokens,
    number_alike,
)
from whichwall.schemas.activities import Activities
from whichwall.schemas.errors import InputError
from whichwall.schemas.model import Model
from whichwall.schemas.roles import BY_NOTHING, BY_REFERENCE, EMBEDDING, OTHER, Roles
from whichwall.schemas.run import polars_schema

Flags = npt.NDArray[np.bool_]

# How sure a match is whose neighbours all match too.
SURENESS = {SAME_LAUNCH: 1.0, SAME_NAME: 0.95, SAME_WORK: 0.7}

# Neighbours on each side that speak for a match: about half the kernels of a compiled layer.
NEIGHBOURS = 8
# An extra kernel between two of one role is taken for theirs, at even odds.
BETWEEN = 0.5

# A graph holds another pass where this much of one or less is missing.
NEARLY = 0.2

STREAM = (Activities.point, Activities.rank, Activities.device, Activities.stream)
_ROW, _UNIT, _TOKEN = "row", "unit", "token"


@dataclass(frozen=True)
class _Twins:
    """The reference row of each activity, NOBODY where it has none."""

    row: Numbers
    sure: npt.NDArray[np.float64]
    placed: Flags  # the sequence tells the layer, not only the role


@dataclass(frozen=True)
class Reference:
    """A run that names the operators which another run's kernels work for."""

    name: str  # for messages
    activities: pl.DataFrame  # Activities
    roles: pl.DataFrame  # Roles, row by row
    captured: Captured  # the operators of the graphs whose capture it holds
    model: Model | None


def refer(activities: pl.DataFrame, own: pl.DataFrame, reference: Reference) -> pl.DataFrame:
    """Return the roles of activities, those without an operator by a reference where it can tell.

    Args:
        activities: `Activities` of the run.
        own: its `Roles`, row by row: what is told without a reference, and stays where it knows
            no better.
        reference: a run with kernels.

    Raises:
        InputError: the two runs have no kernel in common.
    """
    wanting = _wanting(activities)
    if not wanting.any() or not reference.activities.height:
        return own
    names = activities[Activities.name].filter(pl.Series(wanting)).unique()
    if not names.is_in(reference.activities[Activities.name].unique().implode()).any():
        raise InputError(
            f"{reference.name}: no kernel has the name of one in the run to analyze; expected "
            "the same model on the same kind of GPU as --reference"
        )
    known = reference.roles
    twins = _twins(activities, reference.activities, known, wanting)
    unknown = (known[Roles.method] == BY_NOTHING).to_numpy()
    told = wanting & (twins.row != NOBODY)
    told[told] = ~unknown[twins.row[told]]
    return _told(own, known, twins, told, _between(activities, own, known, twins, wanting))


def _wanting(activities: pl.DataFrame) -> Flags:
    """Tell which activities have no operator of their own: graph nodes, and bare launches."""
    replayed = activities[Activities.graph_replay].fill_null(value=False)
    captured = (activities[Activities.op_link] == BY_CAPTURE).fill_null(value=False)
    bare = activities[Activities.op_name].is_null()
    return ((replayed & ~captured) | bare).to_numpy()


def _twins(
    activities: pl.DataFrame, reference: pl.DataFrame, known: pl.DataFrame, wanting: Flags
) -> _Twins:
    tokens = number_alike(activities, reference)
    passes = _distinct(_passes(reference, known), tokens.there)
    layers = known[Roles.layer].fill_null(NOBODY).to_numpy()
    row = np.full(activities.height, NOBODY, np.int64)
    sure, placed = np.zeros(activities.height), np.zeros(activities.height, bool)
    done: dict[bytes, tuple[Numbers, npt.NDArray[np.float64], bool]] = {}
    for rows in _units(activities):
        if not wanting[rows].any():
            continue
        key = tokens.here[rows].tobytes()
        if key not in done:
            theirs = _nearest(tokens.here[rows], passes, tokens)
            done[key] = _match(tokens.here[rows], theirs, tokens, layers)
        row[rows], sure[rows], placed[rows] = done[key]
    return _Twins(row, sure, placed)


def _match(
    mine: Numbers, theirs: Numbers, tokens: Tokens, layers: Numbers
) -> tuple[Numbers, npt.NDArray[np.float64], bool]:
    """Align a sequence with a reference pass (rows): each item's twin, how sure, and if placed.

    A graph may hold several passes: the reference is then repeated. A sequence inside one layer
    of several fits each of them, so it says nothing of the layer.
    """
    theirs = np.tile(theirs, max(1, int(len(mine) / len(theirs) + NEARLY)))
    left, right, worth = tokens.worth(mine, tokens.there[theirs])
    place = align(left, right, worth)
    matched = place != NOBODY
    sure = np.zeros(len(mine))
    grades = worth[left[matched], right[place[matched]]]
    sure[matched] = np.array([SURENESS[int(g)] for g in grades]) * _beside(place)[matched]
    row = np.where(matched, theirs[place], NOBODY)
    met = np.unique(layers[row[matched]])
    placed = len(met[met != NOBODY]) > 1 or int(layers[theirs].max(initial=NOBODY)) < 1
    return row, sure, placed


def _beside(place: Numbers) -> npt.NDArray[np.float64]:
    """Return for each match the share of its neighbours whose twins are the twin's neighbours."""
    at = np.arange(len(place))
    agree, seen = np.zeros(len(place)), np.zeros(len(place))
    for step in range(1, NEIGHBOURS + 1):
        for other in (at - step, at + step):
            inside = (other >= 0) & (other < len(place))
            near = place[np.clip(other, 0, len(place) - 1)]
            # One missing or one more kernel between them is no disagreement.
            shift = np.abs((near - place) - (other - at))
            agree += inside & (near != NOBODY) & (shift <= 1)
            seen += inside
    return np.where(seen > 0, agree / np.maximum(seen, 1), 1.0)


def _units(activities: pl.DataFrame) -> Iterator[Numbers]:
    """Return the rows of each step on each stream; outside steps, of each graph replay there."""
    unit = pl.when(pl.col(Activities.step).is_null()).then(pl.col(Activities.launch))
    replay = pl.col(Activities.graph_replay).fill_null(value=False)
    keyed = (
        activities.with_row_index(_ROW)
        .with_columns(pl.when(replay).then(unit).alias(_UNIT))
        .sort(*STREAM, Activities.start_ns, _ROW)
        .group_by(*STREAM, Activities.step, _UNIT, maintain_order=True)
        .agg(_ROW)
    )
    for rows in keyed[_ROW]:
        yield rows.to_numpy().astype(np.int64)


def _passes(reference: pl.DataFrame, known: pl.DataFrame) -> Iterator[Numbers]:
    """Return the rows of each pass on each stream: a step, cut where layers lead to embedding."""
    role, layer = known[Roles.role].to_numpy(), known[Roles.layer].is_not_null().to_numpy()
    ordered = (
        reference.with_row_index(_ROW)
        .sort(*STREAM, Activities.start_ns, _ROW)
        .group_by(*STREAM, Activities.step, maintain_order=True)
        .agg(_ROW)
    )
    for rows in (r.to_numpy().astype(np.int64) for r in ordered[_ROW]):
        embeds = np.flatnonzero(role[rows] == EMBEDDING)
        layers_before = np.concatenate([[0], np.cumsum(layer[rows])])[embeds]
        first = np.diff(layers_before, prepend=0) > 0
        yield from (part for part in np.split(rows, embeds[first]) if len(part))


def _distinct(passes: Iterator[Numbers], token: Numbers) -> list[Numbers]:
    found: dict[bytes, Numbers] = {}
    for rows in passes:
        found.setdefault(token[rows].tobytes(), rows)
    return list(found.values())


def _nearest(mine: Numbers, passes: list[Numbers], tokens: Tokens) -> Numbers:
    """Return the pass that shares most with a sequence, launches and names counted alike."""

    def shared(theirs: Numbers) -> float:
        other = tokens.there[theirs]
        launches = _overlap(mine, other)
        names = _overlap(tokens.name[mine], tokens.name[other])
        return (launches + names) / (len(mine) + len(other))

    return max(passes, key=shared)


def _overlap(one: Numbers, other: Numbers) -> int:
    size = int(max(one.max(), other.max())) + 1
    return int(
        np.minimum(np.bincount(one, minlength=size), np.bincount(other, minlength=size)).sum()
    )


def _between(
    activities: pl.DataFrame, own: pl.DataFrame, known: pl.DataFrame, twins: _Twins, wanting: Flags
) -> pl.Series:
    """Return the role of what has no twin but stands between two twins of one role, else null."""
    role = known[Roles.role].to_numpy()
    twin = pl.Series(role[twins.row]).set(pl.Series(twins.row == NOBODY), None)
    beside = activities.select(*STREAM, Activities.step, Activities.start_ns).with_columns(
        twin.alias(_TOKEN)
    )
    where = [*STREAM, Activities.step]
    before, after = (
        beside.with_row_index(_ROW)
        .sort(*where, Activities.start_ns, _ROW)
        .with_columns(
            pl.col(_TOKEN).forward_fill().over(where).alias("before"),
            pl.col(_TOKEN).backward_fill().over(where).alias("after"),
        )
        .sort(_ROW)
        .select("before", "after")
    )
    lonely = pl.Series(wanting & (twins.row == NOBODY)) & (own[Roles.role] == OTHER)
    return before.set(~(lonely & (before == after).fill_null(value=False)), None)


def _told(
    own: pl.DataFrame, known: pl.DataFrame, twins: _Twins, told: Flags, between: pl.Series
) -> pl.DataFrame:
    """Put together what the reference tells, what stands between, and what was known before."""
    twin = known[np.where(told, twins.row, 0)]
    has_twin, filled = pl.Series(told), between.is_not_null()
    layer = twin[Roles.layer].set(pl.Series(~twins.placed), None)
    confidence = twin[Roles.confidence] * pl.Series(twins.sure)
    # Names and order had told the same without the reference: both would have to be wrong.
    alike = twin[Roles.role] == own[Roles.role]
    both = 1 - (1 - confidence) * (1 - own[Roles.confidence])
    confidence = both.set(~alike, None).fill_null(confidence)

    def choose(name: str, by_twin: pl.Series | str, by_place: pl.Series | str | float) -> pl.Expr:
        place = pl.lit(by_place)
        theirs = pl.lit(by_twin)
        return (
            pl.when(has_twin).then(theirs).when(filled).then(place).otherwise(pl.col(name))
        ).alias(name)

    return own.with_columns(
        choose(Roles.role, twin[Roles.role], between),
        choose(Roles.fused, twin[Roles.fused], own[Roles.fused]),
        choose(Roles.layer, layer, own[Roles.layer]),
        choose(Roles.method, BY_REFERENCE, BY_REFERENCE),
        choose(Roles.confidence, confidence, BETWEEN),
    ).select(pl.col(name).cast(type_) for name, type_ in polars_schema(Roles).items())
