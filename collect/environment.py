"""Facts about the machine, by named fields: no variables, no paths, no host name."""

import platform

import torch

from whichwall.collect import nvml
from whichwall.collect.device import Device
from whichwall.collect.host import cpu_name, usable_cores
from whichwall.collect.packages import package_version
from whichwall.collect.smi_health import divided_card
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.manifest import Environment, Gpu


def read_environment() -> Environment:
    """Return the software and host; the version of CUPTI is the trace's to say."""
    driver = nvml.driver()
    return Environment(
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        cpu=cpu_name(),
        cpu_cores=usable_cores(),
        torch=str(torch.__version__),
        transformers=package_version("transformers"),
        cuda_runtime=torch.version.cuda or torch.version.hip,
        cuda_driver=driver.cuda if driver else None,
        driver=driver.version if driver else None,
    )


def read_gpu(device: Device) -> Gpu | None:
    """Return what torch and NVML know of the device's GPU; None on a CPU."""
    if not device.is_gpu:
        return None
    facts = torch.cuda.get_device_properties(device.torch)
    with nvml.open_gpu(device.uuid) as gpu:
        limit, mig = (gpu.power_limit_w(), gpu.mig()) if gpu else (None, None)
    return Gpu(
        name=facts.name,
        ordinal=device.torch.index,
        uuid=device.uuid,
        memory_bytes=facts.total_memory,
        multiprocessors=facts.multi_processor_count,
        compute_capability=f"{facts.major}.{facts.minor}",
        l2_cache_bytes=facts.L2_cache_size,
        memory_clock_khz=_positive(facts.memory_clock_rate),
        memory_bus_bits=_positive(facts.memory_bus_width),
        power_limit_w=limit,
        mig=mig,
    )


def _positive(value: int) -> int | None:
    """Return a fact that the driver answers with 0 when it does not know it."""
    return value if value > 0 else None


def find_sharing(device: Device, gpu: Gpu | None) -> list[Diagnostic]:
    """Return a warning if others use the GPU or it is one instance of a divided card."""
    found = []
    with nvml.open_gpu(device.uuid) as handle:
        processes = handle.processes() if handle else None
    if processes is not None and processes > 1:
        text = f"{processes - 1} other processes computed on this GPU: times and power are shared"
        found.append(Diagnostic("shared_gpu", "warning", processes - 1, text))
    if gpu is not None and gpu.mig:
        found.append(divided_card())
    return found
