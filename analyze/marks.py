"""Which annotations mark a pass of the model, and what their text says of it.

Known kinds: our own, the profiler's `ProfilerStep#N`, vLLM's `execute_…`, SGLang's `step[…]`.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from whichwall.schemas import ranges
from whichwall.schemas.marks import Marks
from whichwall.schemas.passes import DECODE, PREFILL
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.run import frame, polars_schema
from whichwall.schemas.steps import BY_ANNOTATION

OURS, PROFILER, VLLM, SGLANG = "whichwall", "profiler", "vllm", "sglang"
# Engines schedule between steps: under the profiler their period is 2 to 3 times the clean one.
ENGINES = (VLLM, SGLANG)

PLACE = [Ranges.point, Ranges.rank]
N = r"(\d{1,12})(?!\d)"  # a count; one that 64 bits cannot hold is none
_END = "end_ns"


class Saying(NamedTuple):
    """What the text of an annotation says of the pass."""

    phase: str | None = None
    batch: int | None = None
    tokens: int | None = None


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


def _stage(match: re.Match[str]) -> Saying:
    """Read `step[DECODE bs=8 toks=8]`, in whatever order the words come."""
    text = match.group(1)
    words = text.upper()
    phase = DECODE if "DECODE" in words else PREFILL if re.search("EXTEND|PREFILL", words) else None
    batch = re.search(rf"\bbs\s*=\s*{N}\b", text)
    tokens = re.search(rf"\btoks?\s*=\s*{N}\b", text)
    return Saying(
        phase, int(batch.group(1)) if batch else None, int(tokens.group(1)) if tokens else None
    )


def _phase(prompts: int, answers: int) -> str | None:
    if prompts:
        return PREFILL
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
    rows = [row for row in known.iter_rows(named=True) if _read(row[Ranges.name])]
    if not rows:
        return pl.DataFrame(schema=polars_schema(Marks))
    outer = _outermost(pl.DataFrame(rows, schema=known.schema))
    return frame(Marks, [_mark(row) for row in outer.iter_rows(named=True)]).with_columns(
        pl.int_range(pl.len(), dtype=pl.Int64).over(PLACE).alias(Marks.step)
    )


def _read(name: str) -> tuple[str, Saying] | None:
    for family, pattern, say in KINDS:
        if match := pattern.match(name):
            return family, say(match)
    return None


def _mark(row: dict[str, object]) -> dict[str, object]:
    read = _read(str(row[Ranges.name]))
    assert read is not None
    family, saying = read
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


def _outermost(known: pl.DataFrame) -> pl.DataFrame:
    """Drop a mark that lies within an earlier one; marks that merely cross are both kept."""
    end = pl.col(Ranges.start_ns) + pl.col(Ranges.dur_ns)
    reached = pl.col(_END).cum_max().shift(1).over(PLACE)
    return (
        known.with_columns(end.alias(_END))
        .sort([*PLACE, Ranges.start_ns, _END], descending=[False, False, False, True])
        .filter((pl.col(_END) > reached).fill_null(value=True))
    )
