"""How the test of a wall came out."""

from whichwall.analyze.confirm import result_of
from whichwall.analyze.thresholds import CONFIRMED_WITHIN
from whichwall.schemas.moves import BATCH, FUSED_ELEMENTWISE, FUSED_GRAPH, GRAPH, Move

MS = 1_000_000


def move(name: str, predicted_ms: int, measured_ms: int, batch: int | None = None) -> Move:
    error = predicted_ms / measured_ms - 1
    return Move(name, batch, predicted_ms * MS, "", measured_ms * MS, "a rung", error)


def test_a_graph_near_its_prediction_confirms_launches() -> None:
    assert result_of("launches", [move(GRAPH, 90, 100)]) == (
        "a rung took 100 ms where 90.0 ms was predicted (−10.0 %): confirmed"
    )


def test_a_prediction_too_far_off_confirms_nothing() -> None:
    assert CONFIRMED_WITHIN < 0.2
    assert result_of("launches", [move(GRAPH, 80, 100)]) == (
        "a rung took 100 ms where 80.0 ms was predicted (−20.0 %): not confirmed, the prediction "
        "is too far off"
    )


def test_each_wall_has_its_own_test() -> None:
    made = [move(FUSED_ELEMENTWISE, 3, 3), move(FUSED_GRAPH, 2, 2), move(BATCH, 5, 5, 2)]

    assert str(result_of("kernels", made)).startswith("a rung took 2.00 ms")
    assert str(result_of("bytes", made)).startswith("a rung took 5.00 ms")
    assert result_of("launches", made) is result_of("arithmetic", made) is None
    assert result_of(None, made) is None


def test_a_test_that_was_not_run_has_no_result() -> None:
    assert result_of("launches", [Move(GRAPH, None, 5, "")]) is None
