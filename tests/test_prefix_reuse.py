"""What a shared prefix saves: later prompts against unique ones, over rounds."""

from pathlib import Path

import pytest

from tests.experiment_runs import a_run, point
from tests.frames import Row, table
from whichwall.analyze.analysis import analyze
from whichwall.analyze.prefix_reuse import prefix_reuse
from whichwall.schemas.completions import Completions
from whichwall.schemas.points import FIRST, LATER, UNIQUE, Points
from whichwall.schemas.run import frame
from whichwall.schemas.table import Table

MS = 10**6
POINTS = table(Points, *(point(n, label=label) for n, label in enumerate((UNIQUE, FIRST, LATER))))


def request(number: int, visit: int, index: int, ttft_ms: int | None, **more: object) -> Row:
    return {
        Completions.point: number, Completions.rank: 0, Completions.visit: visit,
        Completions.index: index, Completions.lane: 0, Completions.stage: "clean",
        Completions.start_ns: 1_790_000_000 * 10**9 + index * MS,
        Completions.ttft_ns: None if ttft_ms is None else ttft_ms * MS,
        Completions.total_ns: 1000 * MS, Completions.prompt_tokens: 80,
        Completions.prefix_tokens: 64 if number else 0,
        Completions.cached_tokens: 64 if number == 2 else 0, Completions.outcome: "done", **more,
    }  # fmt: skip


def rounds(*later_ms: int) -> list[Row]:
    """Return rounds in which unique and first prompts wait about 100 ms, later ones as told."""
    return [
        row
        for visit, later in enumerate(later_ms)
        for row in (
            request(0, visit, visit, 100 + visit),
            request(1, visit, visit, 100 + visit + (1 if visit % 2 else -1)),
            request(2, visit, visit, later),
        )
    ]


def test_the_ratio_is_of_later_first_tokens_to_unique_ones_with_an_interval() -> None:
    found = prefix_reuse(POINTS, table(Completions, *rounds(10, 10, 11, 10)))

    assert found is not None
    assert found.later_to_unique is not None
    assert found.later_to_unique.ratio == pytest.approx(0.1, rel=0.05)
    assert found.later_to_unique.seen
    assert found.first_to_unique is not None
    assert not found.first_to_unique.seen
    assert (found.rounds, found.prefix_tokens, found.prompt_tokens) == (4, 64, 80)
    assert (found.cached_tokens_unique, found.cached_tokens_later) == (0, 64)


def test_one_round_has_a_ratio_without_an_interval() -> None:
    found = prefix_reuse(POINTS, table(Completions, *rounds(10)))

    assert found is not None
    assert found.later_to_unique is not None
    assert (found.later_to_unique.low, found.later_to_unique.seen) == (None, None)


def test_requests_that_failed_are_counted_and_no_more() -> None:
    lost = request(2, 0, 9, 900, outcome="dropped")
    found = prefix_reuse(POINTS, table(Completions, *rounds(10, 10), lost))

    assert found is not None
    assert found.failed == 1
    assert found.later is not None
    assert found.later.count == 2


def test_kinds_that_were_not_answered_have_no_ratio() -> None:
    found = prefix_reuse(POINTS, table(Completions, request(0, 0, 0, 100)))

    assert found is not None
    assert (found.later, found.later_to_unique) == (None, None)


def test_kinds_that_were_answered_in_different_rounds_are_not_compared(tmp_path: Path) -> None:
    rows: dict[type[Table], list[Row]] = {
        Points: POINTS.rows(named=True),
        Completions: [request(0, 0, 0, 100), request(2, 1, 0, 10)],
    }
    summary = analyze(a_run(tmp_path / "run", "prefix", rows, gpus=())).summary

    assert summary.prefix is not None
    assert summary.prefix.later_to_unique is None
    assert summary.answer == "Not known: no round has an answer of both kinds."


def test_other_runs_have_none() -> None:
    assert prefix_reuse(table(Points, point(0)), table(Completions, *rounds(10))) is None
    assert prefix_reuse(POINTS, frame(Completions, [])) is None
