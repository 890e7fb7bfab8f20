"""Ask NVML about one GPU, by UUID; what it cannot tell is None."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

MILLIWATTS = 1000


@dataclass(frozen=True)
class NvmlGpu:
    """One GPU as NVML knows it."""

    nvml: Any
    handle: Any

    def _ask(self, call: str, *arguments: object) -> Any:
        """Return what one NVML call says; None if this driver, card or container does not."""
        try:
            return getattr(self.nvml, call)(self.handle, *arguments)
        except (self.nvml.NVMLError, AttributeError):
            return None

    def energy_mj(self) -> int | None:
        """Return millijoules since the driver was loaded (Volta and later)."""
        return _whole(self._ask("nvmlDeviceGetTotalEnergyConsumption"))

    def sm_clock_mhz(self) -> float | None:
        """Return the present clock of the multiprocessors."""
        return _real(self._ask("nvmlDeviceGetClockInfo", self.nvml.NVML_CLOCK_SM))

    def temperature_c(self) -> float | None:
        """Return the present temperature of the GPU."""
        return _real(self._ask("nvmlDeviceGetTemperature", self.nvml.NVML_TEMPERATURE_GPU))

    def power_limit_w(self) -> float | None:
        """Return the limit in force, the smallest of all that apply."""
        limit = _real(self._ask("nvmlDeviceGetEnforcedPowerLimit"))
        return None if limit is None else limit / MILLIWATTS

    def mig(self) -> bool | None:
        """Tell whether the card is divided into instances."""
        modes = self._ask("nvmlDeviceGetMigMode")
        return None if modes is None else bool(modes[0])

    def processes(self) -> int | None:
        """Count the processes that compute on the GPU, this one included."""
        running = self._ask("nvmlDeviceGetComputeRunningProcesses")
        return None if running is None else len(running)


@dataclass(frozen=True)
class Driver:
    """Versions of the installed driver."""

    version: str | None
    cuda: str | None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _real(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


@contextmanager
def _library() -> Iterator[Any]:
    """Hold NVML open; None where there is no library or no driver."""
    try:
        import pynvml
    except ImportError:
        yield None
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


@contextmanager
def open_gpu(uuid: str | None) -> Iterator[NvmlGpu | None]:
    """Hold one GPU open; None without NVML, without a UUID, or if NVML does not know it."""
    if uuid is None:
        yield None
        return
    with _library() as nvml:
        if nvml is None:
            yield None
            return
        try:
            handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        except nvml.NVMLError:
            yield None
            return
        yield NvmlGpu(nvml, handle)


def driver() -> Driver | None:
    """Return the driver's versions; None without NVML."""
    with _library() as nvml:
        if nvml is None:
            return None

        def ask(call: Callable[[], object]) -> object:
            try:
                return call()
            except nvml.NVMLError:
                return None

        version = ask(nvml.nvmlSystemGetDriverVersion)
        cuda = ask(nvml.nvmlSystemGetCudaDriverVersion)
        return Driver(
            version if isinstance(version, str) else None,
            f"{cuda // 1000}.{cuda % 1000 // 10}" if isinstance(cuda, int) else None,
        )
