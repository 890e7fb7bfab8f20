"""Turn the options of `predict` into a setting that makes sense, or say which one does not."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from whichwall.analyze.capacity import reaches
from whichwall.analyze.operations import Latent
from whichwall.analyze.predict_limits import Card, card_named, card_of_run
from whichwall.analyze.quantities import count
from whichwall.schemas.errors import UsageError
from whichwall.schemas.hardware import GB
from whichwall.schemas.model import Model, read_model
from whichwall.schemas.passes import DECODE, PREFILL
from whichwall.schemas.precision import Precision, precision
from whichwall.schemas.prediction import GIVEN, Limits
from whichwall.schemas.presets import PRESETS, preset_model

BOTH = "both"
MOST_TOKENS = 2**30  # of a context
LEAST, MOST = 0.001, 1e6  # GB/s, TFLOP/s or GB, of whatever is called a card
CONTEXT_TOKENS = 1024  # where none is stated, or the most that a learned table holds


@dataclass(frozen=True)
class Setting:
    """What a prediction is asked for."""

    model: Model
    limits: Limits
    weights: Precision
    wide: Precision  # what is not quantized, activations too
    cache: Precision
    batch: int = 1
    context_tokens: int = 1024
    prompt_tokens: int = 1024
    phases: tuple[str, ...] = (PREFILL, DECODE)
    ranks: int = 1
    latent: Latent = "expanded"
    all_logits: bool = False  # of a prefill: of each token, not of the last one alone


@dataclass(frozen=True)
class Options:
    """The options as a user gives them; None is not given."""

    model: str | None = None
    gpu: str | None = None
    ceilings: Path | None = None
    bandwidth_gbs: float | None = None
    tflops: float | None = None
    memory_gb: float | None = None
    link_gbs: float | None = None
    batch: int = 1
    context: int | None = None
    prompt_tokens: int | None = None
    phase: str = BOTH
    dtype: str | None = None
    kv_dtype: str | None = None
    tensor_parallel: int = 1
    latent: Latent | None = None
    logits: str = "last"
    chart: Path | None = None
    contexts: str | None = None  # of the chart's curves, comma-separated
    measured: Path | None = None  # a run whose points are drawn


def setting(options: Options) -> Setting:
    """Return the setting that options ask for.

    Raises:
        UsageError: options that contradict each other, the model or the card.
        InputError: a file or a run is not what was expected.
    """
    model, card = _model(options.model), _card(options)
    kept = _kept(model, card, options.dtype)
    wide = precision(card.wide()) if kept.quantized else kept
    cache = wide if options.kv_dtype is None else _cache(options.kv_dtype)
    context = _context(model) if options.context is None else options.context
    prompt = context if options.prompt_tokens is None else options.prompt_tokens
    phases = (PREFILL, DECODE) if options.phase == BOTH else (options.phase,)
    found = Setting(
        model=model,
        limits=_completed(card.limits(kept, wide), options),
        weights=kept,
        wide=wide,
        cache=cache,
        batch=options.batch,
        context_tokens=context,
        prompt_tokens=prompt,
        phases=phases,
        ranks=options.tensor_parallel,
        all_logits=options.logits == "all",
    )
    _check(found)
    if options.latent is None:
        return found
    if model.kv_lora_rank is None:
        raise UsageError(f"--latent {options.latent}: {model.name} has no latent attention")
    return replace(found, latent=options.latent)


def contexts(options: Options) -> list[int]:
    """Return the contexts that the chart's curves are asked for; none: it chooses.

    Raises:
        UsageError: no whole numbers, or no chart to draw on.
    """
    for name, value in (("--contexts", options.contexts), ("--measured", options.measured)):
        if value is not None and options.chart is None:
            raise UsageError(f"{name}: goes with --chart FILE, which is missing")
    if options.contexts is None:
        return []
    words = [word.strip() for word in options.contexts.split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) < 12 for word in words):
        raise UsageError(f"--contexts {options.contexts}: expected numbers, as in 1024,8192")
    found = sorted({int(word) for word in words})
    if found[-1] > MOST_TOKENS:
        raise UsageError(f"--contexts {found[-1]}: expected {count(MOST_TOKENS)} tokens at most")
    return found


def _model(named: str | None) -> Model:
    if named is None:
        raise UsageError(f"--model: give a preset ({', '.join(PRESETS)}) or a config.json")
    path = Path(named)
    if named.lower() in PRESETS or not (
        path.exists() or named.endswith(".json") or os.sep in named
    ):
        return preset_model(named)
    return read_model(path)


def _context(model: Model) -> int:
    return min(CONTEXT_TOKENS, (model.positions or CONTEXT_TOKENS + 1) - 1)


def _card(options: Options) -> Card:
    numbers = {"--bandwidth-gbs": options.bandwidth_gbs, "--tflops": options.tflops}
    given = {**numbers, "--memory-gb": options.memory_gb, "--link-gbs": options.link_gbs}
    for name, value in given.items():
        if value is not None and not LEAST <= value <= MOST:
            raise UsageError(f"{name} {value:g}: expected a number from {LEAST:g} to {MOST:,.0f}")
    ways = {
        "--gpu": options.gpu,
        "--ceilings": options.ceilings,
        "--bandwidth-gbs": options.bandwidth_gbs or options.tflops,
    }
    chosen = [name for name, value in ways.items() if value is not None]
    if len(chosen) != 1:
        what = f"{' and '.join(chosen)} say it twice" if chosen else "none is given"
        raise UsageError(
            f"the card: {what}; give one of --gpu NAME (--gpu list names them), --ceilings RUN, or "
            "--bandwidth-gbs N with --tflops N"
        )
    if options.gpu is not None:
        return card_named(options.gpu)
    if options.ceilings is not None:
        return card_of_run(options.ceilings)
    if options.bandwidth_gbs is None:
        raise UsageError("--tflops: goes with --bandwidth-gbs N, which is missing")
    return Card("a card", bandwidth_gbps=options.bandwidth_gbs, tflops=options.tflops)


def _kept(model: Model, card: Card, named: str | None) -> Precision:
    if named is not None:
        return precision(named)
    if model.quantization is not None:
        raise UsageError(
            f"{model.name}: its weights are quantized ({model.quantization}), so their width does "
            "not follow from the config; state --dtype fp8, int8, int4 or fp4"
        )
    return precision(model.dtype or card.wide(), f"{model.name}: dtype")


def _cache(named: str) -> Precision:
    found = precision(named, "--kv-dtype")
    if found.bits % 8:
        raise UsageError(f"--kv-dtype {named}: expected a type of whole bytes, as fp8 or int8")
    return found


def _completed(found: Limits, options: Options) -> Limits:
    """Add what was given beside the card."""
    found = msgspec.structs.replace(found, link_gbps=options.link_gbs)
    if options.memory_gb is None:
        return found
    return msgspec.structs.replace(
        found, memory_bytes=round(options.memory_gb * GB), memory_from=GIVEN
    )


def _check(asked: Setting) -> None:
    if PREFILL in asked.phases and asked.prompt_tokens < 1:
        raise UsageError("--prompt-tokens 0: a prefill has at least one token")
    most = {PREFILL: asked.prompt_tokens, DECODE: asked.context_tokens + 1}
    longest = max(most[phase] for phase in asked.phases)
    if not reaches(asked.model, longest):
        raise UsageError(
            f"{asked.model.name}: {count(longest)} tokens; its learned table has "
            f"{count(asked.model.positions)} positions, so give a shorter --context or "
            "--prompt-tokens"
        )
