"""Predict a pass on paper: each operation takes the longer of its bytes and its arithmetic.

Formulas are those of `operations` and `floor`; here they meet a card's limits, a type of weights
and a number of ranks.
"""

from collections.abc import Callable
from dataclasses import replace

from whichwall.analyze.capacity import memory
from whichwall.analyze.floor import FLOPS_PER_NS_OF_TFLOPS, floor
from whichwall.analyze.operations import Operation, expected_experts, operations
from whichwall.analyze.predict_setting import Setting
from whichwall.analyze.predict_words import assumed, not_counted
from whichwall.analyze.tensor_parallel import communication, share_of_rank
from whichwall.schemas import roles
from whichwall.schemas.passes import DECODE, PREFILL
from whichwall.schemas.precision import QUANTIZED_ROLES
from whichwall.schemas.prediction import (
    ARITHMETIC,
    BYTES,
    COMMUNICATION,
    Crossover,
    Limits,
    PredictedOperation,
    PredictedPass,
    Prediction,
)
from whichwall.schemas.weights import active_parameters, parameters

NS_PER_S = 1e9
# A crossover beyond this batch is none: no card holds the conversations.
LARGEST_BATCH = 2**20
# Operations whose bytes grow with the batch: all others read weights.
_PER_SEQUENCE = (roles.ATTENTION, roles.KV_CACHE, roles.EMBEDDING)


def predict(asked: Setting) -> Prediction:
    """Return the prediction.

    Raises:
        UsageError: the model cannot be split over so many ranks.
    """
    model = asked.model
    held = memory(
        share_of_rank(model, asked.ranks),
        asked.weights,
        asked.wide.bits,
        asked.cache.bits // 8,
        asked.batch,
        asked.context_tokens,
        asked.limits.memory_bytes,
    )
    return Prediction(
        model=model.name,
        parameters=parameters(model),
        active_parameters=active_parameters(model),
        limits=asked.limits,
        dtype=asked.weights.name,
        kv_dtype=asked.cache.name,
        tensor_parallel=asked.ranks,
        latent=None if model.kv_lora_rank is None else asked.latent,
        passes=[predicted_pass(asked, phase) for phase in asked.phases],
        crossover=crossover(asked),
        memory=held,
        assumed=assumed(asked, held.weight_bytes),
        not_counted=not_counted(asked),
    )


def pass_operations(asked: Setting, phase: str) -> list[Operation]:
    """Return the operations of one rank in one pass, at the widths of its types.

    A prefill feeds the prompt into an empty cache; a decode step feeds one token of each sequence.
    """
    tokens, context = _tokens(asked, phase)
    found = operations(
        share_of_rank(asked.model, asked.ranks),
        asked.batch,
        tokens,
        context,
        asked.wide.bits // 8,
        asked.cache.bits // 8,
        logits_tokens=_logits(asked, phase),
        latent=asked.latent,
    )
    return [_narrowed(one, asked) for one in found]


def predicted_pass(asked: Setting, phase: str) -> PredictedPass:
    """Return one pass: its operations, its floors and what they give a second."""
    tokens, context = _tokens(asked, phase)
    found = pass_operations(asked, phase)
    totals = floor(found, asked.limits.bandwidth_gbps, asked.limits.tflops)
    rows = [timed(one, asked.limits) for one in found]
    sent = communication(
        asked.model,
        asked.ranks,
        asked.batch * tokens,
        _logits(asked, phase),
        asked.wide.bits // 8,
        asked.limits.link_gbps,
    )
    sending_ns = (sent.time_ns or 0) if sent else 0
    # A model of a few numbers takes less than a nanosecond, which would round to none.
    step_ns = max(1, (totals.floor_ns or 0) + sending_ns)
    bound = {
        BYTES: sum(row.memory_ns for row in rows if row.binds == BYTES),
        ARITHMETIC: sum(row.arithmetic_ns or 0 for row in rows if row.binds == ARITHMETIC),
        COMMUNICATION: float(sending_ns),
    }
    known = asked.limits.tflops is not None
    generated = asked.batch * (1 if phase == DECODE else tokens)
    model = asked.model
    return PredictedPass(
        phase=phase,
        batch=asked.batch,
        tokens=tokens,
        context_tokens=context,
        operations=rows,
        flops=totals.flops,
        bytes=totals.bytes,
        intensity=totals.flops / totals.bytes if totals.bytes else None,
        bytes_ns=totals.bytes_ns or 0,
        arithmetic_ns=totals.arithmetic_ns,
        step_ns=step_ns,
        binds=max(bound, key=lambda name: bound[name]) if known else None,
        bytes_share=min(1.0, bound[BYTES] / step_ns) if known else None,
        tokens_per_s=generated * NS_PER_S / step_ns,
        tokens_per_s_each=generated * NS_PER_S / step_ns / asked.batch,
        expected_experts=None
        if model.experts is None
        else expected_experts(model.experts, model.experts_per_token or 0, asked.batch * tokens),
        communication=sent,
    )


def timed(one: Operation, limits: Limits) -> PredictedOperation:
    """Return all instances of an operation with their two times, and which is the longer."""
    flops, size = one.flops * one.count, one.bytes * one.count
    memory_ns = size / limits.bandwidth_gbps
    rate = limits.tflops and limits.tflops * FLOPS_PER_NS_OF_TFLOPS
    arithmetic_ns = flops / rate if rate else (None if flops else 0.0)
    binds = None
    if arithmetic_ns is not None:
        binds = ARITHMETIC if arithmetic_ns > memory_ns else BYTES
    return PredictedOperation(
        name=one.name,
        role=one.role,
        count=one.count,
        flops=flops,
        bytes=size,
        intensity=flops / size if size else None,
        memory_ns=memory_ns,
        arithmetic_ns=arithmetic_ns,
        binds=binds,
    )


def crossover(asked: Setting) -> Crossover:
    """Return the batches from which on decode is bound by arithmetic, at the asked context.

    `weights` is the smallest batch at which the arithmetic of all operations with weights takes
    at least as long as reading those weights: from there on a larger batch is no longer free.
    For a dense model that is bytes per weight / 2 · rate / bandwidth, rounded up. `step` is the
    same of all operations, attention and cache with them; a long context has none, since its
    cache grows with the batch as its arithmetic does.
    """
    return Crossover(
        context_tokens=asked.context_tokens,
        balance=asked.limits.balance,
        weights=_smallest(asked, lambda one: bool(one.flops) and one.role not in _PER_SEQUENCE),
        step=_smallest(asked, lambda _: True),
    )


def _smallest(asked: Setting, counts: Callable[[Operation], bool]) -> int | None:
    """Return the smallest batch whose arithmetic takes as long as its bytes, by bisection.

    FLOPs per byte only rise with the batch: bytes grow at most in proportion to it.
    """
    if asked.limits.balance is None:
        return None
    balance = asked.limits.balance

    def crossed(batch: int) -> bool:
        found = pass_operations(replace(asked, batch=batch), DECODE)
        mine = [one for one in found if counts(one)]
        flops = sum(one.flops * one.count for one in mine)
        return flops >= balance * sum(one.bytes * one.count for one in mine)

    low, high = 0, LARGEST_BATCH  # crossed at high, not at low
    if not crossed(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if crossed(middle) else (middle, high)
    return high


def _tokens(asked: Setting, phase: str) -> tuple[int, int]:
    """Return new and cached tokens of each sequence."""
    return (1, asked.context_tokens) if phase == DECODE else (asked.prompt_tokens, 0)


def _logits(asked: Setting, phase: str) -> int:
    every = asked.all_logits and phase == PREFILL
    return asked.batch * (asked.prompt_tokens if every else 1)


def _narrowed(one: Operation, asked: Setting) -> Operation:
    """Give the matrices of layers the width of a quantized type."""
    if not asked.weights.quantized or one.role not in QUANTIZED_ROLES:
        return one
    return replace(one, bytes=one.bytes * asked.weights.bits // asked.wide.bits)
