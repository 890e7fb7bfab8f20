"""Say how the test that would confirm a verdict came out, where the run has made it."""

from whichwall.analyze.quantities import duration, signed_percent
from whichwall.analyze.thresholds import CONFIRMED_WITHIN
from whichwall.analyze.walls import BYTES, KERNELS, LAUNCHES, MIXED
from whichwall.schemas.moves import BATCH, FUSED_ELEMENTWISE, FUSED_GRAPH, GRAPH, Move

# The change that each wall's test makes; where there are several, the first that was measured.
TESTS: dict[str, tuple[tuple[str, int | None], ...]] = {
    LAUNCHES: ((GRAPH, None),),
    KERNELS: ((FUSED_GRAPH, None), (FUSED_ELEMENTWISE, None)),
    BYTES: ((BATCH, 2),),
    MIXED: ((GRAPH, None),),
}


def result_of(wall: str | None, moves: list[Move]) -> str | None:
    """Return the result of a wall's test in words; null where it was not run."""
    for name, batch in TESTS.get(wall or "", ()):
        for move in moves:
            if (move.name, move.batch) == (name, batch) and move.error is not None:
                return _said(move, move.error)
    return None


def _said(move: Move, error: float) -> str:
    close = abs(error) <= CONFIRMED_WITHIN
    return (
        f"{move.measured_by} took {duration(move.measured_ns)} where "
        f"{duration(move.predicted_ns)} was predicted ({signed_percent(error)}): "
        + ("confirmed" if close else "not confirmed, the prediction is too far off")
    )
