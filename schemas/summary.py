"""summary.json: what machines read of a run. Keys are stable; additions are allowed.

Every value that is not known is null. Times are integer nanoseconds, shares lie in 0 to 1.
"""

import msgspec

from whichwall.schemas.account import Account
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.experiments import (
    ClockChange,
    Drift,
    Observer,
    PartsSum,
    Rate,
    Reached,
    RequestTimes,
)
from whichwall.schemas.knee import Knee
from whichwall.schemas.model import Model
from whichwall.schemas.moves import Move
from whichwall.schemas.serving import PrefixReuse, Served
from whichwall.schemas.turns import Turns

VERSION = 1

# What a check of roles judges.
GPU_ACTIVITIES, OPERATORS = "gpu_activities", "operators"


class Shares(msgspec.Struct, frozen=True):
    """How the clean step divides; the three parts add up to 1."""

    launches: float  # (T - busy) / T
    kernels: float  # (busy - floor) / T
    bytes: float | None = None  # floor / T where the bytes floor is the larger total
    arithmetic: float | None = None  # floor / T where the arithmetic floor is


class Verdict(msgspec.Struct, frozen=True):
    """Which wall, how sure, and what would confirm it."""

    wall: str | None  # launches, kernels, bytes, arithmetic, mixed; null: none, see reason
    shares: Shares | None
    annotations: list[str]
    confirm_with: str | None
    predicted_step_ms: float | None
    predicted_how: str | None
    reason: str | None
    tested: str | None = None  # how the test came out, where the run made it


class RoleTotal(msgspec.Struct, frozen=True):
    """GPU time of one role over a window, or operator time on a CPU run."""

    role: str
    busy_ns: int
    share: float
    kernels: int
    achieved_gbps: float | None = None  # bytes it must move over busy_ns; null where not known
    achieved_tflops: float | None = None


class GapTotals(msgspec.Struct, frozen=True):
    """Gaps of one device."""

    count: int
    total_ns: int
    median_ns: int | None
    p99_ns: int | None
    by_cause_ns: dict[str, int]
    by_cause_count: dict[str, int]


class Device(msgspec.Struct, frozen=True):
    """One device over the whole recording."""

    rank: int
    device: int | None
    gpu_activities: int
    kernels: int
    window_ns: int
    busy_ns: int
    busy_without_communication_ns: int
    busy_fraction: float | None
    duration_sum_ns: int
    kernel_median_ns: int | None
    gaps: GapTotals
    roles: list[RoleTotal]
    attributed_share: float | None
    methods: dict[str, int]  # method of attribution -> activities


class StepGroup(msgspec.Struct, frozen=True):
    """Steps of one phase at one point on one device, medians over them."""

    rank: int
    device: int | None
    point: int
    phase: str | None
    count: int
    batch: int | None
    window_ns_median: int | None
    busy_ns_median: int | None
    busy_without_communication_ns_median: int | None
    busy_fraction_traced: float | None
    busy_fraction_clean: float | None
    clean_step_ns_median: int | None
    clean_step_ns_p10: int | None
    clean_step_ns_p90: int | None
    clean_from: str | None  # "passes", "option", or null
    kernels_median: float | None
    launches_median: float | None
    kernel_median_ns: int | None
    gap_median_ns: int | None
    gaps_by_cause_ns: dict[str, int]  # median per step
    tokens_per_s: float | None
    achieved_gbps: float | None
    achieved_tflops: float | None
    times_floor: float | None
    shares: Shares | None
    roles: list[RoleTotal]  # GPU time of all the group's steps
    attributed_share: float | None


class StepsSummary(msgspec.Struct, frozen=True):
    """All steps of the run."""

    found_by: str | None
    phase: dict[str, int]
    groups: list[StepGroup]


class Floor(msgspec.Struct, frozen=True):
    """The least time a step of one phase can take, and what that rests on."""

    phase: str
    point: int
    batch: int
    tokens: int
    context_tokens: int
    floor_ns: int | None  # sum over operations of max(bytes / bandwidth, FLOPs / rate)
    bytes_ns: int | None
    arithmetic_ns: int | None
    bytes: int
    flops: int
    bandwidth_gbps: float | None
    bandwidth_from: str | None  # measured, datasheet
    tflops: float | None
    tflops_from: str | None
    cached_weights: bool  # weights under four times the last-level cache: the bytes floor is none


class SampleWindow(msgspec.Struct, frozen=True):
    """Clocks and power inside the clean stage, or inside the trace if there is none."""

    window: str  # clean, trace
    gpu_uuid: str | None
    samples: int
    sm_clock_mhz_median: float | None
    memory_clock_mhz_median: float | None
    power_w_median: float | None
    power_from: str | None  # instant, average, draw
    temperature_c_median: float | None
    energy_j: float | None
    energy_from: str | None  # counter, samples
    energy_j_per_token: float | None
    throttle: dict[str, float]  # reason -> share of the samples


class Tax(msgspec.Struct, frozen=True):
    """What the profiler costs: the same step before, under and after it."""

    phase: str
    clean_ns_median: int
    profiled_ns_median: int | None
    after_ns_median: int | None
    profiled_ratio: float | None
    after_ratio: float | None


class Confusion(msgspec.Struct, frozen=True):
    """Activities for which the same is expected, and of which the same was found."""

    expected: str  # accepted roles, separated by |
    found: str
    right: bool
    kernels: int
    busy_ns: int


class RoleCheck(msgspec.Struct, frozen=True):
    """How right roles are in the pass recorded to check them; shares null without any kernel."""

    time_right: float | None  # share of the GPU time with an accepted role
    kernels_right: float | None
    layers_right: float | None  # of the kernels inside a layer, those with its index
    kernels: int  # GPU activities of which the right roles are known
    confusion: list[Confusion]  # those with most time first
    not_judged: int = 0  # ran where what is right is not known, or under no range
    of: str = GPU_ACTIVITIES  # operators: without any GPU activity they are judged instead


class Dimensions(msgspec.Struct, frozen=True):
    """The widths that roles were read by, on one rank, and what each is from."""

    source: str  # config, shapes
    hidden: int
    vocab: int | None
    layers: int | None
    heads: int | None
    kv_heads: int | None
    head_dim: int | None
    value_dim: int | None  # where it is not head_dim
    inner: list[int]  # widths inside the MLP, of experts too
    experts: int | None
    experts_per_token: int | None
    latent: list[int]  # widths between the projections of latent attention
    shards: int  # ranks that share each layer
    inferred_from: dict[str, str]  # names of dimensions -> what they were read from


class Summary(msgspec.Struct, frozen=True):
    """The whole of summary.json."""

    schema_version: int
    run: str
    mode: str
    model: Model | None
    verdict: Verdict
    devices: list[Device]
    steps: StepsSummary
    floors: Floor | None
    floors_by_phase: list[Floor]
    ttft_ns: int | None
    tpot_ns: int | None
    cpu_roles: list[RoleTotal]  # operator time by role, where there is no GPU activity
    samples: SampleWindow | None
    tax: Tax | None
    diagnostics: list[Diagnostic]
    role_check: RoleCheck | None = None  # null: nothing was recorded to check roles by
    dimensions: Dimensions | None = None  # null: neither config nor shapes tell
    reference: str | None = None  # the run that told roles of graph replays, if one was given
    answer: str | None = None  # the sentence that answers what the run was made for
    rates: list[Rate] = []
    sweep: list[dict[str, bool | int | float | str | None]] = []  # rows of schemas/sweep.py
    knee: Knee | None = None  # where a sweep over batches, prompts or contexts starts to rise
    drift: Drift | None = None
    request: RequestTimes | None = None
    parts: list[PartsSum] = []
    ceilings: list[Reached] = []
    clocks: ClockChange | None = None
    observer: Observer | None = None
    account: list[Account] = []  # one per group of traced steps
    moves: list[Move] = []  # of the step that the verdict speaks of
    turns: Turns | None = None  # where along a sweep the wall changes
    serving: list[Served] = []  # one per point of a run that measured a server
    prefix: PrefixReuse | None = None

    def encode(self) -> bytes:
        """Return the text of summary.json, indented and ending in a newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"
