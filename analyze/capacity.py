"""Say what memory a model and its conversations need, and how many of what length fit."""

from whichwall.schemas.model import Model
from whichwall.schemas.precision import QUANTIZED_ROLES, Precision
from whichwall.schemas.prediction import Fit, Memory
from whichwall.schemas.weights import Weight, cache_numbers, weights

# What engines fill by default: the rest is for activations, workspaces and the driver (vLLM's
# gpu_memory_utilization was 0.9 for years).
USABLE_SHARE = 0.9
# Lengths that fits are told for beside the one asked: a chat to a book.
LENGTHS = (1024, 8192, 32768, 131072)


def memory(
    model: Model,
    kept: Precision,
    wide_bits: int,
    cache_bytes: int,
    batch: int,
    context_tokens: int,
    card_bytes: int | None,
) -> Memory:
    """Return what one card holds of `model`, a rank's share of it.

    Args:
        model: what this rank holds.
        kept: the type of the weights; a quantized one is that of the layers' matrices.
        wide_bits: the width of all else.
        cache_bytes: of one number in the cache.
        batch: sequences at once.
        context_tokens: tokens of each.
        card_bytes: memory of the card, None where it is not known.
    """
    held = sum(_bits(w, kept, wide_bits) for w in weights(model) if not w.tied) // 8
    usable = None if card_bytes is None else int(card_bytes * USABLE_SHARE)
    room = None if usable is None else max(0, usable - held)
    entry = cache_numbers(model) * cache_bytes
    lengths = sorted({*LENGTHS, context_tokens})
    return Memory(
        weight_bytes=held,
        cache_bytes_per_token=model.layers * entry,
        asked_bytes=held + batch * conversation_bytes(model, entry, context_tokens),
        usable_bytes=usable,
        fits=[
            _fit(conversation_bytes(model, entry, tokens), tokens, room)
            for tokens in lengths
            if tokens and reaches(model, tokens)
        ],
        longest_context_tokens=None if room is None else _longest(model, entry, room // batch),
    )


def conversation_bytes(model: Model, entry_bytes: int, tokens: int) -> int:
    """Return the cache of one conversation; a sliding layer keeps no more than its window.

    `entry_bytes` are those of one token in one layer. The newest query of a window is not in it.
    """
    window = model.sliding_window
    slid = tokens if window is None else min(tokens, window - 1)
    full = model.layers - model.sliding_layers
    return entry_bytes * (full * tokens + model.sliding_layers * slid)


def _bits(weight: Weight, kept: Precision, wide_bits: int) -> int:
    narrow = kept.quantized and weight.role in QUANTIZED_ROLES
    return weight.numbers * weight.copies * weight.count * (kept.bits if narrow else wide_bits)


def _fit(of_one: int, tokens: int, room: int | None) -> Fit:
    fitting = None if room is None or not of_one else room // of_one
    return Fit(context_tokens=tokens, cache_bytes=of_one, conversations=fitting)


def reaches(model: Model, tokens: int) -> bool:
    """Tell whether a model can hold so many tokens: a learned table of positions ends."""
    return model.positions is None or tokens <= model.positions


def _longest(model: Model, entry_bytes: int, room: int) -> int | None:
    """Return the longest conversation that fits into `room` bytes; None: any length does."""
    full, tokens = model.layers - model.sliding_layers, room // (entry_bytes * model.layers)
    window = model.sliding_window
    if window is not None and model.sliding_layers and tokens >= window:
        if not full:
            tokens = model.positions or 0
            return tokens or None
        rest = room // entry_bytes - model.sliding_layers * (window - 1)
        tokens = rest // full
    return tokens if model.positions is None else min(tokens, model.positions)
