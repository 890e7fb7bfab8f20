from dataclasses import replace

import msgspec
import polars as pl
import pytest

from tests.frames import Row, a_pass, table
from tests.golden import CLEAN_NS, GPU, MODEL, UUID
from whichwall.analyze.floors import Basis, Grounds, dtype_of, floor_of, node_idle_ns
from whichwall.analyze.timings import timings
from whichwall.schemas import ceilings
from whichwall.schemas.ceilings import Ceilings
from whichwall.schemas.manifest import VERSION, Gpu, Manifest, RankFacts
from whichwall.schemas.passes import DECODE, PREFILL, PROFILED, WARMUP, Passes
from whichwall.schemas.points import Points
from whichwall.schemas.steps import Steps

RANK = RankFacts(rank=0, source="collect", time_origin="epoch", base_ns=None, resolution_ns=1,
                 devices=[0])  # fmt: skip
MANIFEST = Manifest(
    schema_version=VERSION, id="", name="", created_ns=CLEAN_NS, tool_version="0", command="",
    mode="decode", model=MODEL, ranks=[RANK], gpus=[GPU],
)  # fmt: skip


def ceiling(name: str, value: float, unit: str = "GB/s", dtype: str | None = None) -> Row:
    return {
        "rank": 0, Ceilings.gpu_uuid: UUID, Ceilings.name: name, Ceilings.value: value,
        Ceilings.unit: unit, Ceilings.dtype: dtype, Ceilings.start_ns: CLEAN_NS,
    }  # fmt: skip


READ, COPY = ceiling(ceilings.READ, 4000.0), ceiling(ceilings.COPY, 4100.0)


def a_run(*limits: Row, **facts: object) -> Basis:
    manifest = msgspec.structs.replace(MANIFEST, **facts)
    nothing_timed, no_step = timings(table(Passes)), table(Steps)
    return Basis(
        manifest, manifest.model, table(Points), table(Ceilings, *limits), nothing_timed, no_step
    )


def grounds(
    run: Basis, *rows: Row, steps: pl.DataFrame | None = None, phase: str | None = DECODE
) -> Grounds:
    traced = run.steps if steps is None else steps
    basis = replace(run, timings=timings(table(Passes, *rows)), steps=traced)
    return floor_of(basis, 0, 0, phase)


def a_step(batch: int | None, tokens: int | None, phase: str | None = DECODE) -> Row:
    return {
        "point": 0, "rank": 0, Steps.found_by: "annotation", Steps.phase: phase,
        Steps.batch: batch, Steps.tokens: tokens,
    }  # fmt: skip


def test_the_work_of_a_floor_is_that_of_the_clean_passes() -> None:
    rows = [
        a_pass(0, 10, stage=WARMUP, batch=9, tokens=9),
        a_pass(1, 10, batch=4, tokens=4, context_tokens=100),
        a_pass(2, 10, batch=4, tokens=4, context_tokens=103),
        a_pass(3, 10, stage=PROFILED, batch=8, tokens=8),
        a_pass(4, 10, PREFILL, batch=4, tokens=64, context_tokens=0),
    ]
    run = a_run(READ, COPY)
    found = {phase: grounds(run, *rows, phase=phase).floor for phase in (DECODE, PREFILL)}
    work = {
        phase: one and (one.batch, one.tokens, one.context_tokens, one.bandwidth_gbps)
        for phase, one in found.items()
    }
    assert work == {DECODE: (4, 1, 102, 4100.0), PREFILL: (4, 16, 0, 4100.0)}


def test_profiled_passes_stand_in_where_no_clean_one_was_timed() -> None:
    found = grounds(a_run(READ), a_pass(3, 10, stage=PROFILED, batch=8, tokens=8)).floor
    assert found is not None
    assert (found.batch, found.tokens, found.context_tokens) == (8, 1, 100)


def test_the_trace_says_what_a_step_works_on_where_nothing_was_timed() -> None:
    run = a_run(READ)
    decode = grounds(run, steps=table(Steps, a_step(4, 4), a_step(4, 4), a_step(None, None)))
    prefill = grounds(run, steps=table(Steps, a_step(2, 64, PREFILL)), phase=PREFILL)
    assert decode.floor is not None
    assert prefill.floor is not None
    assert (decode.floor.batch, decode.floor.tokens, decode.context_known) == (4, 1, False)
    assert (prefill.floor.batch, prefill.floor.tokens, prefill.context_known) == (2, 32, True)


@pytest.mark.parametrize("unknown", [{"batch": None}, {"tokens": None}, {"tokens": 0}])
def test_a_pass_that_does_not_say_its_work_has_no_floor(unknown: Row) -> None:
    found = grounds(a_run(READ), a_pass(1, 10) | unknown)
    assert found == Grounds(None, "the trace does not say how many tokens a step works on")


def test_a_decode_whose_context_is_not_said_leaves_the_cache_out_and_knows_it() -> None:
    found = grounds(a_run(READ), a_pass(1, 10, context_tokens=None))
    assert found.floor is not None
    assert (found.floor.context_tokens, found.context_known) == (0, False)


@pytest.mark.parametrize("phase", [DECODE, None])
def test_a_step_of_unknown_work_or_phase_has_no_floor(phase: str | None) -> None:
    steps = table(Steps, a_step(None, None, phase), a_step(0, 0, phase))
    found = grounds(a_run(READ), steps=steps, phase=phase)
    assert found == Grounds(None, "the trace does not say how many tokens a step works on")


def test_each_reason_for_no_floor_is_said() -> None:
    step = a_pass(1, 10)
    no_model = grounds(a_run(READ, model=None), step)
    of_two = [msgspec.structs.replace(RANK, world_size=2)]
    split = grounds(a_run(READ, ranks=of_two), step)
    packed = msgspec.structs.replace(MODEL, quantization="fp8")
    quantized = grounds(a_run(READ, model=packed), step)
    no_limit = grounds(a_run(gpus=[Gpu(name="a card nobody knows")]), step)
    assert "import with --model CONFIG.json" in (no_model.missing or "")
    assert split.missing == "how the model is split over ranks is not known"
    assert "quantized (fp8)" in (quantized.missing or "")
    assert "neither a measured nor a datasheet bandwidth" in (no_limit.missing or "")
    assert [one.floor for one in (no_model, split, quantized)] == [None] * 3
    assert no_limit.floor is not None
    assert no_limit.floor.floor_ns is None


def test_the_point_says_its_type_before_the_model_does() -> None:
    point: Row = {"point": 0, Points.dtype: "float32", Points.outcome: "done"}
    points = table(Points, point)
    assert (dtype_of(points, MODEL, 0), dtype_of(points, MODEL, 1)) == ("float32", "bfloat16")


def test_idle_per_graph_node_is_in_ns_or_unknown() -> None:
    measured = table(Ceilings, ceiling(ceilings.GRAPH_NODE_IDLE, 0.5, "us"), READ)
    assert node_idle_ns(measured) == 500.0
    assert node_idle_ns(table(Ceilings, READ)) is None


def test_of_several_gpus_the_one_that_worked_has_the_ceilings() -> None:
    other = Gpu(name="Tesla V100-SXM2-16GB", ordinal=1)
    gpus = [other, msgspec.structs.replace(GPU, uuid=None)]
    found = grounds(a_run(gpus=gpus), a_pass(1, 10)).floor
    assert found is not None
    assert (found.bandwidth_gbps, found.bandwidth_from) == (4800.0, "datasheet")
