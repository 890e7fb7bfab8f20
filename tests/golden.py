"""Make a golden run: all that this version writes of one small, invented run.

    python -m tests.golden tests/data/golden-v2

A new schema version adds a folder. Those of earlier versions are never made again: they prove
that what was once written is still read. Their summaries may change with the analysis, by
`python -m tests.golden --summaries`.
"""

import sys
from pathlib import Path

import msgspec

from tests.frames import Row, a_pass
from whichwall.analyze.analysis import analyze
from whichwall.collect.kineto.trace import read_trace
from whichwall.schemas import ceilings
from whichwall.schemas.ceilings import Ceilings
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.manifest import (
    VERSION,
    EnergyFacts,
    Environment,
    Gpu,
    Manifest,
    ProfilerFacts,
    SamplerFacts,
)
from whichwall.schemas.model import Model
from whichwall.schemas.passes import AFTER, CLEAN, DECODE, PREFILL, PROFILED, WARMUP, Passes
from whichwall.schemas.points import Points
from whichwall.schemas.run import open_run
from whichwall.schemas.samples import Samples

DATA = Path(__file__).parent / "data"
TRACE = DATA / "small.json"

S = 10**9
TRACE_NS = 1_782_967_793 * S  # where the invented trace begins
CLEAN_NS = TRACE_NS - 10 * S
CLEAN_DUR_NS = 5 * S
UUID = "GPU-11111111-2222-3333-4444-555555555555"
BATCH, PROMPT, REQUESTS, STEPS = 1, 16, 20, 3

MODEL = Model(
    name="tiny", model_type="qwen2", hidden=64, intermediate=128, layers=2, heads=4, kv_heads=2,
    head_dim=16, vocab=256, tied=True, dtype="bfloat16", qkv_bias=False,
)  # fmt: skip
GPU = Gpu(
    name="NVIDIA H200", ordinal=0, uuid=UUID, memory_bytes=150_109_880_320, multiprocessors=132,
    compute_capability="9.0", l2_cache_bytes=62_914_560, power_limit_w=700.0, mig=False,
)  # fmt: skip


def passes() -> list[Row]:
    """Return requests of a prefill and three steps, in every stage."""
    rows = []
    stages = ((WARMUP, 2, -3 * S), (CLEAN, REQUESTS, 0), (PROFILED, 1, 9 * S), (AFTER, 4, 12 * S))
    for stage, requests, offset in stages:
        slower = {PROFILED: 3, AFTER: 2}.get(stage, 1)
        for request in range(requests):
            at = CLEAN_NS + offset + request * CLEAN_DUR_NS // REQUESTS
            for index in range(1 + STEPS):
                wall = slower * (400_000 + 1_000 * request if index == 0 else 130_000 + 777 * index)
                more: Row = {
                    Passes.index: request if index == 0 else request * STEPS + index - 1,
                    Passes.gpu_ns: wall - 20_000,
                    Passes.batch: BATCH,
                    Passes.tokens: BATCH * (PROMPT if index == 0 else 1),
                    Passes.context_tokens: 0 if index == 0 else PROMPT + index - 1,
                }
                phase = PREFILL if index == 0 else DECODE
                rows.append(a_pass(at, wall, phase, stage) | more)
                at += wall
    return rows


def samples() -> list[Row]:
    """Return ten samples a second around the clean stage; one value could not be read."""
    return [
        {
            Samples.time_ns: CLEAN_NS - S + i * S // 10,
            Samples.received_ns: CLEAN_NS - S + i * S // 10 + 1_234_567,
            Samples.gpu_uuid: UUID,
            Samples.gpu_index: 3,
            Samples.pstate: "P0",
            Samples.sm_clock_mhz: 1980.0,
            Samples.memory_clock_mhz: 3201.0,
            Samples.power_w: 120.0 + i % 3,
            Samples.power_instant_w: None if i == 7 else 118.5 + i % 5,
            Samples.power_limit_w: 700.0,
            Samples.temperature_c: 31.0,
            Samples.utilization_percent: 40.0,
            Samples.throttle_reasons: 0x4 if i % 3 == 0 else 0x0,
        }
        for i in range(70)
    ]


def ceiling_rows() -> list[Row]:
    """Return the limits of a device."""
    listed: list[tuple[str, float, str, str | None]] = [
        (ceilings.READ, 4200.5, "GB/s", None),
        (ceilings.COPY, 4011.25, "GB/s", None),
        (ceilings.MATMUL, 701.5, "TFLOP/s", "torch.bfloat16"),
        (ceilings.EAGER_OP, 3.875, "us", None),
        (ceilings.GRAPH_NODE_IDLE, 0.4375, "us", None),
    ]
    return [
        {
            "rank": 0, Ceilings.gpu_uuid: UUID, Ceilings.name: name, Ceilings.value: value,
            Ceilings.unit: unit, Ceilings.p10: value * 0.99, Ceilings.p90: value * 1.01,
            Ceilings.dtype: dtype, Ceilings.repeats: 20, Ceilings.start_ns: CLEAN_NS + 6 * S + i,
        }
        for i, (name, value, unit, dtype) in enumerate(listed)
    ]  # fmt: skip


def manifest() -> Manifest:
    """Return what such a run says of itself; ranks are added from the trace."""
    return Manifest(
        schema_version=VERSION, id="", name="", created_ns=CLEAN_NS - 60 * S, tool_version="0.1.0",
        command="whichwall collect --mode decode", mode="decode", model=MODEL, weights="dummy",
        gpus=[GPU],
        environment=Environment(
            python="3.12.4", platform="linux", cpu="a processor", cpu_cores=16, torch="2.11.0",
            transformers="5.17.0", cuda_runtime="12080", driver="570.1",
        ),
        sampler=SamplerFacts(
            source="nvidia-smi", interval_ms=100, fields=["timestamp", "power.draw.instant"],
            nulls={"power.draw.instant": {"[N/A]": 1}}, observed_ms_median=100.0,
        ),
        energy=EnergyFacts(CLEAN_NS, CLEAN_NS + CLEAN_DUR_NS, 601_234),
        profiler=ProfilerFacts(
            activities=["CPU", "CUDA"], record_shapes=True, teardown_cupti="1", kernels=92,
            launches_without_kernel=0,
        ),
    )  # fmt: skip


def make(out: Path) -> Path:
    """Write the run and return its folder."""
    point: Row = {
        "point": 0, Points.engine: "eager", Points.attention: "sdpa", Points.dtype: "bfloat16",
        Points.batch: BATCH, Points.prompt_tokens: PROMPT, Points.new_tokens: STEPS + 1,
        Points.context_tokens: PROMPT, Points.outcome: "done",
    }  # fmt: skip
    with RunWriter(out) as writer:
        trace = read_trace(TRACE, writer)
        writer.write(Points, [point])
        writer.write(Passes, passes())
        writer.write(Samples, samples())
        writer.write(Ceilings, ceiling_rows())
        whole = msgspec.structs.replace(
            manifest(), ranks=[trace.rank], diagnostics=trace.diagnostics
        )
        return writer.finish(whole)


def summary_path(run: Path) -> Path:
    """Return where a golden run's summary is kept: beside it, since a run holds no results."""
    return run.with_name(f"{run.name}.summary.json")


def write_summary(run: Path) -> None:
    """Store what the analysis says today of a golden run."""
    summary_path(run).write_bytes(analyze(open_run(run)).summary.encode())


if __name__ == "__main__":
    runs = [make(Path(name)) for name in sys.argv[1:] if name != "--summaries"]
    for path in runs or sorted(p for p in DATA.glob("golden-v*") if p.is_dir()):
        write_summary(path)
