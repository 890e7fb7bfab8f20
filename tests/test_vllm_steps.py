"""Steps of serving engines, against what is written of given traces."""

from pathlib import Path

import polars as pl
import pytest

from tests.frames import annotation, call, kernel, linked, table
from tests.vllm import FILES, PUBLIC, every_trace, needs_traces, traced, written
from whichwall.analyze.boundaries import boundaries
from whichwall.analyze.steps import assign, steps
from whichwall.analyze.trace import read_trace
from whichwall.collect.importer import import_run
from whichwall.schemas import roles as r
from whichwall.schemas.activities import Activities
from whichwall.schemas.ops import Ops
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import open_run
from whichwall.schemas.steps import BY_ANNOTATION, Steps

NEAR = 0.02  # of the busy time of a step
DECODE, EMPTY = "execute_context_0(0)_generation_1(1)", "execute_context_0(0)_generation_0(0)"


@needs_traces
def test_what_is_written_covers_every_trace() -> None:
    assert set(FILES) <= set(written())


@needs_traces
@every_trace
def test_the_steps_of_an_engine_are_those_written(name: str, tmp_path: Path) -> None:
    found = traced(name, tmp_path).steps
    assert found.select(Steps.phase, Steps.batch, Steps.tokens).rows() == written()[name].steps
    assert set(found[Steps.found_by]) == {BY_ANNOTATION}


@needs_traces
@every_trace
def test_a_decode_step_is_busy_for_the_time_written(name: str, tmp_path: Path) -> None:
    trace = traced(name, tmp_path)
    decode = trace.steps.filter(pl.col(Steps.phase) == "decode").select(Steps.step)
    per_step = (
        trace.activities.join(decode, on=Activities.step, how="semi")
        .group_by(Activities.step)
        .agg(pl.col(Activities.dur_ns).sum() / 1e6)
    )
    assert per_step[Activities.dur_ns].median() == pytest.approx(
        written()[name].decode_busy_ms, rel=NEAR
    )


@needs_traces
@every_trace
def test_every_step_has_its_own_sampling_though_it_is_launched_after_the_annotation(
    name: str, tmp_path: Path
) -> None:
    trace = traced(name, tmp_path)
    assert trace.activities[Activities.step].null_count() == 0
    sampled = trace.activities.filter(trace.roles[Roles.role] == r.SAMPLING)
    counts = sampled.group_by(Activities.step).len().sort(Activities.step)
    assert counts[Activities.step].to_list() == trace.steps[Steps.step].to_list()
    assert counts["len"].n_unique() == 1


@needs_traces
@every_trace
def test_kernels_of_graphs_are_counted_as_written(name: str, tmp_path: Path) -> None:
    trace = traced(name, tmp_path)
    replayed = trace.activities.filter(
        pl.col(Activities.graph_replay) & (pl.col(Activities.kind) == "kernel")
    )
    wanted = written()[name]
    found = (replayed.height, replayed[Activities.launch].n_unique())
    assert found == (wanted.graph_kernels, wanted.graph_launches)


@needs_traces
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_the_longer_annotation_is_one_step_with_its_tokens(path: Path, tmp_path: Path) -> None:
    trace = read_trace(open_run(import_run([path], tmp_path / "run")))
    phase = "decode" if "vllm" in str(path) else "prefill"
    batch, tokens = (32, 32) if phase == "decode" else (15, 15360)
    assert trace.steps.select(Steps.phase, Steps.batch, Steps.tokens).rows() == [
        (phase, batch, tokens)
    ]
    assert trace.steps[Steps.activities].item() == trace.activities.height


def test_what_is_launched_after_an_empty_annotation_belongs_to_the_pass_before_it() -> None:
    calls = [call(10, 15, 1), call(210, 215, 2), call(310, 315, 3)]
    activities = linked([kernel(20, 30, 1), kernel(220, 230, 2), kernel(320, 330, 3)], calls)
    marked = [annotation(0, 100, DECODE), annotation(200, 205, EMPTY), annotation(300, 400, DECODE)]
    begun = boundaries(activities, table(Ranges, *marked), table(Ops)).marks
    assert assign(activities, begun)[Activities.step].to_list() == [0, 0, 1]


def test_an_empty_annotation_at_the_end_is_no_step() -> None:
    activities = linked([kernel(20, 30, 1)], [call(10, 15, 1)])
    marked = [annotation(0, 100, DECODE), annotation(200, 205, EMPTY)]
    begun = boundaries(activities, table(Ranges, *marked), table(Ops)).marks
    found = steps(assign(activities, begun), begun)
    assert found.select(Steps.name, Steps.window_ns).rows() == [(DECODE, 10)]
