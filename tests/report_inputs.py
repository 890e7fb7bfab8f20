"""A small run as a report sees it: two decode steps of three kernels on one stream."""

from dataclasses import replace
from itertools import pairwise

import msgspec

from whichwall.analyze.report.inputs import ReportInputs
from whichwall.schemas.activities import Activities
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.gaps import LAUNCH, Gaps
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import Environment, Gpu, Manifest, RankFacts
from whichwall.schemas.model import Model
from whichwall.schemas.ops import Ops
from whichwall.schemas.passes import AFTER, CLEAN, DECODE, PROFILED, WARMUP, Passes
from whichwall.schemas.points import Points
from whichwall.schemas.roles import BY_SHAPE, Roles
from whichwall.schemas.run import frame
from whichwall.schemas.samples import Samples
from whichwall.schemas.steps import BY_ANNOTATION, Steps
from whichwall.schemas.summary import (
    Device,
    Floor,
    GapTotals,
    RoleTotal,
    SampleWindow,
    Shares,
    StepGroup,
    StepsSummary,
    Summary,
    Tax,
    Verdict,
)

EPOCH = 1_796_000_000_000_000_000
US = 1000
STEP_NS, KERNEL_NS, EVERY_NS = 100 * US, 4 * US, 30 * US
NAMES = ("qkv_kernel", "attention_kernel", "down_kernel")
ROLES = ("qkv_proj", "attention", "down_proj")

MODEL = Model(
    name="tiny", model_type="qwen2", hidden=64, intermediate=128, layers=2, heads=4, kv_heads=2,
    head_dim=16, vocab=1000, parameters=123_456, weight_bytes=246_912,
)  # fmt: skip
ENDS = {"point": 0, "rank": 0, "device": 0}


def report_inputs(names: tuple[str, ...] = NAMES) -> ReportInputs:
    """Return the inputs; `names` are those of the three kernels of a step."""
    works = [_work(step, place) for step in range(2) for place in range(len(names))]
    activities = [
        ENDS
        | {"stream": 7, "kind": "kernel", "name": names[place], "start_ns": start,
           "end_ns": start + KERNEL_NS, "dur_ns": KERNEL_NS, "communication": False,
           "launch_start_ns": start - 8 * US, "launch_end_ns": start - 2 * US, "step": step}
        for step, place, start in works
    ]  # fmt: skip
    return ReportInputs(
        summary=summary(),
        manifest=manifest(),
        activities=frame(Activities, [dict(row) for row in activities]),
        gaps=frame(Gaps, _gaps(works, names)),
        steps=frame(Steps, [_step(number) for number in range(2)]),
        roles=frame(Roles, [_role(names, *work) for work in works]),
        ops=frame(Ops, [_op(start) for _, _, start in works]),
        launches=frame(Launches, [_launch(start) for _, _, start in works]),
        samples=frame(Samples, [_sample(number) for number in range(20)]),
        passes=frame(Passes, [_pass(*one) for one in enumerate((WARMUP, CLEAN, PROFILED, AFTER))]),
        points=frame(
            Points,
            [{"point": 0, "engine": "eager", "attention": "sdpa", "dtype": "bfloat16", "batch": 1,
              "context_tokens": 16, "prompt_tokens": 16, "new_tokens": 8, "outcome": "done"}],
        ),
    )  # fmt: skip


def without_gpu(inputs: ReportInputs) -> ReportInputs:
    """Return the same run as a CPU would have made it."""
    cpu = msgspec.structs.replace(
        inputs.summary,
        verdict=Verdict(None, None, [], None, None, None, "no GPU: this run used none"),
        devices=[],
        steps=StepsSummary(None, {}, []),
        cpu_roles=[RoleTotal("norm", 3000 * US, 0.75, 4), RoleTotal("other", 1000 * US, 0.25, 2)],
        samples=None,
    )
    return replace(
        inputs,
        summary=cpu,
        manifest=msgspec.structs.replace(inputs.manifest, gpus=[]),
        activities=inputs.activities.clear(),
        gaps=inputs.gaps.clear(),
        steps=inputs.steps.clear(),
        roles=inputs.roles.clear(),
        launches=inputs.launches.clear(),
        samples=inputs.samples.clear(),
    )


def _work(step: int, place: int) -> tuple[int, int, int]:
    return step, place, EPOCH + step * STEP_NS + place * EVERY_NS


def _gaps(works: list[tuple[int, int, int]], names: tuple[str, ...]) -> list[dict[str, object]]:
    return [
        ENDS
        | {"start_ns": start + KERNEL_NS, "dur_ns": after - start - KERNEL_NS, "cause": LAUNCH,
           "step": step, "before_name": names[place], "after_name": names[(place + 1) % 3],
           "before_op": "aten::mm"}
        for (step, place, start), (_, _, after) in pairwise(works)
    ]  # fmt: skip


def _step(number: int) -> dict[str, object]:
    window = STEP_NS if number == 0 else 2 * EVERY_NS + KERNEL_NS
    return ENDS | {
        "step": number, "name": f"step#{number}", "found_by": BY_ANNOTATION, "phase": DECODE,
        "batch": 1, "tokens": 1, "begin_ns": EPOCH + number * STEP_NS - 10 * US,
        "start_ns": EPOCH + number * STEP_NS, "window_ns": window, "busy_ns": 3 * KERNEL_NS,
        "activities": 3, "kernels": 3, "launches": 3, "kernel_median_ns": KERNEL_NS,
        "gap_median_ns": EVERY_NS - KERNEL_NS,
    }  # fmt: skip


def _role(names: tuple[str, ...], step: int, place: int, start: int) -> dict[str, object]:
    return {
        "rank": 0, "device": 0, "stream": 7, "start_ns": start, "dur_ns": KERNEL_NS,
        "name": names[place], "role": ROLES[place], "layer": step, "method": BY_SHAPE,
        "confidence": 0.9,
    }  # fmt: skip


def _op(start: int) -> dict[str, object]:
    return {"point": 0, "rank": 0, "name": "aten::mm", "pid": 1, "tid": 1,
            "start_ns": start - 12 * US, "dur_ns": 11 * US}  # fmt: skip


def _launch(start: int) -> dict[str, object]:
    return {"point": 0, "rank": 0, "api": "runtime", "name": "cudaLaunchKernel", "pid": 1,
            "tid": 1, "start_ns": start - 8 * US, "dur_ns": 6 * US}  # fmt: skip


def _sample(number: int) -> dict[str, object]:
    return {
        "time_ns": EPOCH + number * 100_000 * US, "gpu_uuid": "GPU-1", "gpu_index": 0,
        "sm_clock_mhz": 1980.0 - 200 * (number > 10), "power_instant_w": 130.0 + number,
        "power_limit_w": 700.0, "temperature_c": 40.0, "throttle_reasons": 4 * (number > 10),
    }  # fmt: skip


def _pass(number: int, stage: str) -> dict[str, object]:
    return {"point": 0, "rank": 0, "stage": stage, "phase": DECODE, "index": 0,
            "start_ns": EPOCH + number * 500_000 * US, "wall_ns": 400_000 * US, "batch": 1,
            "tokens": 1, "context_tokens": 16}  # fmt: skip


def manifest() -> Manifest:
    """Return a manifest of one GPU."""
    return Manifest(
        schema_version=1,
        id="0",
        name="run42",
        created_ns=EPOCH,
        tool_version="0.1.0",
        command="whichwall collect --mode decode",
        mode="decode",
        model=MODEL,
        ranks=[RankFacts(0, "collect", "epoch", 0, 1, events=24)],
        gpus=[Gpu("NVIDIA H200", power_limit_w=700.0)],
        environment=Environment(python="3.12.3", torch="2.11.0"),
    )


def group() -> StepGroup:
    """Return the group of both steps, with a clean step of 50 µs."""
    return StepGroup(
        rank=0,
        device=0,
        point=0,
        phase=DECODE,
        count=2,
        batch=1,
        window_ns_median=82 * US,
        busy_ns_median=12 * US,
        busy_without_communication_ns_median=12 * US,
        busy_fraction_traced=12 / 82,
        busy_fraction_clean=0.24,
        clean_step_ns_median=50 * US,
        clean_step_ns_p10=48 * US,
        clean_step_ns_p90=56 * US,
        clean_from="passes",
        kernels_median=3.0,
        launches_median=3.0,
        kernel_median_ns=KERNEL_NS,
        gap_median_ns=26 * US,
        gaps_by_cause_ns={LAUNCH: 70 * US},
        tokens_per_s=20_000.0,
        achieved_gbps=5.0,
        achieved_tflops=0.1,
        times_floor=12.5,
        shares=Shares(launches=0.76, kernels=0.16, bytes=0.08),
        roles=[RoleTotal(role, 8 * US, 1 / 3, 2) for role in ROLES],
        attributed_share=1.0,
    )


def summary() -> Summary:
    """Return a summary that stands at the launches wall."""
    gaps = GapTotals(5, 148 * US, 26 * US, 36 * US, {LAUNCH: 148 * US}, {LAUNCH: 5})
    shares = Shares(launches=0.76, kernels=0.16, bytes=0.08)
    floor = Floor(
        DECODE, 0, 1, 1, 16, 4 * US, 4 * US, US, 250_000, 500_000, 4189.0, "measured", 989.0,
        "datasheet", cached_weights=False,
    )  # fmt: skip
    return Summary(
        schema_version=1,
        run="run42",
        mode="decode",
        model=MODEL,
        verdict=Verdict(
            "launches", shares, [], "replay the same step as a CUDA graph", 0.0133,
            "busy + kernels × 0.42 µs assumed", None,
        ),
        devices=[
            Device(0, 0, 6, 6, 172 * US, 24 * US, 24 * US, 24 / 172, 24 * US, KERNEL_NS, gaps,
                   [RoleTotal(role, 8 * US, 1 / 3, 2) for role in ROLES], 1.0, {BY_SHAPE: 6})
        ],
        steps=StepsSummary(BY_ANNOTATION, {DECODE: 2}, [group()]),
        floors=floor,
        floors_by_phase=[floor],
        ttft_ns=None,
        tpot_ns=50 * US,
        cpu_roles=[],
        samples=SampleWindow(
            "clean", "GPU-1", 4, 1980.0, None, 136.0, "instant", 40.0, None, None, None,
            {"idle": 0.0, "software_power_cap": 0.25},
        ),
        tax=Tax(DECODE, 50 * US, 82 * US, 51 * US, 1.64, 1.02),
        diagnostics=[Diagnostic("overlapping_kernels", "info", 2, "2 kernels overlap.")],
    )  # fmt: skip
