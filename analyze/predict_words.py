"""Say what a prediction assumes, and what of a real pass it does not count."""

from whichwall.analyze.capacity import USABLE_SHARE
from whichwall.analyze.predict_setting import Setting
from whichwall.analyze.quantities import count, whole_percent, with_unit
from whichwall.schemas.ceilings import CACHE_MULTIPLE


def assumed(asked: Setting, weight_bytes: int) -> list[str]:
    """Return what the numbers rest on; `weight_bytes` are those on one card."""
    return [
        "each operation takes the longer of its two times, and one follows another",
        "each weight is read once a pass and each cached token once; activations stay on the chip",
        "attention computes the pairs that count: a causal mask's other half is skipped",
        *_model(asked),
        *_types(asked),
        *_cached(asked, weight_bytes),
        *_ranks(asked),
        *_memory(asked),
    ]


def not_counted(asked: Setting) -> list[str]:
    """Return what a real pass takes beside."""
    found = [
        "launches and the gaps between kernels, which take most of an eager decode step",
        "activations written and read between kernels",
        "arithmetic of norms, rotary, softmax and activation functions",
        "tokenizing, sampling and scheduling",
    ]
    if asked.weights.quantized:
        found.append("scales of quantized weights")
    if asked.ranks > 1 and asked.limits.link_gbps is None:
        found.append("the time of sending between ranks: no rate is known; state --link-gbs")
    return found


def _model(asked: Setting) -> list[str]:
    model, found = asked.model, []
    if model.assumed:
        found.append(
            f"{model.model_type} is not known here: read as a Llama of these dimensions, so the "
            "number of parameters may be off"
        )
    if model.tied:
        found.append("the head is the token table: stored once, and read once a pass, as the head")
    if model.sliding_layers:
        found.append(
            f"{count(model.sliding_layers)} of {count(model.layers)} layers attend to the last "
            f"{count(model.sliding_window)} tokens only, and keep no more"
        )
    if model.experts is not None:
        found.append(
            f"tokens choose their {model.experts_per_token} of {model.experts} experts evenly and "
            "independently; real ones choose fewer distinct ones"
        )
    if model.kv_lora_rank is not None:
        found.append(_latent(asked))
    if asked.all_logits:
        found.append("a prefill computes the logits of every token of the prompt")
    return found


def _latent(asked: Setting) -> str:
    if asked.latent == "absorbed":
        return "latent attention is absorbed: it works on the compressed cache, as engines decode"
    return (
        "latent attention is expanded: each pass builds keys and values of the whole context from "
        "the compressed cache, as transformers does"
    )


def _types(asked: Setting) -> list[str]:
    kept, wide, found = asked.weights, asked.wide, []
    if kept.quantized:
        found.append(
            f"matrices of layers in {kept.name} ({kept.bits} bits), all other weights in "
            f"{wide.name}"
        )
    rate = asked.limits.tflops_dtype
    if asked.limits.tflops is not None and rate not in (None, kept.name):
        found.append(f"arithmetic at the rate of {rate}")
    elif kept.quantized and asked.limits.tflops is not None:
        found.append(f"all arithmetic at the rate of {kept.name}, attention and head too")
    return found


def _cached(asked: Setting, weight_bytes: int) -> list[str]:
    if weight_bytes >= CACHE_MULTIPLE * (asked.limits.l2_bytes or 0):
        return []
    return [
        "weights come from memory at each pass: at under four times the last-level cache they "
        "need not, so this is no floor"
    ]


def _ranks(asked: Setting) -> list[str]:
    if asked.ranks == 1:
        return []
    found = [
        f"each of {asked.ranks} ranks has an equal part of the heads, of the inner widths (each "
        "expert's too) and of the vocabulary, and all of norms and router; numbers are of one rank"
    ]
    model = asked.model
    if model.kv_lora_rank is not None:
        found.append("the latent cache is on every rank whole")
    elif model.kv_heads < asked.ranks:
        found.append(
            f"{model.kv_heads} key-value heads are fewer than ranks: each rank holds a whole one"
        )
    return found


def _memory(asked: Setting) -> list[str]:
    if asked.limits.memory_bytes is None:
        return ["the card's memory is not known, so nor is what fits; state --memory-gb"]
    card = _gb(asked.limits.memory_bytes)
    return [f"weights and caches fill {whole_percent(USABLE_SHARE)} of {card}, as engines have it"]


def _gb(size: int) -> str:
    return with_unit(size / 1e9, "GB")
