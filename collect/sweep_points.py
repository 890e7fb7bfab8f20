"""The points of a sweep: what each mode varies, over which values, and what cannot be tried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from whichwall.collect.device import Device
from whichwall.collect.engines.static_cache import SPARE_TOKENS
from whichwall.collect.engines.vllm_model import AUTO
from whichwall.collect.options import (
    BACKENDS,
    COMPILE,
    COMPILE_REDUCE_OVERHEAD,
    DEFAULT_PROMPT,
    EAGER,
    LONG,
    OWN,
    RUNGS,
    VLLM,
    CollectOptions,
)
from whichwall.collect.packages import NO_VLLM, has_vllm
from whichwall.collect.point import Point
from whichwall.schemas.experiments import ATTENTION, BATCH, CONTEXT, LADDER, OUTPUT, PROMPT
from whichwall.schemas.knee import LEAST_RISE, knee
from whichwall.schemas.model import Model
from whichwall.schemas.points import LONG_GENERATION

# A GPU is swept over what it serves; a CPU over what takes it seconds.
VALUES: dict[str, dict[str, tuple[str, ...]]] = {
    CONTEXT: {
        "cuda": ("128", "512", "1024", "2048", "4096", "8192", LONG),
        "cpu": ("16", "32", "64", LONG),
    },
    PROMPT: {
        "cuda": ("16", "64", "128", "256", "512", "1024", "2048", "4096", "8192"),
        "cpu": ("8", "16", "32", "64"),
    },
    OUTPUT: {"cuda": ("1", "8", "32", "128", "512"), "cpu": ("1", "4", "8")},
    BATCH: {
        "cuda": ("1", "2", "4", "8", "16", "32", "64", "128", "256", "512"),
        "cpu": ("1", "2", "4"),
    },
    LADDER: dict.fromkeys(("cuda", "cpu"), RUNGS),
    ATTENTION: dict.fromkeys(("cuda", "cpu"), (*BACKENDS, OWN)),
}
# Shorter prompts than a single point's: a batch of hundreds has to fit.
BATCH_PROMPT = {"cuda": 512, "cpu": 16}
# One long answer, prompt and new tokens: long enough for its first steps and its last to differ.
LONG_ANSWER = {"cuda": (32, 1024), "cpu": (16, 96)}
# Backends differ most in the prompt; a few steps after it tell the rest.
ATTENTION_TOKENS = 5
COMPILED = (COMPILE, COMPILE_REDUCE_OVERHEAD)
NOT_ON_CPU = "not tried on a CPU unless asked for by --values: compiling takes half a minute"
# Traces are large: of a line of points its two ends and its bend say the most.
TRACED = (LADDER, ATTENTION, BATCH)


@dataclass(frozen=True)
class Planned:
    """A point with what is known of it before it is tried."""

    point: Point
    refused: str | None = None  # why it is not tried at all
    once: bool = False  # one visit says enough, and more would take too long


def values_of(options: CollectOptions, device: Device) -> list[str]:
    """Return what the mode varies: as asked for, else the device's default.

    An engine that is not installed is no rung of a ladder, unless it is asked for.
    """
    if options.values is not None:
        return options.asked_values()
    values = VALUES[options.mode][device.kind]
    return [value for value in values if value != VLLM or has_vllm()]


def plan_points(
    options: CollectOptions, device: Device, model: Model, attention: str
) -> list[Planned]:
    """Return the points of a sweep in their order; those that cannot be are refused with a reason.

    Args:
        options: checked, and of a mode that sweeps.
        device: whose defaults count.
        model: whose positions bound prompts.
        attention: what the built model uses.
    """
    base = _base(options, device, model, attention)
    planned = []
    for number, value in enumerate(values_of(options, device)):
        point = replace(_varied(options.mode, base, value, device), number=number)
        refused = _beyond_positions(point, model)
        if point.engine in COMPILED and options.values is None and not device.is_gpu:
            refused = NOT_ON_CPU if options.mode == LADDER else refused
        if point.engine == VLLM and not has_vllm():
            refused = NO_VLLM
        planned.append(Planned(point, refused, once=value == LONG))
    return planned


def _base(options: CollectOptions, device: Device, model: Model, attention: str) -> Point:
    """Return what every point of the mode starts from."""
    new = {
        PROMPT: 1,
        ATTENTION: min(options.new_tokens, ATTENTION_TOKENS),
    }.get(options.mode, options.new_tokens)
    default = (BATCH_PROMPT if options.mode == BATCH else DEFAULT_PROMPT)[device.kind]
    if model.positions is not None:
        default = max(1, min(default, model.positions - new - SPARE_TOKENS))
    return Point(
        number=0,
        engine=EAGER if options.mode == LADDER else options.engine,
        attention=attention,
        batch=options.batch_size,
        prompt_tokens=options.prompt_tokens or default,
        new_tokens=new,
    )


def _varied(mode: str, base: Point, value: str, device: Device) -> Point:
    if value == LONG:
        prompt, new = LONG_ANSWER[device.kind]
        return replace(base, prompt_tokens=prompt, new_tokens=new, label=LONG_GENERATION)
    if mode == LADDER:
        attention = AUTO if value == VLLM else base.attention
        return replace(base, engine=value, label=value, attention=attention)
    if mode == ATTENTION:
        return replace(base, attention=value, label=value)
    if mode == OUTPUT:
        return replace(base, new_tokens=int(value))
    if mode == BATCH:
        return replace(base, batch=int(value))
    return replace(base, prompt_tokens=int(value))  # of a prompt, and of the context it leaves


def _beyond_positions(point: Point, model: Model) -> str | None:
    # Capturing and compiling run steps of their own, a few positions beyond a short request's.
    spare = 0 if point.engine in (EAGER, VLLM) else SPARE_TOKENS
    if model.positions is None or point.prompt_tokens + point.new_tokens + spare <= model.positions:
        return None
    return (
        f"{model.name} has {model.positions} positions: a prompt of {point.prompt_tokens} and "
        f"{point.new_tokens} new tokens do not fit"
    )


def called(mode: str, point: Point) -> str:
    """Return what a point is called in a sentence."""
    if point.label is not None:
        return point.label
    value = {BATCH: point.batch, OUTPUT: point.new_tokens}.get(mode, point.prompt_tokens)
    return f"{mode} {value}"


def points_to_trace(
    mode: str, done: Sequence[Point], steps_ns: Mapping[int, list[float]]
) -> list[Point]:
    """Return which points to trace, as they are to be run under the profiler.

    All of a ladder; the prompt alone of each attention backend; of batches the smallest, the knee
    and the largest.

    Args:
        mode: of the sweep.
        done: points that were measured, in their order.
        steps_ns: of each point, the median step of each of its visits.
    """
    if mode == ATTENTION:
        return [replace(point, new_tokens=1) for point in done]
    if mode == LADDER:
        return list(done)
    if mode != BATCH or not done:
        return []
    by_batch = sorted(done, key=lambda point: point.batch)
    apart = [(max(t) - min(t)) / median(t) for p in done if (t := steps_ns.get(p.number))]
    found = knee(
        ((p.batch, t) for p in done for t in steps_ns.get(p.number, ())),
        least_rise=max(LEAST_RISE, median(apart) if apart else 0.0),
    )
    at = {by_batch[0].batch, by_batch[-1].batch, *([found.at] if found else [])}
    return [point for point in by_batch if point.batch in at]
