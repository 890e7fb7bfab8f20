"""What a client found of a server, as summary.json says it: waits, rates and failures by point."""

import msgspec


class Waits(msgspec.Struct, frozen=True):
    """One kind of wait over the requests that were answered."""

    count: int
    median_ns: int
    p10_ns: int
    p90_ns: int
    p99_ns: int | None  # null: of fewer than a hundred


class Served(msgspec.Struct, frozen=True):
    """One point: lanes that each have a request on its way, and what they got.

    Times and rates are of requests that were answered; the failed ones are counted beside.
    """

    point: int
    label: str | None
    lanes: int | None
    prompt_tokens: int | None  # asked for
    new_tokens: int | None
    outcome: str  # of the point
    reason: str | None
    requests: int  # clean ones
    done: int
    failures: dict[str, int]  # outcome -> requests
    reasons: dict[str, str]  # outcome -> what the first of them failed of
    prompt_tokens_served: int | None  # as the server counts: medians
    cached_tokens: int | None
    new_tokens_served: int | None
    tokens_per_chunk: float | None  # null: tokens are not counted
    ttft: Waits | None  # sent to first token
    tpot: Waits | None  # (last - first) / (tokens - 1)
    itl: Waits | None  # between chunks that brought tokens
    total: Waits | None  # sent to the end of the answer
    window_ns: int | None  # in which every lane was under way, all visits together
    lanes_busy: float | None  # requests that were then on their way and answered, on average
    tokens_per_s: float | None  # that then came, all lanes
    tokens_per_s_each: float | None  # the same of one lane, its waits for first tokens included
    requests_per_s: float | None


class Reuse(msgspec.Struct, frozen=True):
    """TTFT of one kind of prompt over that of unique ones of its length: median over rounds."""

    ratio: float
    low: float | None  # ends of the 95 % interval over rounds; null where one stands alone
    high: float | None
    seen: bool | None  # the interval excludes 1; null without one


class PrefixReuse(msgspec.Struct, frozen=True):
    """Prompts that share their beginning, beside prompts of their own."""

    prompt_tokens: int | None  # of every prompt
    prefix_tokens: int | None  # of the shared beginning
    rounds: int  # each with a prefix that no other had
    unique: Waits | None  # TTFT
    first: Waits | None  # with a prefix that is new
    later: Waits | None  # with one that came before
    first_to_unique: Reuse | None
    later_to_unique: Reuse | None
    cached_tokens_unique: int | None  # of a prompt, as the server says: medians
    cached_tokens_first: int | None
    cached_tokens_later: int | None
    failed: int
