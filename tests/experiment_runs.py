"""Runs of experiments for tests: points, passes and samples of an invented card, written small."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.frames import MANIFEST, Row
from tests.golden import GPU, MODEL, UUID
from whichwall.schemas.ceilings import COPY, MATMUL, READ, Ceilings
from whichwall.schemas.completions import DONE as ANSWERED
from whichwall.schemas.completions import Completions
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.manifest import Gpu, Manifest
from whichwall.schemas.passes import CLEAN, DECODE, PREFILL, WARMUP, Passes
from whichwall.schemas.points import DONE, Points
from whichwall.schemas.run import Run, open_run
from whichwall.schemas.samples import Samples
from whichwall.schemas.table import Table
from whichwall.schemas.tokens import Tokens

S, MS = 10**9, 10**6
BEGIN_NS = 1_790_000_000 * S
# One limit of each kind that floors rest on.
LIMITS = ((READ, 4095.0, "GB/s", None), (COPY, 4189.0, "GB/s", None),
          (MATMUL, 748.0, "TFLOP/s", "bfloat16"))  # fmt: skip


def point(number: int, **more: object) -> Row:
    """Return a row of `Points` that ended in done, unless it says otherwise."""
    return {
        Points.point: number,
        Points.engine: "eager",
        Points.attention: "sdpa",
        Points.dtype: "bfloat16",
        Points.batch: 1,
        Points.context_tokens: 16,
        Points.prompt_tokens: 16,
        Points.new_tokens: 4,
        Points.outcome: DONE,
        **more,
    }


class Clock:
    """Gives passes that follow one another their starts."""

    def __init__(self, now_ns: int = BEGIN_NS) -> None:
        """Start at a time."""
        self.now_ns = now_ns

    def passes(
        self,
        number: int,
        walls_ns: Iterable[int],
        phase: str = DECODE,
        stage: str = CLEAN,
        *,
        visit: int = 0,
        **more: Any,
    ) -> list[Row]:
        """Return passes of one point, one after the other."""
        rows = []
        for index, wall in enumerate(walls_ns):
            rows.append(
                {
                    Passes.point: number,
                    Passes.rank: 0,
                    Passes.stage: stage,
                    Passes.phase: phase,
                    Passes.index: index,
                    Passes.visit: visit,
                    Passes.start_ns: self.now_ns,
                    Passes.wall_ns: wall,
                    Passes.batch: 1,
                    Passes.tokens: 1,
                    Passes.context_tokens: 16,
                    **more,
                }
            )
            self.now_ns += wall
        return rows

    def request(
        self,
        number: int,
        prefill_ns: int,
        steps_ns: Sequence[int],
        *,
        visit: int = 0,
        **more: Any,
    ) -> list[Row]:
        """Return a clean prefill of 16 tokens and the steps after it."""
        first = {Passes.tokens: 16, Passes.context_tokens: 0} | more
        return [
            *self.passes(number, [prefill_ns], PREFILL, visit=visit, **first),
            *self.passes(number, steps_ns, visit=visit, **more),
        ]

    def soak(self, number: int, seconds: int, wall_ns: int, phase: str = DECODE) -> list[Row]:
        """Return warm-up passes over a stretch of time."""
        return self.passes(number, [wall_ns] * (seconds * S // wall_ns), phase, WARMUP)


def completion(number: int, index: int, **more: object) -> Row:
    """Return a clean request that was answered within 20 ms, of three tokens; see `came`."""
    return {
        Completions.point: number,
        Completions.rank: 0,
        Completions.visit: 0,
        Completions.index: index,
        Completions.lane: 0,
        Completions.stage: CLEAN,
        Completions.start_ns: BEGIN_NS + index * 20 * MS,
        Completions.ttft_ns: 10 * MS,
        Completions.total_ns: 20 * MS,
        Completions.prompt_tokens: 16,
        Completions.new_tokens: 3,
        Completions.outcome: ANSWERED,
        **more,
    }


def came(number: int, index: int, *at_ms: int) -> list[Row]:
    """Return a chunk of a token at each time since a request was sent."""
    return [
        {
            Tokens.point: number,
            Tokens.completion: index,
            Tokens.index: place,
            Tokens.at_ns: at * MS,
            Tokens.tokens: 1,
        }
        for place, at in enumerate(at_ms)
    ]


def sampled(begin_ns: int, seconds: float, **more: object) -> list[Row]:
    """Return a sample every 100 ms."""
    return [
        {
            Samples.time_ns: begin_ns + place * 100 * MS,
            Samples.gpu_uuid: UUID,
            Samples.sm_clock_mhz: 1980.0,
            Samples.power_instant_w: 130.0,
            Samples.power_limit_w: 700.0,
            Samples.temperature_c: 40.0,
            Samples.throttle_reasons: 0,
            **more,
        }
        for place in range(round(seconds * 10))
    ]


def limit(name: str, value: float, unit: str, dtype: str | None = None, **more: object) -> Row:
    """Return a row of `Ceilings` of the invented card."""
    return {
        Ceilings.rank: 0,
        Ceilings.gpu_uuid: UUID,
        Ceilings.name: name,
        Ceilings.value: value,
        Ceilings.unit: unit,
        Ceilings.dtype: dtype,
        Ceilings.start_ns: BEGIN_NS,
        **more,
    }


def a_run(
    out: Path,
    mode: str,
    tables: dict[type[Table], list[Row]],
    *,
    gpus: Sequence[Gpu] = (GPU,),
    manifest: Manifest = MANIFEST,
) -> Run:
    """Write a run of a mode; without ceilings of its own it gets those that floors need."""
    if Ceilings not in tables and gpus:
        tables = tables | {Ceilings: [limit(*row) for row in LIMITS]}
    told = msgspec.structs.replace(
        manifest, mode=mode, gpus=list(gpus), model=manifest.model or MODEL
    )
    with RunWriter(out) as writer:
        for table, rows in tables.items():
            writer.write(table, rows)
        return open_run(writer.finish(told))
