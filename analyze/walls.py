"""Which wall: the shares of the step, the verdict, its test and what the step could become."""

import msgspec

from whichwall.analyze.quantities import count, duration
from whichwall.analyze.sampled import slowdowns
from whichwall.analyze.thresholds import (
    ASSUMED_NODE_IDLE_NS,
    BUSY_TOLERANCE,
    MAJORITY,
    TRACED_GAP_DIVISOR,
)
from whichwall.schemas.summary import Floor, SampleWindow, Shares, Verdict

LAUNCHES, KERNELS, BYTES, ARITHMETIC, MIXED = (
    "launches", "kernels", "bytes", "arithmetic", "mixed",
)  # fmt: skip

NS_PER_MS = 1e6
COLLECTIVES = "collectives are counted as waiting, since one that waits for its peers is not work"

CONFIRM_WITH = {
    LAUNCHES: "replay the same step as a CUDA graph: its time should fall to about the predicted "
    "step, with the same kernels",
    KERNELS: "fuse or replace the kernels that take most of the busy time (a compiled or an "
    "engine's step): busy time should fall towards the floor while launches hardly matter",
    BYTES: "run a batch of 2: the step should hardly change, since the same weights serve both; "
    "and weights of half the size should nearly halve it",
    ARITHMETIC: "halve the tokens in the pass: the step should nearly halve",
    MIXED: "remove one part and look at the rest: replay the step as a CUDA graph, which takes "
    "the launches away and leaves kernels and floor",
}


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What the verdict on one step rests on; unknown is None."""

    step_ns: int | None = None  # clean
    window_ns: int | None = None  # traced
    busy_ns: int | None = None
    working_ns: int | None = None  # busy without collectives: one that waits is not work
    kernels: float | None = None
    floor: Floor | None = None
    graph_busy_ns: int | None = None  # of the step on a cache of fixed size, where one was traced
    graph_kernels: float | None = None
    node_idle_ns: float | None = None  # measured idle per node of a CUDA graph
    engine: bool = False  # a serving engine's steps: its host works between them
    no_trace: str | None = None  # what a run without any trace lacks
    no_gpu: str | None = None  # why there is no GPU activity, if there is none
    no_floor: str | None = None  # why there is no floor, if there is none


def shares(step_ns: int, busy_ns: int, floor: Floor | None) -> Shares | None:
    """Return how the clean step T divides: (T - busy)/T, (busy - floor)/T, floor/T.

    Busy time comes from a trace and T from a stopwatch: busy beyond T is cut to T, and a floor
    beyond busy to busy, so that the parts add up to 1.
    """
    if floor is None or floor.floor_ns is None:
        return None
    busy_ns = min(busy_ns, step_ns)
    floor_ns = min(floor.floor_ns, busy_ns)
    rest = floor_ns / step_ns
    by_bytes = (floor.bytes_ns or 0) >= (floor.arithmetic_ns or 0)
    return Shares(
        launches=(step_ns - busy_ns) / step_ns,
        kernels=(busy_ns - floor_ns) / step_ns,
        bytes=rest if by_bytes else None,
        arithmetic=None if by_bytes else rest,
    )


def verdict(evidence: Evidence, samples: SampleWindow | None) -> Verdict:
    """Return the wall that takes at least half of the step, `mixed`, or none and the reason."""
    annotations = slowdowns(samples)
    if evidence.no_trace is not None:
        return _none(evidence.no_trace, None, annotations)
    if evidence.no_gpu is not None:
        return _none(f"no GPU: {evidence.no_gpu}", None, annotations)
    if evidence.busy_ns is None or evidence.window_ns is None:
        return _none("no step with GPU activity to judge", None, annotations)
    if evidence.step_ns is None:
        working_ns = evidence.busy_ns if evidence.working_ns is None else evidence.working_ns
        if working_ns < evidence.busy_ns:
            annotations = [*annotations, COLLECTIVES]
        return _without_clean(evidence, working_ns, evidence.window_ns, annotations)
    return _with_clean(evidence, evidence.step_ns, evidence.busy_ns, annotations)


def _with_clean(evidence: Evidence, step_ns: int, busy_ns: int, annotations: list[str]) -> Verdict:
    found = shares(step_ns, busy_ns, evidence.floor)
    annotations = annotations + _doubts(evidence, step_ns, busy_ns)
    if busy_ns > step_ns * (1 + BUSY_TOLERANCE):
        return _none(
            f"the GPU is busy for {duration(busy_ns)} of each traced step, longer than the clean "
            f"step of {duration(step_ns)}: the two are not of the same work",
            None,
            annotations,
        )
    idle = max(step_ns - busy_ns, 0) / step_ns
    if found is None:
        if idle >= MAJORITY:
            return _named(LAUNCHES, None, evidence, annotations)
        why = f"the GPU is busy for {100 * (1 - idle):.0f} % of the step, and how much of that it "
        return _none(f"{why}needs is not known: {evidence.no_floor}", None, annotations)
    parts = {
        LAUNCHES: found.launches,
        KERNELS: found.kernels,
        BYTES: found.bytes or 0.0,
        ARITHMETIC: found.arithmetic or 0.0,
    }
    wall = max(parts, key=lambda name: parts[name])
    cached = evidence.floor is not None and evidence.floor.cached_weights
    if wall == BYTES and parts[wall] >= MAJORITY and cached:
        return _none(
            "the floor takes most of the step, but the weights are under four times the last-level "
            "cache, so their bytes need not come from memory",
            found,
            annotations,
        )
    return _named(wall if parts[wall] >= MAJORITY else MIXED, found, evidence, annotations)


def idle_with_gaps_cut(busy_ns: int, window_ns: int) -> float:
    """Return the idle share of a traced window once every gap is cut to a third."""
    cut_ns = max(window_ns - busy_ns, 0) / TRACED_GAP_DIVISOR
    return cut_ns / (busy_ns + cut_ns) if busy_ns + cut_ns else 0.0


def _without_clean(
    evidence: Evidence, busy_ns: int, window_ns: int, annotations: list[str]
) -> Verdict:
    share = idle_with_gaps_cut(busy_ns, window_ns)
    would = (
        f"with every traced gap cut to a third the GPU would still idle {100 * share:.0f} % of "
        "the step"
    )
    if evidence.engine:
        return _none(
            "no clean step time, and an engine's period under the profiler is 2 to 3 times its "
            f"clean one ({would}); measure it and pass --clean-step-ms or --clean-run",
            None,
            annotations,
        )
    if share >= MAJORITY:
        return _named(LAUNCHES, None, evidence, [*annotations, f"no clean step time; {would}"])
    return _none(
        f"no clean step time: {would}, which is no majority; pass --clean-step-ms or collect a "
        "run with clean timings",
        None,
        annotations,
    )


def _doubts(evidence: Evidence, step_ns: int, busy_ns: int) -> list[str]:
    found = []
    floor = evidence.floor
    if busy_ns > step_ns:
        found.append("busy time in the trace exceeds the clean step: it is cut to the step")
    if floor is not None and floor.floor_ns is not None and floor.floor_ns > busy_ns:
        found.append("the floor exceeds the busy time: a ceiling or a dimension is off")
    if floor is not None and floor.cached_weights:
        found.append(
            "weights are under four times the last-level cache: the bytes floor is no floor"
        )
    return found


def _none(reason: str, found: Shares | None, annotations: list[str]) -> Verdict:
    return Verdict(
        wall=None,
        shares=found,
        annotations=annotations,
        confirm_with=None,
        predicted_step_ms=None,
        predicted_how=None,
        reason=reason,
    )


def _named(wall: str, found: Shares | None, evidence: Evidence, annotations: list[str]) -> Verdict:
    predicted_ns, how = predict_without(wall, evidence)
    return Verdict(
        wall=wall,
        shares=found,
        annotations=annotations,
        confirm_with=CONFIRM_WITH[wall],
        predicted_step_ms=None if predicted_ns is None else round(predicted_ns / NS_PER_MS, 4),
        predicted_how=how,
        reason=None,
    )


def predict_without(wall: str, evidence: Evidence) -> tuple[float | None, str | None]:
    """Return the step once this wall is gone, ns, and what that assumes.

    Launches: a graph replay takes busy + kernels x idle per node. Kernels: busy time at the
    floor. Bytes: weights and cache of half the size. Arithmetic and mixed: no single number.
    """
    busy, step, floor = evidence.busy_ns, evidence.step_ns, evidence.floor
    if busy is None:
        return None, None
    busy = busy if step is None else min(busy, step)
    if wall == LAUNCHES and evidence.kernels is not None:
        measured = evidence.node_idle_ns
        idle = ASSUMED_NODE_IDLE_NS if measured is None else measured
        source = (
            "assumed, as measured on an H200" if measured is None else "measured on this device"
        )
        kernels, where = evidence.kernels, ""
        if evidence.graph_busy_ns is not None and evidence.graph_kernels is not None:
            busy, kernels = evidence.graph_busy_ns, evidence.graph_kernels
            where = "; from the step on a cache of fixed size"
        return busy + kernels * idle, (
            f"busy {duration(busy)} + {count(kernels)} kernels × {duration(idle)} idle "
            f"per graph node, {source}{where}"
        )
    if floor is None or floor.floor_ns is None or step is None:
        return None, None
    if wall == KERNELS:
        return step - busy + min(floor.floor_ns, busy), "the same launches, kernels at the floor"
    if wall == BYTES and floor.bytes_ns is not None:
        saved = min(floor.bytes_ns, busy) / 2
        return step - saved, "half the bytes for weights and cache, all else the same"
    return None, None
