"""What is run, with every default resolved: device, model, type, lengths, destination."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime

import torch

from whichwall.collect.device import Device, choose_device, choose_dtype
from whichwall.collect.models import Built, Source, find_source
from whichwall.collect.options import (
    DEFAULT_MODEL,
    DEFAULT_PROMPT,
    PREFILL,
    CollectOptions,
    default_out,
)
from whichwall.collect.point import Point
from whichwall.collect.workload import FULL, QUICK, Plan
from whichwall.collect.writing import Origin
from whichwall.schemas.errors import UsageError
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.model import Model


@dataclass(frozen=True)
class Request:
    """What is run, with every default resolved."""

    options: CollectOptions
    device: Device
    source: Source
    dtype: torch.dtype
    plan: Plan
    created_ns: int


def resolve(options: CollectOptions) -> Request:
    """Return what the options mean on this machine.

    Raises:
        UsageError: an unknown model.
        CollectError: no usable device.
    """
    created_ns = time.time_ns()
    device = choose_device(options.device)
    source = find_source(options.model or DEFAULT_MODEL[device.kind], options.weights)
    dtype = choose_dtype(options.dtype, device)
    return Request(options, device, source, dtype, QUICK if options.quick else FULL, created_ns)


def default_writer(request: Request) -> RunWriter:
    """Return a writer into traces/, to a folder named from mode, model, device and time."""
    utc = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    out = default_out(request.options.mode, request.source.name, request.device.name, utc)
    return RunWriter(out, overwrite=request.options.overwrite)


def origin(request: Request, model: Model, command: str) -> Origin:
    """Return how the run came to be, for its manifest."""
    return Origin(
        mode=request.options.mode,
        command=command,
        created_ns=request.created_ns,
        on_gpu=request.device.is_gpu,
        model=model,
        weights=request.source.weights,
    )


def single_point(request: Request, built: Built) -> Point:
    """Return the one point of a plain run: decode or prefill as asked for.

    Raises:
        UsageError: the model has learned positions, and fewer than the request needs.
    """
    options = request.options
    new = 1 if options.mode == PREFILL else options.new_tokens
    return Point(
        number=0,
        engine=options.engine,
        attention=built.attention,
        batch=options.batch_size,
        prompt_tokens=prompt_tokens(options.prompt_tokens, request.device, built.facts, new),
        new_tokens=new,
    )


def prompt_tokens(asked: int | None, device: Device, model: Model, new_tokens: int) -> int:
    """Return the prompt's length: as asked, else the default as far as positions reach."""
    wanted = asked or DEFAULT_PROMPT[device.kind]
    if model.positions is None:
        return wanted
    room = model.positions - new_tokens
    if room < 1 or (asked is not None and asked > room):
        raise UsageError(
            f"{model.name} has {model.positions} positions: a prompt of {wanted} and "
            f"{new_tokens} new tokens do not fit; lower --prompt-tokens or --new-tokens"
        )
    return min(wanted, room)
