"""What the experiments found, as summary.json says it: one struct per question."""

import msgspec

# Modes whose runs answer a question of their own; a run of decode or prefill is asked for its wall.
CONTEXT, PROMPT, OUTPUT, BATCH, LADDER, ATTENTION, REQUEST, CEILINGS, CLOCKS, TAX, PREFIX = (
    "context", "prompt", "output", "batch", "ladder", "attention", "request", "ceilings",
    "clocks", "tax", "prefix",
)  # fmt: skip
MODES = (
    CONTEXT, PROMPT, OUTPUT, BATCH, LADDER, ATTENTION, REQUEST, CEILINGS, CLOCKS, TAX, PREFIX,
)  # fmt: skip


class Rate(msgspec.Struct, frozen=True):
    """How fast the clean step of one phase at one point works."""

    point: int
    phase: str | None
    step_ns: int | None
    achieved_gbps: float | None
    achieved_tflops: float | None
    intensity: float | None  # FLOPs over bytes of a pass, as its floor counts them


class PartTime(msgspec.Struct, frozen=True):
    """One part of the model, timed on its own."""

    part: str
    calls: int  # in one pass
    wall_ns: int  # of one call
    gpu_ns: int | None
    parameters: int | None  # that one call reads


class PartsSum(msgspec.Struct, frozen=True):
    """Parts added up to a pass, beside the clean pass itself."""

    point: int
    phase: str
    parts: list[PartTime]
    sum_wall_ns: int  # calls × wall, all parts
    sum_gpu_ns: int | None
    step_ns: int | None  # the clean pass
    step_gpu_ns: int | None
    rest_wall_ns: int | None  # the clean pass less the sum; below 0 where parts overlap in a pass
    rest_gpu_ns: int | None


class Drift(msgspec.Struct, frozen=True):
    """One long answer: its first steps against its last."""

    steps: int  # of one answer
    bin: int  # steps taken together
    first_ns: int  # mean of the first bin, median over visits
    last_ns: int
    ratio: float
    binned_ns: list[int]  # mean of each bin, median over visits


class LoopTime(msgspec.Struct, frozen=True):
    """One way of making the tokens of a request."""

    loop: str  # waiting, free, generate
    requests: int
    model_ns: int  # median: prompt in to last token out
    model_ns_lowest: int
    model_ns_highest: int
    to_free: float | None  # over the loop that waits only at the end


class RequestTimes(msgspec.Struct, frozen=True):
    """One request from text to text; medians over requests."""

    prompt_tokens: int | None
    new_tokens: int | None
    tokenize_ns: int | None
    prefill_ns: int | None
    steps_ns: int | None  # all decode steps of one request
    detokenize_ns: int | None
    total_ns: int | None
    step_ns_first: int | None
    step_ns_median: int | None
    step_ns_slowest: int | None
    loops: list[LoopTime]
    same_tokens: bool | None  # all requests made the same tokens; null: fewer than two told theirs
    requests_told: int  # requests of which the tokens are known
    requests_alike: int  # of those, the ones that made what most of their visit made


class Side(msgspec.Struct, frozen=True):
    """A card rested or worked: its step, and what samples around it say."""

    label: str
    phase: str
    passes: int
    step_ns: int
    step_ns_p10: int
    step_ns_p90: int
    samples: int
    sm_clock_mhz: float | None
    power_w: float | None
    temperature_c: float | None


class ClockChange(msgspec.Struct, frozen=True):
    """The same work on a rested card and on a worked one, and whether the card slowed itself."""

    rested: Side
    hot: Side
    step_ratio: float  # hot over rested
    clock_ratio: float | None
    highest_clock_mhz: float | None  # sampled in the run
    soak_samples: int  # those that the driver's reasons are from: end of the soak, then the passes
    reasons: dict[str, float]  # that hold a card back -> share of these samples
    slowed: bool | None
    why: str


class Process(msgspec.Struct, frozen=True):
    """Medians of a step, one per process."""

    name: str
    processes: int
    median_ns: int
    lowest_ns: int
    highest_ns: int


class Cost(msgspec.Struct, frozen=True):
    """A ratio of two steps in the same process: the median over processes."""

    ratio: float
    low: float | None  # ends of the 95 % interval over processes; null with fewer than two
    high: float | None
    processes: int
    seen: bool | None  # the interval excludes 1; null without one


class Observer(msgspec.Struct, frozen=True):
    """What watching costs: the profiler, and the sampler of clocks and power."""

    phase: str
    sides: list[Process]
    profiled: Cost | None  # under the profiler, over clean
    after: Cost | None  # after it, over clean
    sampler: Cost | None  # with the sampler, over without


class Reached(msgspec.Struct, frozen=True):
    """A measured limit beside the datasheet's."""

    name: str
    dtype: str | None
    shape: str | None
    value: float
    unit: str
    p10: float | None
    p90: float | None
    datasheet: float | None
    share: float | None  # of the datasheet
    sustained_of: float | None  # a sustained limit over the same one in a burst
    sm_clock_mhz: float | None
    temperature_c: float | None
