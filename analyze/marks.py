"""Which annotations mark a pass of the model, and what their text says of it.

Known kinds: our own, the profiler's `ProfilerStep#N`, vLLM's `execute_…`, SGLang's `step[…]`.
Of nested ones the outermost counts. A profiler's step says nothing itself: it means what the
engine's mark inside it says, and where it holds several of them, each is a pass.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

import polars as pl

from whichwall.analyze.roles.kernel_words import fused_word
from whichwall.schemas import ranges
from whichwall.schemas.marks import MIXED, Marks
from whichwall.schemas.passes import DECODE, PREFILL
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.run import frame, polars_schema
from whichwall.schemas.steps import BY_ANNOTATION

OURS, PROFILER, VLLM, SGLANG = "whichwall", "profiler", "vllm", "sglang"
# Engines schedule between steps: under the profiler their period is 2 to 3 times the clean one.
ENGINES = (VLLM, SGLANG)
# They alone keep sequences' caches in pages, which kernels of their own find and write.
PAGED = frozenset({"plan_cache", "write_cache"})

PLACE = [Ranges.point, Ranges.rank]
N = r"(\d{1,12})(?!\d)"  # a count; one that 64 bits cannot hold is none
_END = "end_ns"

# SGLang's names of what a pass does with its sequences; any other, such as a verification of
# drafted tokens, is neither prefill nor decode.
STAGES = {
    "DECODE": DECODE,
    **dict.fromkeys(("EXTEND", "PREFILL", "SPLIT_PREFILL"), PREFILL),
    "MIXED": MIXED,
}
# Under which names its tokens come: of all sequences, or of prompts and of answers.
WHOLE, PARTS = ("toks", "tok"), (("ext", "dec"), ("c_sq", "g_sq"))


class Saying(NamedTuple):
    """What the text of an annotation says of the pass."""

    phase: str | None = None
    batch: int | None = None
    tokens: int | None = None


Said = tuple[str, Saying]  # who writes such an annotation, and what it says
Row = dict[str, Any]


def _ours(match: re.Match[str]) -> Saying:
    return Saying(phase=match.group(1))


def _counted(match: re.Match[str]) -> Saying:
    """Read `execute_context_1(1024)_generation_0(0)`: sequences, and tokens in brackets."""
    prompts, prompt_tokens, answers, answer_tokens = (int(g) for g in match.groups())
    return Saying(_phase(prompts, answers), prompts + answers, prompt_tokens + answer_tokens)


def _detailed(match: re.Match[str]) -> Saying:
    """Read `execute_32_context_0(sq0…)_generation_32(sq32…)`: tokens, sequences, lengths."""
    tokens, prompts, answers = (int(g) for g in match.groups())
    return Saying(_phase(prompts, answers), prompts + answers, tokens)


def _cached(match: re.Match[str]) -> Saying:
    """Read `execute_new_1_cached_0`, as older versions write: what began, and what goes on.

    What goes on decodes or is the next piece of a long prompt: that is not said.
    """
    begun, going_on = (int(g) for g in match.groups())
    return Saying(PREFILL if begun and not going_on else None, begun + going_on)


def _stage(match: re.Match[str]) -> Saying:
    """Read `step[DECODE bs=8 toks=8]`, in whatever order and case the words come.

    Where no tokens are said they are those of prompts and answers, or one a sequence that decodes.
    """
    text = match.group(1)
    stages = [STAGES[word] for word in re.findall(r"\w+", text.upper()) if word in STAGES]
    phase = stages[0] if stages else None
    said = {key.lower(): int(n) for key, n in re.findall(rf"\b(\w+)\s*=\s*{N}(?!\w)", text)}
    batch = said.get("bs")
    parts = next((pair for pair in PARTS if said.keys() & {*pair}), None)
    tokens = next((said[key] for key in WHOLE if key in said), None)
    if tokens is None and parts is not None:
        tokens = sum(said.get(key, 0) for key in parts)
    return Saying(phase, batch, batch if tokens is None and phase == DECODE else tokens)


def _phase(prompts: int, answers: int) -> str | None:
    if prompts:
        return MIXED if answers else PREFILL
    return DECODE if answers else None


def _nothing(match: re.Match[str]) -> Saying:  # noqa: ARG001
    return Saying()


KINDS: list[tuple[str, re.Pattern[str], Callable[[re.Match[str]], Saying]]] = [
    (OURS, re.compile(r"^whichwall::(prefill|decode)#\d+$"), _ours),
    (
        VLLM,
        re.compile(rf"^execute_context_{N}\({N}[\d_]*\)_generation_{N}\({N}[\d_]*\)$"),
        _counted,
    ),
    (VLLM, re.compile(rf"^execute_{N}_context_{N}\(.*\)_generation_{N}\(.*\)$"), _detailed),
    (VLLM, re.compile(rf"^execute_new_{N}_cached_{N}$"), _cached),
    (SGLANG, re.compile(r"^step\[(.*)\]$"), _stage),
    (PROFILER, re.compile(r"^ProfilerStep#\d+$"), _nothing),
]


def marks(annotations: pl.DataFrame) -> pl.DataFrame:
    """Return the annotations that mark a pass, outermost only, as `Marks` in order of time.

    Args:
        annotations: rows of `Ranges`.
    """
    known = annotations.filter(
        (pl.col(Ranges.kind) == ranges.ANNOTATION)
        & pl.col(Ranges.name).str.contains("^(whichwall::|execute_|step\\[|ProfilerStep#)")
    )
    said = {name: read for name in known[Ranges.name].unique() if (read := _read(name))}
    end = pl.col(Ranges.start_ns) + pl.col(Ranges.dur_ns)
    known = (
        known.filter(pl.col(Ranges.name).is_in(list(said)))
        .with_columns(end.alias(_END))
        .sort([*PLACE, Ranges.start_ns, _END], descending=[False, False, False, True])
    )
    rows = [
        _mark(row, *said[row[Ranges.name]])
        for group in _nested(known.iter_rows(named=True))
        for row in _meant(group, said)
    ]
    if not rows:
        return pl.DataFrame(schema=polars_schema(Marks))
    return frame(Marks, rows).with_columns(
        pl.int_range(pl.len(), dtype=pl.Int64).over(PLACE).alias(Marks.step)
    )


def _read(name: str) -> Said | None:
    for family, pattern, say in KINDS:
        if match := pattern.match(name):
            return family, say(match)
    return None


def is_engine(found: pl.DataFrame, kernels: pl.Series) -> bool:
    """Tell whether a serving engine ran: by its marks, else by what its kernels are called.

    Args:
        found: rows of `Marks`.
        kernels: names of GPU activities.
    """
    if found[Marks.family].is_in(list(ENGINES)).any():
        return True
    return any(fused_word(name.lower()) in PAGED for name in kernels.unique())


def _nested(known: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield each outermost mark, first, with those that lie within it; crossing ones are apart.

    Args:
        known: marks by place and start, of equal starts the longest first.
    """
    for _, placed in groupby(known, key=lambda row: [row[column] for column in PLACE]):
        group: list[Row] = []
        reached_ns = 0
        for row in placed:
            if group and row[_END] > reached_ns:
                yield group
                group = []
            group.append(row)
            reached_ns = row[_END] if len(group) == 1 else reached_ns
        yield group


def _meant(group: list[Row], said: Mapping[str, Said]) -> list[Row]:
    """Return the outermost mark of a group; for a profiler's step, the marks that it holds.

    What a profiler's step launches before the first of them is of that one.
    """
    outer, *inner = group
    if said[outer[Ranges.name]][0] != PROFILER:
        return [outer]
    telling = [row for row in inner if said[row[Ranges.name]][0] != PROFILER]
    held = [nested[0] for nested in _nested(telling)]
    if not held:
        return [outer]
    return [held[0] | {Ranges.start_ns: outer[Ranges.start_ns]}, *held[1:]]


def _mark(row: Row, family: str, saying: Saying) -> Row:
    return {
        Marks.point: row[Ranges.point],
        Marks.rank: row[Ranges.rank],
        Marks.step: 0,
        Marks.name: row[Ranges.name],
        Marks.found_by: BY_ANNOTATION,
        Marks.family: family,
        Marks.phase: saying.phase,
        Marks.batch: saying.batch,
        Marks.tokens: saying.tokens,
        Marks.begin_ns: row[Ranges.start_ns],
    }
