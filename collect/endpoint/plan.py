"""What a server is asked in each mode: the points, how long each is visited, and the command."""

import shlex
from dataclasses import dataclass, replace

from whichwall.collect.endpoint.load import Span
from whichwall.collect.options import (
    OPENAI,
    PREFILL,
    SWEEPS,
    CollectOptions,
    without_folders,
)
from whichwall.collect.prefix_rounds import KINDS, SUFFIX_TOKENS
from whichwall.schemas.experiments import BATCH, OUTPUT, PREFIX, PROMPT
from whichwall.schemas.points import UNIQUE, Points

Row = dict[str, object]

DEFAULT_PROMPT, BATCH_PROMPT = 1024, 512
# As sweeps of a GPU go, but for batches that one client would rather limit itself.
VALUES = {
    BATCH: ("1", "2", "4", "8", "16", "32", "64"),
    PROMPT: ("16", "64", "128", "256", "512", "1024", "2048", "4096", "8192"),
    OUTPUT: ("1", "8", "32", "128", "512"),
}


@dataclass(frozen=True)
class VisitPlan:
    """How often each point is visited, and how long each lane goes on in a visit."""

    visits: int
    clean: Span
    warm_tokens: int  # of each lane's warm-up request, at most


# As sweeps: three visits in two directions tell a trend from drift. A single point has more, of a
# length that clocks and power can be read in. Quick ones say that it works, and roughly how fast.
SINGLE_POINT = VisitPlan(5, Span(5.0, 3), 32)
OF_A_SWEEP = VisitPlan(3, Span(3.0, 3), 32)
QUICK = VisitPlan(2, Span(0.3, 2), 4)


@dataclass(frozen=True)
class ServedPoint:
    """One setting: so many lanes, each with requests of one size."""

    number: int
    lanes: int
    prompt_tokens: int
    new_tokens: int  # 1: the first token only
    label: str | None = None
    prefix_tokens: int = 0  # of the prompt, shared with others
    refused: str | None = None  # why it is not tried

    def row(self, outcome: str, reason: str | None) -> Row:
        """Return the point's row: what was asked for, and how it ended."""
        return {
            Points.point: self.number,
            Points.label: self.label,
            Points.engine: OPENAI,
            Points.batch: self.lanes,
            Points.context_tokens: self.prompt_tokens if self.new_tokens > 1 else 0,
            Points.prompt_tokens: self.prompt_tokens,
            Points.new_tokens: self.new_tokens,
            Points.outcome: outcome,
            Points.reason: reason,
        }


def visit_plan(options: CollectOptions) -> VisitPlan:
    """Return how each point is visited; at least as often as --repeat says."""
    plan = OF_A_SWEEP if options.mode in SWEEPS else SINGLE_POINT
    plan = QUICK if options.quick else plan
    return replace(plan, visits=max(plan.visits, options.repeat))


def plan_points(options: CollectOptions, longest: int | None) -> list[ServedPoint]:
    """Return the points of a mode; those longer than the server takes are refused with a reason.

    Args:
        options: checked, and for a server.
        longest: tokens of prompt and answer that it takes together, if it says so.
    """
    base = _base(options, longest)
    if options.mode == PREFIX:
        points = _prefix_points(base)
    elif options.mode in SWEEPS:
        points = [_varied(options.mode, base, int(value)) for value in values_of(options)]
    else:
        points = [base]
    return [
        replace(point, number=number, refused=_too_long(point, longest))
        for number, point in enumerate(points)
    ]


def values_of(options: CollectOptions) -> list[str]:
    """Return what the mode varies: as asked for, else its default; nothing for a single point."""
    if options.mode not in SWEEPS:
        return []
    return options.asked_values() if options.values is not None else list(VALUES[options.mode])


def _base(options: CollectOptions, longest: int | None) -> ServedPoint:
    new = 1 if options.mode in (PREFILL, PROMPT, PREFIX) else options.new_tokens
    default = BATCH_PROMPT if options.mode == BATCH else DEFAULT_PROMPT
    if longest is not None:
        default = max(1, min(default, longest - new - SUFFIX_TOKENS))
    return ServedPoint(0, options.batch_size, options.prompt_tokens or default, new)


def _varied(mode: str, base: ServedPoint, value: int) -> ServedPoint:
    if mode == BATCH:
        return replace(base, lanes=value)
    if mode == OUTPUT:
        return replace(base, new_tokens=value)
    return replace(base, prompt_tokens=value)


def _prefix_points(base: ServedPoint) -> list[ServedPoint]:
    """Return prompts of their own, and the first and later ones of those that share a prefix."""
    whole = replace(base, lanes=1, prompt_tokens=base.prompt_tokens + SUFFIX_TOKENS)
    shared = replace(whole, prefix_tokens=base.prompt_tokens)
    return [replace(whole if kind == UNIQUE else shared, label=kind) for kind in KINDS]


def _too_long(point: ServedPoint, longest: int | None) -> str | None:
    if longest is None or point.prompt_tokens + point.new_tokens <= longest:
        return None
    return (
        f"the server takes {longest} tokens: a prompt of {point.prompt_tokens} and "
        f"{point.new_tokens} new tokens do not fit"
    )


def command_line(options: CollectOptions, url: str, model: str, longest: int | None) -> str:
    """Return a command that would collect this again, with defaults spelled out.

    Args:
        options: what was asked for.
        url: the server's, as it may be shown.
        model: its name at the server.
        longest: as `plan_points` has it.
    """
    mode = options.mode
    words: list[object] = ["whichwall", "collect", "--mode", mode, "--engine", OPENAI]
    words += ["--url", url, "--model", without_folders(model)]
    prompt = None if mode == PROMPT else _base(options, longest).prompt_tokens
    answers = options.new_tokens if mode not in (PREFILL, PROMPT, OUTPUT, PREFIX) else None
    folder = options.trace_folder
    named: dict[str, object] = {
        "--values": ",".join(values_of(options)) or None,
        "--prompt-tokens": prompt,
        "--new-tokens": answers,
        "--batch-size": None if mode in (BATCH, PREFIX) else options.batch_size,
        "--timeout-s": f"{options.timeout_s:g}",
        "--sample-interval-ms": options.sample_interval_ms,
        "--repeat": options.repeat if options.repeat > 1 else None,
        "--trace-folder": None if folder is None else folder.resolve().name,
    }
    words += [word for pair in named.items() if pair[1] is not None for word in pair]
    words += ["--quick"] if options.quick else []
    return shlex.join(map(str, words))


def called(mode: str, point: ServedPoint) -> str:
    """Return what a point is called in a sentence."""
    if point.label is not None:
        return point.label
    if mode == BATCH:
        return f"{point.lanes} in flight"
    if mode == OUTPUT:
        return f"{point.new_tokens} new tokens"
    return f"a prompt of {point.prompt_tokens} tokens"
