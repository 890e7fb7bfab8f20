"""Build the model to run: from a preset, a config.json or the hub, with random or real weights."""

import difflib
import json
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from torch.nn.attention import SDPBackend, sdpa_kernel

from whichwall.collect.device import Device, dtype_name, first_line
from whichwall.collect.options import DUMMY, HUB, without_folders
from whichwall.schemas.errors import CollectError, UsageError
from whichwall.schemas.model import CONFIG_FILE, Model, model_from_config, read_model
from whichwall.schemas.presets import PRESETS, preset
from whichwall.schemas.weights import parameters

SEED = 20_260
# The spread that transformers itself initialises most models with: logits stay finite.
WEIGHT_STD = 0.02

BACKENDS = {
    "math": SDPBackend.MATH,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}
SDPA = "sdpa"
LOCAL = "local"
# What transformers raises over a model; the last two over damaged files of weights.
UNLOADABLE = (
    OSError,
    ValueError,
    KeyError,
    ImportError,
    AttributeError,
    TypeError,
    SafetensorError,
    UnpicklingError,
)


@dataclass(frozen=True)
class Source:
    """Where a model comes from, before anything is built."""

    name: str
    config: dict[str, Any] | None  # None: to be asked of the hub
    weights: str  # dummy, hub or local
    pretrained: str | None = None  # hub id or folder to load config or weights from


@dataclass(frozen=True)
class Built:
    """A model on its device, and what the manifest says of it."""

    module: Any
    facts: Model
    attention: str


def find_source(model: str, weights: str) -> Source:
    """Resolve --model and --weights: a preset's name, a path, or a hub id with a slash.

    Raises:
        UsageError: neither, with the names that come close; or weights that do not go with it.
        InputError: a path without a readable config.json.
    """
    if weights not in (DUMMY, HUB):
        folder = Path(weights).expanduser()
        if not folder.is_dir():
            raise UsageError(
                f"--weights {weights}: no such folder; expected dummy, hub, or a folder with "
                f"{CONFIG_FILE} and weights"
            )
        name = read_model(folder).name
        return Source(name, _read_config(folder), LOCAL, str(folder))
    path = Path(model).expanduser()
    if path.is_file() or (path / CONFIG_FILE).is_file():
        if weights == HUB:
            raise UsageError(f"--model {model} is a path: give it as --weights to load its weights")
        return Source(read_model(path).name, _read_config(path), DUMMY)
    if model.lower() in PRESETS:
        if weights == HUB:
            raise UsageError(
                f"--weights hub: {model} names dimensions only; give the hub's own id, "
                "such as Qwen/Qwen2.5-0.5B"
            )
        return Source(model.lower(), preset(model), DUMMY)
    if "/" in model and not model.startswith((".", "/", "~")):
        return Source(model, None, weights, model)
    if path.is_dir():
        raise UsageError(f"--model {model}: a folder without {CONFIG_FILE}; give one that has it")
    close = difflib.get_close_matches(model.lower(), PRESETS, n=3, cutoff=0.4) or list(PRESETS)
    raise UsageError(
        f"--model {model}: no such preset or path; did you mean {', '.join(close)}? "
        "A hub id is written owner/name"
    )


def _read_config(path: Path) -> dict[str, Any]:
    """Return a config that `read_model` has already found readable."""
    file = path / CONFIG_FILE if path.is_dir() else path
    config: dict[str, Any] = json.loads(file.read_bytes())
    return config


def build(source: Source, device: Device, dtype: torch.dtype, attention: str) -> Built:
    """Build the model on its device, without gradients.

    Raises:
        CollectError: transformers cannot build or load it, or the built model has another
            number of parameters than its dimensions say.
    """
    implementation = SDPA if attention in BACKENDS else attention
    options: dict[str, Any] = {"dtype": dtype}
    if implementation != "auto":
        options["attn_implementation"] = implementation
    with _explained(source.name):
        _silence()
        config = _transformers_config(source)
        if source.weights == DUMMY:
            module = _random(config, options, device)
        else:
            module = _pretrained(source, options, device)
    module.eval().requires_grad_(requires_grad=False)
    used = getattr(module.config, "_attn_implementation", None) or implementation
    facts = _facts(source, config, module, dtype)
    return Built(module, facts, attention if attention != "auto" else used)


def describe(source: Source, dtype: torch.dtype) -> tuple[Any, Model]:
    """Return a model's config, with the name of its class, and its dimensions; no weight is made.

    Raises:
        CollectError: transformers does not know it, or its dimensions say another number of
            parameters than it would have.
    """
    with _explained(source.name):
        _silence()
        config = _transformers_config(source)
        module = _unfilled(config, {"dtype": dtype}, torch.device("meta"))
    config.architectures = [type(module).__name__]
    facts = _facts(source, config, module, dtype)
    if facts.quantization is not None:
        facts = msgspec.structs.replace(facts, weight_bytes=None)
    return config, facts


def _silence() -> None:
    """Keep libraries off stderr: what fails in the end is said there, once, by us."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    # The hub's client announces each retry.
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)


def _transformers_config(source: Source) -> Any:
    from transformers import AutoConfig

    if source.pretrained is not None:
        return AutoConfig.from_pretrained(source.pretrained)
    assert source.config is not None
    return AutoConfig.for_model(**deepcopy(source.config))


def _random(config: Any, options: dict[str, Any], device: Device) -> Any:
    module = _unfilled(config, options, device.torch)
    _fill(module, device)
    return module


def _unfilled(config: Any, options: dict[str, Any], place: torch.device) -> Any:
    from transformers import AutoModelForCausalLM
    from transformers.initialization import no_init_weights

    with torch.device(place), no_init_weights():
        module = AutoModelForCausalLM.from_config(config, **options)  # type: ignore[no-untyped-call]
    # Without initialisation the head is not tied either: 630 million parameters for
    # qwen2.5-0.5b in place of 494, and as many bytes too many.
    module.tie_weights()
    return module


@torch.no_grad()
def _fill(module: Any, device: Device) -> None:
    """Fill every parameter in place: scales of norms with 1, all else at random."""
    generator = torch.Generator(device.torch).manual_seed(SEED)
    for name, parameter in module.named_parameters():
        if parameter.dim() == 1 and name.endswith("weight"):
            parameter.fill_(1.0)
        else:
            parameter.normal_(0.0, WEIGHT_STD, generator=generator)


def _pretrained(source: Source, options: dict[str, Any], device: Device) -> Any:
    from transformers import AutoModelForCausalLM

    assert source.pretrained is not None
    load: Any = AutoModelForCausalLM.from_pretrained  # its annotation knows no loading info
    module, loaded = load(source.pretrained, output_loading_info=True, **options)
    # transformers would fill these at random and only print a report.
    if missing := sorted(loaded["missing_keys"]):
        raise ValueError(f"{len(missing)} weights are not in its files, such as {missing[0]}")
    return module.to(device.torch)


def _facts(source: Source, config: Any, module: Any, dtype: torch.dtype) -> Model:
    """Return the dimensions with the counted parameters and bytes."""
    stated = source.config or {**config.to_dict(), "model_type": config.model_type}
    name = without_folders(source.name)
    model = model_from_config(stated, name, name)
    counted = sum(p.numel() for p in module.parameters())
    # An architecture that is not known here is read as a Llama, and its count may differ.
    if source.weights == DUMMY and not model.assumed and counted != parameters(model):
        raise CollectError(
            f"{name}: was built with {counted:,} parameters, its dimensions say "
            f"{parameters(model):,}; its bytes would be wrong, so nothing was collected"
        )
    size = sum(p.numel() * p.element_size() for p in module.parameters())
    return msgspec.structs.replace(
        model, dtype=dtype_name(dtype), parameters=counted, weight_bytes=size
    )


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn what transformers raises over a model into one line."""
    try:
        yield
    except UNLOADABLE as error:
        raise CollectError(
            f"{name}: cannot be built or loaded ({first_line(error)}); check the id or path, the "
            "network, and that this transformers knows the model"
        ) from error


@contextmanager
def switched_attention(module: Any, attention: str) -> Iterator[None]:
    """Run the block with an implementation or backend, whatever the model was built with.

    Raises:
        CollectError: the model does not have it.
    """
    before = module.config._attn_implementation
    wanted = SDPA if attention in BACKENDS else attention
    if wanted != before:
        _switch(module, wanted)
    try:
        with forced_attention(attention):
            yield
    finally:
        if wanted != before:
            _switch(module, before)


def _switch(module: Any, implementation: str) -> None:
    try:
        module.set_attn_implementation(implementation)
    except (ValueError, ImportError, AttributeError) as error:
        raise CollectError(
            f"the model cannot switch to attention {implementation} ({first_line(error)})"
        ) from error
    if module.config._attn_implementation != implementation:
        raise CollectError(f"the model does not switch to attention {implementation}")


def forced_attention(attention: str) -> AbstractContextManager[None]:
    """Return a block in which one backend of scaled dot product attention is the only one."""
    return sdpa_kernel(BACKENDS[attention]) if attention in BACKENDS else nullcontext()
