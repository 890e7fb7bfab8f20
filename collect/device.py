"""Where the model runs: pick a device that this torch can use, or say why it cannot."""

import re
import warnings
from dataclasses import dataclass

import torch

from whichwall.collect.options import DTYPES
from whichwall.schemas.errors import CollectError

# Tensor cores take bfloat16 from Ampere on; before, it is emulated and measures the emulation.
BFLOAT16_CAPABILITY = 8
CPU, CUDA = "cpu", "cuda"


@dataclass(frozen=True)
class Device:
    """A device with its identity."""

    torch: torch.device
    name: str
    uuid: str | None = None

    @property
    def is_gpu(self) -> bool:
        """Tell whether passes on it have GPU times and samples."""
        return self.torch.type != CPU

    @property
    def kind(self) -> str:
        """Return `cuda` or `cpu`, as --device takes it."""
        return self.torch.type

    def most_allocated(self) -> int | None:
        """Return the most bytes that tensors have held on it so far; None for a CPU."""
        return torch.cuda.max_memory_allocated(self.torch) if self.is_gpu else None

    def synchronize(self) -> None:
        """Wait until the device has done everything it was given."""
        if self.is_gpu:
            torch.cuda.synchronize(self.torch)


def choose_device(asked: str) -> Device:
    """Return the device for `auto`, `cuda` or `cpu`.

    `auto` takes the GPU if there is one; a GPU that is there and cannot be used is an error even
    then, since numbers of the CPU would answer another question.

    Raises:
        CollectError: no GPU though asked for, or one that this torch cannot use.
    """
    if asked == CPU:
        return Device(torch.device(CPU), CPU)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    if available:
        return _gpu(torch.cuda.current_device())
    why = str(said[0].message).splitlines()[0] if said else _why_no_gpu()
    if asked == "auto" and not said:
        return Device(torch.device(CPU), CPU)
    raise CollectError(f"no usable GPU: {why}; mend that, or collect on the CPU with --device cpu")


def device_at(place: torch.device) -> Device:
    """Return the device that a tensor lies on.

    Raises:
        CollectError: it is neither a CPU nor a GPU that torch calls cuda, or cannot be used.
    """
    if place.type == CPU:
        return Device(torch.device(CPU), CPU)
    if place.type != CUDA:
        raise CollectError(f"device {place}: cannot be timed here; expected cuda or cpu")
    return _gpu(torch.cuda.current_device() if place.index is None else place.index)


def _why_no_gpu() -> str:
    if torch.version.cuda is None and torch.version.hip is None:
        return f"torch {torch.__version__} is built without CUDA"
    return f"torch {torch.__version__} finds no device (is the driver loaded?)"


def _gpu(ordinal: int) -> Device:
    device = torch.device("cuda", ordinal)
    facts = torch.cuda.get_device_properties(ordinal)
    if torch.version.hip is None:
        capability = (facts.major, facts.minor)
        if not runs_on(torch.cuda.get_arch_list(), capability):
            raise CollectError(
                f"{facts.name} has compute capability {facts.major}.{facts.minor}, torch "
                f"{torch.__version__} is built for {' '.join(torch.cuda.get_arch_list())}; "
                "install a torch built for this GPU, or use --device cpu"
            )
    try:
        torch.zeros(1, device=device).add_(1).item()
    except RuntimeError as error:
        raise CollectError(
            f"{facts.name}: cannot be used ({first_line(error)}); free or mend the GPU, "
            "or use --device cpu"
        ) from error
    return Device(device, facts.name, gpu_uuid(facts.uuid))


def gpu_uuid(uuid: object) -> str:
    """Return a UUID as nvidia-smi writes it; torch leaves the prefix out."""
    text = str(uuid)
    return text if text.startswith(("GPU-", "MIG-")) else f"GPU-{text}"


def runs_on(architectures: list[str], capability: tuple[int, int]) -> bool:
    """Tell whether code built for these architectures runs on a compute capability.

    Machine code (`sm_86`) runs on the same major version from its minor version on; code for one
    chip only (`sm_90a`) on just that; portable code (`compute_90`) on everything from there on.
    """
    for architecture in architectures:
        match = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", architecture)
        if match is None:
            continue
        kind, major, minor, suffix = match.groups()
        built = (int(major), int(minor))
        if built == capability or (kind == "compute" and not suffix and built <= capability):
            return True
        if suffix != "a" and built[0] == capability[0] and built <= capability:
            return True
    return False


def choose_dtype(asked: str, device: Device) -> torch.dtype:
    """Return the type of weights and activations: bfloat16 where native, else float16."""
    name = DTYPES[asked]
    if name != "auto":
        found: torch.dtype = getattr(torch, name)
        return found
    if not device.is_gpu:
        return torch.float32
    native = torch.version.hip is not None or (
        torch.cuda.get_device_properties(device.torch).major >= BFLOAT16_CAPABILITY
    )
    return torch.bfloat16 if native else torch.float16


def dtype_name(dtype: torch.dtype) -> str:
    """Return a type as torch names it, without the prefix: `bfloat16`."""
    return str(dtype).removeprefix("torch.")


def first_line(error: BaseException) -> str:
    """Return the first sentence of what a library said, without its advice."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
