"""Measure in several fresh processes, one after the other, and make one run of what they found."""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from whichwall.collect.fresh import run_fresh
from whichwall.collect.options import CollectOptions
from whichwall.collect.progress import Reporter
from whichwall.collect.sampler import Samples
from whichwall.collect.writing import Row
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import CollectError
from whichwall.schemas.manifest import SamplerFacts
from whichwall.schemas.points import Points

# Loading a large model and compiling it take minutes; what takes longer than this hangs.
PATIENCE_S = 1800.0


class Block(msgspec.Struct, frozen=True):
    """What a sampler brought home from one stretch, or why there was none."""

    why_none: str | None
    rows: list[Row]
    facts: SamplerFacts | None
    diagnostics: list[Diagnostic]


@dataclass
class Processes:
    """Fresh processes of one run; what a failed one says stands beside what others found."""

    function: str  # `module:function`; takes `options` and `process`
    options: CollectOptions
    folder: Path
    failures: list[str] = field(default_factory=list)

    def run(self, numbers: range, reporter: Reporter) -> Iterator[tuple[Any, Path]]:
        """Yield the value of each process that ended well, with the folder of its files.

        The folder is gone when the next one begins.
        """
        # Where the run goes, and where an interrupted one is taken up, is not theirs to know.
        asked = asdict(replace(self.options, out=None, resume=None))
        for number in numbers:
            reporter.part(f"process {number + 1} of {numbers.stop}", number, numbers.stop)
            place = self.folder / f"process{number}"
            place.mkdir()
            spec = {"options": asked, "process": number}
            try:
                value = run_fresh(self.function, spec, place, PATIENCE_S)
            except CollectError as error:
                self.failures.append(str(error))
            else:
                yield value, place
            shutil.rmtree(place)

    def with_reason(self, point: Row, total: int) -> Row:
        """Return the row of a point, with what stopped the processes that failed."""
        if not self.failures:
            return point
        said = f"{len(self.failures)} of {total} processes failed: {self.failures[0]}"
        reason = point[Points.reason]
        return {**point, Points.reason: f"{reason}; {said}" if reason else said}


def joined(blocks: Sequence[Block]) -> Samples:
    """Return what a sampler brought home from several stretches as if it were from one."""
    said: dict[Diagnostic, None] = {}
    for block in blocks:
        said |= dict.fromkeys(block.diagnostics)
    return Samples(
        rows=[row for block in blocks for row in block.rows],
        facts=_together([block.facts for block in blocks if block.facts is not None]),
        diagnostics=list(said),
    )


def _together(facts: Sequence[SamplerFacts]) -> SamplerFacts | None:
    """Return the first's facts with all that could not be read counted together."""
    if not facts:
        return None
    nulls: dict[str, Counter[str]] = {}
    for one in facts:
        for name, texts in one.nulls.items():
            nulls.setdefault(name, Counter()).update(texts)
    return msgspec.structs.replace(
        facts[0],
        nulls={name: dict(texts) for name, texts in nulls.items()},
        rejected_lines=sum(one.rejected_lines for one in facts),
        events=[event for one in facts for event in one.events],
    )
