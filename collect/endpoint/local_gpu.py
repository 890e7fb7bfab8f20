"""Which GPU of this machine serves, if the server is on it: asked of nvidia-smi, without torch."""

import shutil
import subprocess
from dataclasses import dataclass

from whichwall.collect.endpoint.address import Address
from whichwall.collect.sampler import PROGRAM
from whichwall.schemas.manifest import Gpu

SMI_S = 15.0
MIB = 1 << 20
_GPUS = ("--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader,nounits")
_USERS = ("--query-compute-apps=gpu_uuid", "--format=csv,noheader")


@dataclass(frozen=True)
class LocalGpu:
    """A GPU to sample; none, and then why."""

    gpu: Gpu | None
    why_none: str | None = None


def find_gpu(address: Address) -> LocalGpu:
    """Return the GPU of a server on this machine: the only one, else the only one at work."""
    if not address.is_here:
        return LocalGpu(None, "the server is on another machine")
    program = shutil.which(PROGRAM)
    if program is None:
        return LocalGpu(None, f"no {PROGRAM} on the path")
    try:
        gpus = [gpu for line in _lines(program, _GPUS) if (gpu := _gpu(line)) is not None]
        used = set(_lines(program, _USERS)) if len(gpus) > 1 else set()
    except (OSError, subprocess.SubprocessError) as error:
        return LocalGpu(None, f"{PROGRAM} does not answer ({type(error).__name__})")
    chosen = gpus if len(gpus) == 1 else [gpu for gpu in gpus if gpu.uuid in used]
    if len(chosen) == 1:
        return LocalGpu(chosen[0])
    what = f"{len(chosen)} of {len(gpus)} GPUs are at work" if gpus else f"{PROGRAM} lists no GPU"
    return LocalGpu(None, f"{what}, and which one serves is not known" if gpus else what)


def _lines(program: str, words: tuple[str, ...]) -> list[str]:
    run = subprocess.run(
        [program, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=SMI_S, check=False
    )
    return [line.strip() for line in run.stdout.decode("utf-8", "replace").splitlines()]


def _gpu(line: str) -> Gpu | None:
    """Read a line of index, UUID, name and memory; None if it is something else."""
    index, _, rest = line.partition(", ")
    uuid, _, rest = rest.partition(", ")
    name, _, memory = rest.rpartition(", ")
    if not (index.isdecimal() and uuid.startswith("GPU-")):
        return None
    known = int(memory) * MIB if memory.isdecimal() else None
    return Gpu(name=name, ordinal=int(index), uuid=uuid, memory_bytes=known)
