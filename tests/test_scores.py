"""Moves are scored by the point of the run that made the change and differs in nothing else."""

from dataclasses import replace

import msgspec
import polars as pl

from tests.experiment_runs import point
from tests.frames import Row, table
from tests.golden import MODEL
from tests.step_groups import a_group, role
from tests.test_floors import READ, a_run
from tests.test_walls import a_floor
from whichwall.analyze.floors import Basis, Grounds
from whichwall.analyze.scores import scored_moves, static_of
from whichwall.analyze.step_groups import Judged
from whichwall.analyze.step_work import StepWork
from whichwall.schemas.moves import Move
from whichwall.schemas.points import Points
from whichwall.schemas.sweep import Sweep

US = 1000
FLOOR = msgspec.structs.replace(a_floor(1000), tflops=700.0)


def basis(*points: Row) -> Basis:
    return replace(a_run(READ), points=table(Points, *points))


def judged(number: int, *, busy_us: int = 40, context: int = 16) -> Judged:
    group = a_group(
        point=number, busy_ns_median=busy_us * US, clean_step_ns_median=200 * US,
        kernels_median=10.0, roles=[role("norm", busy_us * US)],
    )  # fmt: skip
    floor = msgspec.structs.replace(FLOOR, point=number, context_tokens=context)
    return Judged(group, Grounds(floor, None), None, StepWork(0, 10 * US, 4))


def row(number: int, step_us: int | None, **more: object) -> Row:
    facts: Row = {
        Sweep.phase: "decode", Sweep.visits: 1, Sweep.passes: 1,
        Sweep.step_ns: None if step_us is None else step_us * US,
    }  # fmt: skip
    (found,) = table(Sweep, point(number, **more) | facts).iter_rows(named=True)
    return dict(found)


def scored(rows: list[Row], *others: Judged) -> dict[tuple[str, int | None], Move]:
    run = basis(*({name: one[name] for name in point(0)} for one in rows))
    steps = [judged(0), *others]
    found = scored_moves(run, steps, static_of(run, steps, []), rows)
    return {(m.name, m.batch): m for m in found}


def test_a_graph_rung_scores_the_graph_that_was_predicted() -> None:
    found = scored([row(0, 200), row(1, 50, engine="cuda-graph", label="the rung")])

    graph = found["graph", None]
    assert (graph.predicted_ns, graph.measured_ns, graph.measured_by) == (
        44_200, 50 * US, "the rung",
    )  # fmt: skip
    assert graph.error is not None
    assert round(graph.error, 6) == -0.116


def test_a_point_that_differs_in_more_scores_nothing() -> None:
    for more in ({"batch": 2}, {"context_tokens": 32}, {"dtype": "float16"}, {"attention": "x"}):
        found = scored([row(0, 200), row(1, 50, engine="cuda-graph", **more)])
        assert found["graph", None].measured_ns is None


def test_a_point_that_was_not_timed_scores_nothing() -> None:
    found = scored([row(0, 200), row(1, None, engine="cuda-graph")])

    assert found["graph", None].measured_ns is None


def test_each_measured_batch_is_predicted_and_scored() -> None:
    found = scored([row(0, 200), row(1, 220, batch=16), row(2, 240, batch=2)])

    assert [key for key in found if key[0] == "batch"] == [
        ("batch", 2), ("batch", 4), ("batch", 8), ("batch", 16)
    ]  # fmt: skip
    assert found["batch", 16].measured_ns == 220 * US
    assert found["batch", 4].measured_ns is None


def test_the_static_cache_step_of_the_same_size_is_what_a_graph_is_made_of() -> None:
    rows = [row(0, 200), row(1, 250, engine="static-cache")]

    assert scored(rows, judged(1, busy_us=60))["graph", None].predicted_ns == 64_200
    assert scored(rows, judged(1, busy_us=60, context=99))["graph", None].predicted_ns == 44_200


def test_a_graph_step_scores_what_its_kernels_one_by_one_predict() -> None:
    rows = [row(0, 50, engine="cuda-graph"), row(2, None, engine="static-cache")]
    run = basis(*({name: one[name] for name in point(0)} for one in rows))
    replay = judged(0)
    assert replay.work is not None
    steps = [replace(replay, work=replace(replay.work, nodes=10))]
    beside = [replace(judged(2, busy_us=46), grounds=Grounds(None, "a trace does not tell"))]

    graph, *_ = scored_moves(run, steps, static_of(run, steps, beside), rows)

    assert (graph.predicted_ns, graph.measured_ns, graph.measured_by) == (
        50_200, 50 * US, "this step",
    )  # fmt: skip


def test_without_a_traced_step_nothing_is_predicted() -> None:
    untraced = replace(judged(0), work=None)

    assert scored_moves(basis(point(0)), [], None, []) == []
    assert scored_moves(basis(point(0)), [untraced], None, []) == []
    assert static_of(basis(point(0)), [], []) is None


def test_halving_weights_follows_from_the_floor_with_half_their_bytes() -> None:
    model = MODEL
    run = replace(basis(point(0)), model=model)
    (half,) = (m for m in scored_moves(run, [judged(0)], None, []) if m.name == "half_weights")

    assert half.predicted_busy_ns is not None
    assert half.predicted_busy_ns < 40 * US
    assert isinstance(run.points, pl.DataFrame)
