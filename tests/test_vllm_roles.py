"""Roles of serving engines: most of their kernels are replayed from graphs, without any operator.

The eager run of a model names the operators behind the same kernels; where there is none, what
kernels are launched with tells: tiles that cover a weight, and bytes no faster than the memory.
"""

import re
from pathlib import Path

import polars as pl
import pytest

from tests.vllm import CONFIGS, FILES, FOLDER, PUBLIC, every_trace, needs_traces, traced
from whichwall.analyze.roles.attribute import attribute
from whichwall.analyze.trace import Trace, read_trace
from whichwall.collect.importer import import_run
from whichwall.schemas import roles as r
from whichwall.schemas.activities import Activities
from whichwall.schemas.model import read_model
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import open_run
from whichwall.schemas.steps import Steps

LEAST_ATTRIBUTED = 0.95
SURE = 0.6  # from here on a role told by names and order alone is always the one that shapes tell
POINTS = 0.03  # of a decode step's time
EAGER = "q05_eager__b1_prefill_decode8"
OF_ONE_SEQUENCE = [n for n in FILES if n.startswith("q05_") and "__b1_" in n and n != EAGER]
OF_SEVERAL = [n for n in FILES if n.startswith("q05_") and "__b1_" not in n]

MATRICES = (r.QKV_PROJ, r.O_PROJ, r.GATE_UP_PROJ, r.DOWN_PROJ, r.LM_HEAD)
HBM_BYTES_PER_NS = 4800.0  # of an H200, as its datasheet says
BYTES = 2  # of a bf16 weight

given_or_not = pytest.mark.parametrize("given", [True, False], ids=["model", "shapes"])


def attributed(activities: pl.DataFrame, roles: pl.DataFrame) -> float:
    return share(activities, roles[Roles.role] != r.OTHER)


def share(activities: pl.DataFrame, some: pl.Series) -> float:
    """Return the share that some of the activities have in the time of all."""
    whole, mine = activities[Activities.dur_ns], activities.filter(some)[Activities.dur_ns]
    return int(mine.sum()) / int(whole.sum())


def step_ns(trace: Trace) -> dict[str, float]:
    """Return the time of each role in a decode step, the mean of all."""
    decode = trace.steps.filter(pl.col(Steps.phase) == "decode")[Steps.step].implode()
    mine = trace.activities[Activities.step].is_in(decode)
    counted = trace.roles.filter(mine).group_by(Roles.role).agg(pl.col(Roles.dur_ns).sum())
    return {role: ns / decode.explode().len() for role, ns in counted.iter_rows()}


def shares(times: dict[str, float]) -> dict[str, float]:
    return {role: ns / sum(times.values()) for role, ns in times.items()}


@needs_traces
@every_trace
@given_or_not
def test_nearly_all_time_of_an_engine_has_a_role(name: str, given: bool, tmp_path: Path) -> None:
    trace = traced(name, tmp_path, given=given)
    assert attributed(trace.activities, trace.roles) >= LEAST_ATTRIBUTED


@needs_traces
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_nearly_all_time_of_others_engines_has_a_role(path: Path, tmp_path: Path) -> None:
    trace = read_trace(open_run(import_run([path], tmp_path / "run")))
    assert attributed(trace.activities, trace.roles) >= LEAST_ATTRIBUTED


@needs_traces
@every_trace
def test_names_and_order_alone_tell_what_shapes_tell(name: str, tmp_path: Path) -> None:
    trace = traced(name, tmp_path)
    nothing = pl.lit(None, pl.String)
    columns = (Activities.op_name, Activities.op_dims, Activities.op_types)
    bare = attribute(trace.activities.with_columns(nothing.alias(c) for c in columns), None)

    same = bare[Roles.role] == trace.roles[Roles.role]
    assert same.filter(bare[Roles.confidence] > SURE).all()
    assert share(trace.activities, same) > 0.98
    assert not set(bare[Roles.method]) & {r.BY_SHAPE, r.BY_REFERENCE}
    assert attributed(trace.activities, bare) >= LEAST_ATTRIBUTED


@needs_traces
@pytest.mark.parametrize("name", OF_ONE_SEQUENCE)
@given_or_not
def test_a_graph_alone_has_the_shares_of_the_same_engine_run_eagerly(
    name: str, given: bool, tmp_path: Path
) -> None:
    found = shares(step_ns(traced(name, tmp_path, given=given)))
    eager = shares(step_ns(traced(EAGER, tmp_path)))
    for role in (*MATRICES, r.ATTENTION):
        assert found[role] == pytest.approx(eager[role], abs=POINTS)


@needs_traces
@pytest.mark.parametrize("name", OF_SEVERAL)
def test_weights_read_for_several_sequences_take_the_time_they_take_for_one(
    name: str, tmp_path: Path
) -> None:
    # Sampling and attention grow with the sequences, and with them the step: shares do not hold.
    found, eager = step_ns(traced(name, tmp_path)), step_ns(traced(EAGER, tmp_path))
    whole = sum(eager.values())
    for role in MATRICES:
        assert found[role] / whole == pytest.approx(eager[role] / whole, abs=POINTS)


@needs_traces
@every_trace
def test_each_layer_of_a_replay_has_each_part_as_often_as_any_other(
    name: str, tmp_path: Path
) -> None:
    trace = traced(name, tmp_path)
    model = read_model(FOLDER / f"{CONFIGS[name.split('_')[0]]}.config.json")
    decode = trace.steps.filter(pl.col(Steps.phase) == "decode")[Steps.step].implode()
    mine = trace.roles.filter(trace.activities[Activities.step].is_in(decode))
    inner = r.EXPERTS if model.experts else r.GATE_UP_PROJ
    for role in (r.QKV_PROJ, r.ATTENTION, r.KV_CACHE, r.O_PROJ, inner):
        of_layer = mine.filter(pl.col(Roles.role) == role).group_by(Roles.layer).len()
        counts = of_layer.filter(pl.col(Roles.layer).is_not_null())
        assert sorted(counts[Roles.layer]) == list(range(model.layers))
        assert counts["len"].n_unique() == 1


@needs_traces
@every_trace
def test_no_weight_is_read_faster_than_the_memory_allows(name: str, tmp_path: Path) -> None:
    times = step_ns(traced(name, tmp_path))
    model = read_model(FOLDER / f"{CONFIGS[name.split('_')[0]]}.config.json")
    queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    each = {
        r.QKV_PROJ: model.layers * model.hidden * (queries + 2 * keys),
        r.O_PROJ: model.layers * model.hidden * queries,
        r.LM_HEAD: model.hidden * model.vocab,
    }
    if not model.experts:
        each[r.GATE_UP_PROJ] = 2 * model.layers * model.hidden * model.intermediate
        each[r.DOWN_PROJ] = model.layers * model.hidden * model.intermediate
    for role, weights in each.items():
        assert BYTES * weights / times[role] < HBM_BYTES_PER_NS


# How many outputs a block makes; not where blocks share outputs, or make several in turn.
TILE = re.compile(r"^nvjet_sm90_tst_(\d+)x\d+_(?!.*(splitK|coop))")


@needs_traces
@pytest.mark.parametrize("name", [n for n in FILES if "__b1_prefill_decode8" in n])
def test_the_blocks_of_a_projection_make_its_outputs_exactly(name: str, tmp_path: Path) -> None:
    trace = traced(name, tmp_path)
    model = read_model(FOLDER / f"{CONFIGS[name.split('_')[0]]}.config.json")
    outputs = {
        r.QKV_PROJ: (model.heads + 2 * model.kv_heads) * model.head_dim,
        r.O_PROJ: model.hidden,
    }
    decode = trace.steps.filter(pl.col(Steps.phase) == "decode")[Steps.step].implode()
    launched = trace.activities.select(
        Activities.name, pl.col(Activities.grid_x) * pl.col(Activities.grid_y)
    ).hstack(trace.roles.select(Roles.role))
    seen = {
        (role, blocks * int(match[1]))
        for kernel, blocks, role in launched.filter(
            trace.activities[Activities.step].is_in(decode)
        ).iter_rows()
        if role in outputs and (match := TILE.match(kernel))
    }
    assert seen
    assert seen <= set(outputs.items())
