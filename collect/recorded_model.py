"""What a recorded run knows of the user's own model: what its config and its parameters say."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from whichwall.collect.device import dtype_name
from whichwall.collect.options import without_folders
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import InputError, UsageError
from whichwall.schemas.model import Model, model_from_config, read_model
from whichwall.schemas.weights import parameters


@dataclass(frozen=True)
class RecordedModel:
    """What is known of a model; all None of one that was not given."""

    facts: Model | None = None
    attention: str | None = None
    dtype: str | None = None
    place: torch.device | None = None

    def differences(self) -> list[Diagnostic]:
        """Return a warning if the module has other parameters than its config describes."""
        facts = self.facts
        if facts is None or facts.parameters is None or facts.assumed or facts.quantization:
            return []
        described = parameters(facts)
        if facts.parameters == described:
            return []
        text = (
            f"the module has {facts.parameters:,} parameters, its config describes "
            f"{described:,}; floors and roles go by the config"
        )
        return [Diagnostic("dimensions_differ", "warning", None, text)]


def describe(model: object, *, whole: bool) -> RecordedModel:
    """Return what can be told of a module, a config.json or nothing.

    Args:
        model: an nn.Module, a path to a config.json or to a folder with one, or None. A module
            without the config of a decoder is known by its device and type alone.
        whole: False where this process may hold only a part of the weights, which are then not
            counted.

    Raises:
        UsageError: something else.
        InputError: a path that leads to no decoder's config.
    """
    if model is None:
        return RecordedModel()
    if isinstance(model, str | Path):
        facts = read_model(Path(model).expanduser())
        return RecordedModel(facts, dtype=facts.dtype)
    if not isinstance(model, torch.nn.Module):
        raise UsageError(
            f"model: a {type(model).__name__}; expected an nn.Module or a path to its config.json"
        )
    return _describe_module(model, whole=whole)


def _describe_module(module: torch.nn.Module, *, whole: bool) -> RecordedModel:
    config = _config(module)
    first = next(module.parameters(), None)
    dtype = dtype_name(first.dtype) if first is not None else None
    facts = None if config is None else _dimensions(config)
    if facts is not None:
        facts = msgspec.structs.replace(facts, dtype=dtype or facts.dtype)
        if whole:
            facts = msgspec.structs.replace(
                facts,
                parameters=sum(p.numel() for p in module.parameters()),
                weight_bytes=sum(p.numel() * p.element_size() for p in module.parameters()),
            )
    return RecordedModel(
        facts=facts,
        attention=getattr(config, "_attn_implementation", None),
        dtype=dtype,
        place=None if first is None else first.device,
    )


def _config(module: torch.nn.Module) -> Any:
    """Return the transformers config of a module, or of the one that it wraps as DDP does."""
    inner: Any = module
    while not hasattr(inner, "config") and isinstance(
        getattr(inner, "module", None), torch.nn.Module
    ):
        inner = inner.module
    config = getattr(inner, "config", None)
    return config if hasattr(config, "to_dict") and hasattr(config, "model_type") else None


def _dimensions(config: Any) -> Model | None:
    """Return the dimensions; None if the config is not a plain decoder's."""
    name = without_folders(getattr(config, "name_or_path", None) or config.model_type)
    try:
        return model_from_config({**config.to_dict(), "model_type": config.model_type}, name, name)
    except InputError:
        return None
