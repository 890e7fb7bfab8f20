"""Roles of real traces, against the modules that launched their kernels."""

import csv
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import SHARED
from whichwall.analyze.roles.reference import Reference
from whichwall.analyze.trace import Trace, read_reference, read_trace
from whichwall.collect.importer import import_run
from whichwall.schemas import roles as r
from whichwall.schemas.activities import Activities
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import Run, open_run

FOLDER = SHARED / "traces"
TRUTHS = sorted((FOLDER / "roles").glob("*.truth.csv"))
MATRICES = [r.QKV_PROJ, r.O_PROJ, r.GATE_UP_PROJ, r.DOWN_PROJ]

needs_traces = pytest.mark.skipif(not TRUTHS, reason="no handed traces: ../shared is absent")
given_or_not = pytest.mark.parametrize("given", [True, False], ids=["model", "shapes"])


def imported(trace: Path, out: Path, config: Path | None) -> tuple[Run, Trace]:
    run = open_run(import_run([trace], out / "run", model=config))
    return run, read_trace(run)


def truth_of(path: Path, base_ns: int) -> dict[tuple[int, int], set[str]]:
    accepted: dict[tuple[int, int], set[str]] = defaultdict(set)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            start_ns = base_ns + round(Decimal(row["ts_us"]) * 1000)
            accepted[int(row["correlation"]), start_ns] |= set(row["accepted_roles"].split("|"))
    return accepted


@needs_traces
@given_or_not
@pytest.mark.parametrize("path", TRUTHS, ids=lambda p: p.name.removesuffix(".truth.csv"))
def test_roles_are_those_of_the_modules(path: Path, given: bool, tmp_path: Path) -> None:
    name = path.name.removesuffix(".truth.csv")
    config = path.with_name(f"{name.split('_')[0]}.config.json")
    run, trace = imported(path.with_name(f"{name}.json.gz"), tmp_path, config if given else None)
    accepted = truth_of(path, run.manifest.ranks[0].base_ns or 0)

    wrong = [
        (role, layer, sorted(accepted[key]))
        for *key_, role, layer in trace.activities.hstack(
            trace.roles.select(Roles.role, Roles.layer)
        )
        .select(Activities.correlation, Activities.start_ns, Roles.role, Roles.layer)
        .iter_rows()
        if role not in accepted[key := (key_[0], key_[1])]
    ]

    assert wrong == []


@needs_traces
@given_or_not
@pytest.mark.parametrize(
    "name",
    ["decode_eager", "prefill_eager", "decode_batch32", "decode_static_eager", "request_eager"],
)
def test_every_layer_of_a_deep_model_has_its_projections_once(
    name: str, given: bool, tmp_path: Path
) -> None:
    config = FOLDER / "vllm" / "qwen2.5-0.5b.config.json"
    _, trace = imported(FOLDER / "h200" / f"{name}.json.gz", tmp_path, config if given else None)
    found = trace.activities.select(Activities.op, Activities.step).hstack(
        trace.roles.select(Roles.role, Roles.layer)
    )

    # Whole numbers alone, made ready ahead of the layers, work for no part of the model.
    assert found.filter(pl.col(Roles.role) == r.OTHER)[Roles.layer].drop_nulls().is_empty()
    passes = found.filter(pl.col(Roles.role) == r.LM_HEAD)[Activities.op].n_unique()
    counts = (
        found.filter(pl.col(Roles.role).is_in(MATRICES))
        .group_by(Roles.layer, Roles.role)
        .agg(pl.col(Activities.op).n_unique() / passes)
    )
    assert sorted(counts.iter_rows()) == sorted(
        (layer, role, calls)
        for layer in range(24)
        for role, calls in zip(MATRICES, (3.0, 1.0, 2.0, 1.0), strict=True)
    )


@needs_traces
def test_each_rank_of_a_split_model_is_told_apart_and_its_collectives_named(
    tmp_path: Path,
) -> None:
    config = FOLDER / "roles" / "llama-3-8b.config.json"
    _, trace = imported(FOLDER / "h200" / "tp2_decode_rank0.json.gz", tmp_path, config)
    counts = dict(trace.roles.group_by(Roles.role).len().iter_rows())
    assert counts[r.COMMUNICATION] == 36
    assert counts[r.LM_HEAD] == 4
    assert trace.roles.filter(pl.col(Roles.role) == r.OTHER)[Roles.layer].drop_nulls().is_empty()


@needs_traces
def test_a_graph_replay_is_read_by_names_and_order_and_says_that_it_is_unsure(
    tmp_path: Path,
) -> None:
    config = FOLDER / "vllm" / "qwen2.5-0.5b.config.json"
    eager = imported(FOLDER / "h200" / "decode_static_eager.json.gz", tmp_path / "a", config)[1]
    replay = imported(FOLDER / "h200" / "decode_cudagraph.json.gz", tmp_path / "b", config)[1]

    # The very same kernels in the same order, with operators and without.
    right = (eager.roles[Roles.role] == replay.roles[Roles.role]).to_numpy()
    confidence = replay.roles[Roles.confidence].to_numpy()
    times = replay.activities[Activities.dur_ns].to_numpy()
    assert times[right].sum() > 0.95 * times.sum()
    assert right[confidence > 0.6].all()
    assert confidence.mean() < eager.roles[Roles.confidence].to_numpy().mean()


QWEN = FOLDER / "vllm" / "qwen2.5-0.5b.config.json"
POINTS = 0.03  # of a role's share of the time, against the eager twin's


def run_of(name: str, out: Path) -> Run:
    return open_run(import_run([FOLDER / f"{name}.json.gz"], out / Path(name).name, model=QWEN))


def referred(name: str, reference: str, out: Path) -> tuple[Trace, Reference]:
    known = read_reference(run_of(reference, out / "reference"))
    return read_trace(run_of(name, out), reference=known), known


def shares(activities: pl.DataFrame, found: pl.DataFrame) -> dict[str, float]:
    whole = activities[Activities.dur_ns].sum()
    timed = found.group_by(Roles.role).agg(pl.col(Roles.dur_ns).sum() / whole)
    return dict(timed.iter_rows())


def widest(trace: Trace, known: Trace | Reference) -> float:
    """Return the largest difference between the shares that a role has of the two times."""
    here, there = shares(trace.activities, trace.roles), shares(known.activities, known.roles)
    return max(abs(here.get(role, 0) - there.get(role, 0)) for role in {*here, *there})


@needs_traces
@pytest.mark.parametrize("reference", ["h200/decode_static_eager", "h200/capture_and_replay"])
def test_a_graph_replay_has_the_roles_of_its_eager_twin(reference: str, tmp_path: Path) -> None:
    twin = read_trace(run_of("h200/decode_static_eager", tmp_path / "twin"))
    trace, known = referred("h200/decode_cudagraph", reference, tmp_path)
    columns = [Roles.role, Roles.layer]
    assert trace.roles.select(columns).equals(twin.roles.select(columns))
    assert widest(trace, known) < POINTS


@needs_traces
@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("decode_cudagraph", "decode_static_eager"),
        ("capture_and_replay", "decode_static_eager"),
        ("decode_compile_reduce_overhead", "decode_compile_default"),
    ],
)
@given_or_not
def test_a_graph_alone_has_the_shares_of_its_twin_without_a_graph(
    name: str, twin: str, given: bool, tmp_path: Path
) -> None:
    config = QWEN if given else None
    _, trace = imported(FOLDER / "h200" / f"{name}.json.gz", tmp_path / "graph", config)
    known = read_trace(run_of(f"h200/{twin}", tmp_path))
    assert shares(trace.activities, trace.roles).get(r.OTHER, 0) < 0.05
    assert widest(trace, known) < POINTS


@needs_traces
def test_replays_beside_their_own_capture_need_no_reference(tmp_path: Path) -> None:
    twin = read_trace(run_of("h200/decode_static_eager", tmp_path))
    trace = read_trace(run_of("h200/capture_and_replay", tmp_path))
    found = trace.roles.filter(trace.activities[Activities.graph_replay])
    assert found[Roles.role].to_list() == twin.roles[Roles.role].to_list() * 3
    assert found[Roles.layer].to_list() == twin.roles[Roles.layer].to_list() * 3
    assert set(found[Roles.method]) == {r.BY_SHAPE, r.BY_ORDER}


@needs_traces
def test_nearly_all_time_of_compiled_kernels_has_a_role(tmp_path: Path) -> None:
    trace = read_trace(run_of("h200/decode_compile_default", tmp_path))
    assert shares(trace.activities, trace.roles).get(r.OTHER, 0) < 0.01
    matrices = trace.roles.filter(pl.col(Roles.role).is_in(MATRICES))
    counted = matrices.group_by(Roles.layer, Roles.role).len()
    assert dict(counted.group_by(Roles.role).len().iter_rows()) == dict.fromkeys(MATRICES, 24)


# No compiler fuses these into others: the same kernels run, in all of the time that fusing left.
KEPT_WHOLE = {*MATRICES, r.ATTENTION, r.LM_HEAD}


def kept_whole(trace: Trace) -> Trace:
    kept = trace.roles[Roles.role].is_in(KEPT_WHOLE)
    return replace(trace, activities=trace.activities.filter(kept), roles=trace.roles.filter(kept))


@needs_traces
@pytest.mark.parametrize("name", ["decode_compile_default", "decode_compile_reduce_overhead"])
def test_matrices_and_attention_of_a_compiled_pass_take_the_time_of_the_eager_ones(
    name: str, tmp_path: Path
) -> None:
    # Fused kernels take less than what they replace, so shares of the whole differ by that.
    eager = kept_whole(read_trace(run_of("h200/decode_static_eager", tmp_path)))
    compiled = kept_whole(read_trace(run_of(f"h200/{name}", tmp_path)))
    times = [trace.roles[Roles.dur_ns].sum() for trace in (compiled, eager)]
    assert times[0] == pytest.approx(times[1], rel=POINTS)
    assert widest(compiled, eager) < POINTS


@needs_traces
def test_a_compiled_graph_has_the_shares_of_the_same_kernels_without_a_graph(
    tmp_path: Path,
) -> None:
    trace, known = referred(
        "h200/decode_compile_reduce_overhead", "h200/decode_compile_default", tmp_path
    )
    assert shares(trace.activities, trace.roles).get(r.OTHER, 0) < 0.01
    assert widest(trace, known) < POINTS


@needs_traces
@pytest.mark.parametrize(
    "name", ["q05_graph__b1_prefill_decode8", "q05_graph__b1_piecewise_prefill256_decode4"]
)
def test_an_engine_with_graphs_has_roles_by_the_engine_without(name: str, tmp_path: Path) -> None:
    trace, known = referred(f"vllm/{name}", "vllm/q05_eager__b1_prefill_decode8", tmp_path)
    assert shares(trace.activities, trace.roles).get(r.OTHER, 0) < 0.01
    assert widest(trace, known) < POINTS
    by_reference = trace.roles.filter(pl.col(Roles.method) == r.BY_REFERENCE)
    assert by_reference.height > 0.6 * trace.roles.height
