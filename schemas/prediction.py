"""What `predict --json` prints: floors of passes on paper, the crossover, and what memory holds.

Keys are stable; additions are allowed. What is not known is null. Times are of one rank.
"""

import msgspec

VERSION = 1

BYTES, ARITHMETIC, COMMUNICATION = "bytes", "arithmetic", "communication"
MEASURED, DATASHEET, GIVEN = "measured", "datasheet", "given"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one card reaches, and where each number comes from."""

    name: str
    bandwidth_gbps: float
    bandwidth_from: str  # measured, datasheet, given
    tflops: float | None = None
    tflops_from: str | None = None
    tflops_dtype: str | None = None  # whose rate it is
    memory_bytes: int | None = None
    memory_from: str | None = None
    l2_bytes: int | None = None
    link_gbps: float | None = None  # what one rank sends to the others
    source: str | None = None

    @property
    def balance(self) -> float | None:
        """Return the FLOP per byte at which bytes and arithmetic take equally long."""
        return None if self.tflops is None else self.tflops * 1000 / self.bandwidth_gbps


class PredictedOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of operation, all its instances in a pass together."""

    name: str
    role: str
    count: int
    flops: int
    bytes: int
    intensity: float | None  # FLOP per byte; null where there are no bytes
    memory_ns: float  # bytes / bandwidth
    arithmetic_ns: float | None  # FLOPs / rate
    binds: str | None  # bytes or arithmetic


class Communication(msgspec.Struct, frozen=True, kw_only=True):
    """What ranks send each other in a pass."""

    all_reduces: int
    all_reduce_bytes: int  # one of them: the activations of all tokens
    gathered_bytes: int  # logits, which each rank has a part of
    sent_bytes: int  # by each rank, in rings: 2 (n - 1) / n of an all-reduce
    time_ns: int | None  # null where the rate of the link is not known


class PredictedPass(msgspec.Struct, frozen=True, kw_only=True):
    """A pass: its operations, floors and rates."""

    phase: str
    batch: int
    tokens: int  # new ones of each sequence
    context_tokens: int  # cached ones of each sequence
    operations: list[PredictedOperation]
    flops: int
    bytes: int
    intensity: float | None
    bytes_ns: int
    arithmetic_ns: int | None
    step_ns: int  # Σ max(memory, arithmetic), and communication where its time is known
    binds: str | None  # what binds for the largest part of the step
    bytes_share: float | None  # share of the step in which bytes bind
    tokens_per_s: float  # generated, in prefill fed
    tokens_per_s_each: float  # the same of one sequence
    expected_experts: float | None = None  # distinct ones read in a layer
    communication: Communication | None = None


class Crossover(msgspec.Struct, frozen=True, kw_only=True):
    """From which batch on decode is bound by arithmetic; null: from none, or not known."""

    context_tokens: int
    balance: float | None  # FLOP per byte
    weights: int | None  # arithmetic with the weights takes as long as reading them
    step: int | None  # likewise of the whole step, whose cache grows with the batch


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """How many conversations of one length fit beside the weights."""

    context_tokens: int
    cache_bytes: int  # of one conversation
    conversations: int | None


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What one card must hold, of the ranks' equal shares."""

    weight_bytes: int
    cache_bytes_per_token: int  # while no window is full
    asked_bytes: int  # weights, and the cache of the batch at its context
    usable_bytes: int | None
    fits: list[Fit]
    longest_context_tokens: int | None  # for the batch asked; null: not known or any length


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """What the shapes of a model and two numbers of a card say."""

    schema_version: int = VERSION
    model: str
    parameters: int
    active_parameters: int
    limits: Limits
    dtype: str
    kv_dtype: str
    tensor_parallel: int
    latent: str | None
    passes: list[PredictedPass]
    crossover: Crossover
    memory: Memory
    assumed: list[str]
    not_counted: list[str]

    def encode(self) -> bytes:
        """Return it as JSON."""
        return msgspec.json.encode(self)
