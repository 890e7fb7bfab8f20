"""Find the passes of a model where a recording's kernel sequence repeats, without annotations.

Kernels are read as coarse words, so that one pass's prefill and the next one's decode, or an eager
step and its graph replay, look alike. What occurs n times, evenly spread, may mark the beginning
of n passes; it does if the stretches between hold the same words about as often, each nearly all
words of the recording. Layers repeat too, but a layer lacks what a pass does once. The recording is
taken as a ring, so that a layer's last stretch holds the rest of the pass, and differs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import polars as pl

from whichwall.analyze.lookups import with_work
from whichwall.analyze.roles.kernel_words import kernel_word
from whichwall.schemas.activities import Activities
from whichwall.schemas.marks import Marks
from whichwall.schemas.run import frame
from whichwall.schemas.steps import BY_REPETITION

# A compiled decoder layer alone has about ten kernels, so fewer are no pass of a model.
SHORTEST_PASS = 10
# Words that two stretches share, of all they have (Bray-Curtis). Decode steps of one model have
# 0.99 and more, its prefill beside them 0.88 to 1; a layer with what a pass does once, 0.4 to 0.83.
SIMILAR = 0.9
# One stretch in four may differ: a prefill that takes other ways, a step of an optimizer.
ODD = 0.25
# Words of the recording that over half of the stretches hold, of all. Passes have 1; layers 0.05
# to 0.75.
VOCABULARY, HALF = 0.85, 0.5
# One kind of pass may have up to twice the activities of another.
LONGER = 2.0
# A few anchors that occur equally often settle whether so many passes are there.
ANCHORS_TRIED = 4
# A kernel before an anchor begins the pass too where it stands before most anchors.
MOST = 0.75
# What a pass does once: it looks its tokens up, and picks the next ones.
LOOKUP = "index_select"
LOOKUP_NAME = "embedding"
# Not `sample` alone: engines prepare the tokens sampled before, and vision models upsample.
PICK_NAME = r"(?i)argmax|multinomial|gumbel|sampling"

PLACE = [Activities.point, Activities.rank]
_QUEUED_NS, _ROW = "queued_ns", "row"
_TEMPLATE = re.compile(r"[<(].*", re.DOTALL)
_NUMBERS = re.compile(r"\d+")

Known = dict[bytes, list[int]]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def find_passes(activities: pl.DataFrame, ops: pl.DataFrame) -> pl.DataFrame:
    """Return the passes that repetition shows, as `Marks` in order of time; none where none does.

    Args:
        activities: linked rows of `Activities`. A pass begins with the launch of its first.
        ops: rows of `Ops`, whose shapes tell what a pass works on.
    """
    rows: list[dict[str, object]] = []
    for (point, rank), mine in activities.partition_by(PLACE, as_dict=True).items():
        rows += [
            {Marks.point: point, Marks.rank: rank, Marks.step: step,
             Marks.found_by: BY_REPETITION, Marks.begin_ns: begin_ns}
            for step, begin_ns in enumerate(begins_of_passes(mine))
        ]  # fmt: skip
    return with_work(frame(Marks, rows).sort(*PLACE, Marks.step), ops)


def begins_of_passes(activities: pl.DataFrame, known: Known | None = None) -> list[int]:
    """Return when the passes of one rank begin on the host, ns; empty for fewer than two.

    Devices of one process may share a pass between them, or each do the same: all activities are
    read together, and where that shows nothing, those of the busiest device.

    Args:
        activities: linked rows of `Activities` of one point and rank.
        known: sequences met before, to be met again; filled here.
    """
    known = {} if known is None else known
    found = _begins(activities, known)
    devices = activities.partition_by(Activities.device, maintain_order=True)
    if not found and len(devices) > 1:
        found = _begins(max(devices, key=lambda device: device.height), known)
    return found


def _begins(activities: pl.DataFrame, known: Known) -> list[int]:
    queued = in_launch_order(activities)
    key = queued.select(
        pl.struct(Activities.name, Activities.op_name).hash(),
        (pl.col(Activities.launch) == pl.col(Activities.launch).shift(1)).alias(_ROW),
    ).hash_rows().to_numpy().tobytes()  # fmt: skip
    if key not in known:
        known[key] = cut_passes(queued)
    return queued[_QUEUED_NS].gather(known[key]).to_list()


def in_launch_order(activities: pl.DataFrame) -> pl.DataFrame:
    """Return activities as they were queued; one without a launch follows its stream."""
    stream = [Activities.device, Activities.stream]
    return (
        activities.with_row_index(_ROW)
        .with_columns(
            pl.col(Activities.launch_start_ns)
            .forward_fill()
            .over(stream)
            .fill_null(pl.col(Activities.start_ns))
            .alias(_QUEUED_NS)
        )
        .sort(_QUEUED_NS, Activities.start_ns, _ROW)
    )


@dataclass(frozen=True)
class _Sequence:
    """A sequence of activities, as words and as what may mark a pass."""

    word: Numbers  # of each activity
    words: int
    looks_up: Flags
    picks: Flags
    launch: Numbers  # where the activities of each one's launch begin


def cut_passes(queued: pl.DataFrame) -> list[int]:
    """Return where the passes of a sequence in launch order begin; empty for fewer than two."""
    if queued.height < 2 * SHORTEST_PASS:
        return []
    sequence = _sequence(queued, _words(queued))
    for anchors in _anchors(queued, sequence):
        for cuts in islice(anchors, ANCHORS_TRIED):
            if _are_passes(sequence, cuts):
                first = _first_anchor(sequence, anchors, cuts)
                return [int(cut) for cut in _drawn_back(sequence, first)]
    return []


def _words(queued: pl.DataFrame) -> pl.Series:
    """Return the coarse word of each activity, by its kernel alone: a replay has no operator."""
    names = queued[Activities.name]
    distinct = names.unique().to_list()
    return names.replace_strict(distinct, [_word(n) for n in distinct], return_dtype=pl.String)


def _word(name: str) -> str:
    return kernel_word(name) or _NUMBERS.sub("", _TEMPLATE.sub("", name))


def _sequence(queued: pl.DataFrame, words: pl.Series) -> _Sequence:
    names, codes = queued[Activities.name], _codes(words)
    own = -1 - pl.int_range(queued.height, eager=True)
    launch = queued[Activities.launch].fill_null(own).to_numpy()
    begins = np.append(True, launch[1:] != launch[:-1])
    return _Sequence(
        word=codes,
        words=int(codes.max()) + 1,
        looks_up=((words == LOOKUP) | names.str.contains(LOOKUP_NAME, literal=True)).to_numpy(),
        picks=names.str.contains(PICK_NAME).to_numpy(),
        launch=np.maximum.accumulate(np.where(begins, np.arange(len(launch)), 0)),
    )


def _codes(texts: pl.Series) -> Numbers:
    """Number the distinct texts in their order: what `rank` does, without sorting every row."""
    distinct = texts.unique().sort()
    numbers = pl.int_range(len(distinct), eager=True)
    return texts.replace_strict(distinct, numbers, return_dtype=pl.Int64).to_numpy()


def _anchors(queued: pl.DataFrame, sequence: _Sequence) -> Iterator[list[Numbers]]:
    """Return what may begin passes, by how many: the most first, so the first to hold is finest.

    A kernel that only runs every few passes would mark those as one. Of those that occur equally
    often a token lookup goes before, then what occurs first.
    """
    operators = _codes(queued[Activities.op_name].fill_null(""))
    _, both = np.unique(operators * sequence.words + sequence.word, return_inverse=True)
    by_count: dict[int, list[Numbers]] = {}
    for codes in (sequence.word, both, _codes(queued[Activities.name])):
        for places in _places(codes):
            if _evenly_spread(places, queued.height):
                by_count.setdefault(len(places), []).append(places)
    for count in sorted(by_count, reverse=True):
        yield sorted(by_count[count], key=lambda at: (not sequence.looks_up[at[0]], at[0]))


def _places(codes: Numbers) -> list[Numbers]:
    """Return where each code occurs, of those that occur again but not too often."""
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    most = len(codes) // SHORTEST_PASS
    return [places for places in np.split(order, ends[:-1]) if 2 <= len(places) <= most]


def _evenly_spread(places: Numbers, length: int) -> bool:
    """Tell whether most stretches between the places, around the ring, are about as long."""
    stretches = np.append(np.diff(places), length - places[-1] + places[0])
    usual = np.median(stretches)
    even = (stretches * LONGER >= usual) & (stretches <= usual * LONGER)
    return bool(usual >= SHORTEST_PASS and even.mean() >= 1 - ODD)


def _are_passes(sequence: _Sequence, cuts: Numbers) -> bool:
    """Tell whether the stretches that begin at the cuts are passes, each as the others."""
    starts = sequence.launch[cuts]
    if len(np.unique(starts)) < len(cuts):  # one graph holds several: they are layers
        return False
    ring = _stretches(starts, len(sequence.word))
    ring[ring < 0] = len(cuts) - 1
    held = [_holds(ring, flags, len(cuts)) for flags in (sequence.looks_up, sequence.picks)]
    # What a pass does once must be in most stretches, if it is anywhere.
    if any(h.any() and h.mean() < 1 - ODD for h in held):
        return False
    counts = _counts(sequence, ring, len(cuts))
    usual = np.quantile(counts, 0.5, axis=0, method="lower")
    similar = 1 - np.abs(counts - usual).sum(axis=1) / (counts + usual).sum(axis=1) >= SIMILAR
    if similar.mean() < 1 - ODD:
        return False
    # With both in every stretch, what lies before the first pass is no part of it. Where the lookup
    # itself begins them, the last may be cut off before its pick.
    both = np.logical_and(*held)
    whole = bool(both[:-1].all() and (both[-1] or sequence.looks_up[cuts].all()))
    common = (counts > 0).mean(axis=0) > HALF
    return whole or bool(similar[-1] and common.mean() >= VOCABULARY)


def _stretches(starts: Numbers, length: int) -> Numbers:
    """Return which stretch each activity belongs to; -1 before the first."""
    return np.searchsorted(starts, np.arange(length), side="right") - 1


def _counts(sequence: _Sequence, ring: Numbers, count: int) -> Numbers:
    """Return how often each stretch (row) holds each word (column)."""
    cells = np.bincount(ring * sequence.words + sequence.word, minlength=count * sequence.words)
    return cells.reshape(count, sequence.words)


def _holds(ring: Numbers, flags: Flags, count: int) -> Flags:
    return np.bincount(ring[flags], minlength=count) > 0


def _first_anchor(sequence: _Sequence, anchors: list[Numbers], cuts: Numbers) -> Numbers:
    """Return the first anchor of the pass that the cuts lie in, but none before its picks."""
    picked = np.append(0, np.cumsum(sequence.picks))
    for places in sorted(anchors, key=lambda at: at[0]):
        follows = sequence.launch[places][1:] > cuts[:-1]
        before = bool((places <= cuts).all() and follows.all())
        if before and (picked[places] == picked[cuts]).all():
            return places
    return cuts


def _drawn_back(sequence: _Sequence, cuts: Numbers) -> Numbers:
    """Return the cuts at the first activity of each pass: the same before most anchors.

    The first pass has to agree: before it alone lies no other's end.
    """
    starts = sequence.launch[cuts]
    back = 0
    while back < starts[0]:
        before = starts - back - 1
        words = sequence.word[before]
        differs = (words == words[0]).mean() < MOST or sequence.picks[before].any()
        if differs or (sequence.launch[before][1:] <= starts[:-1]).any():
            break
        back += 1
    return sequence.launch[starts - back]
