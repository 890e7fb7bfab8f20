"""Measure a kernel launch without the framework: the driver's own call, from Python.

An empty kernel is launched back to back by `cuLaunchKernel`, reached with ctypes: no operator, no
dispatcher, no runtime library, no argument. Python's way into a C function is part of what is
timed, so the same call into a function that does nothing is timed too, and stated beside the
limit; it is not subtracted, since where the GPU is slower than the host it costs nothing.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from whichwall.collect.ceilings import MICROSECONDS, OP_REPEATS, OPS, US_PER_S, CeilingLog
from whichwall.collect.device import Device
from whichwall.collect.spread import spread
from whichwall.collect.stopwatch import Stopwatch
from whichwall.schemas.ceilings import BARE_LAUNCH

DRIVER = "libcuda.so.1"
SUCCESS = 0
KERNEL = b"whichwall_nothing"
# The driver compiles this for the card at hand. Code for Turing runs on everything later, and
# what is older is no longer known to new drivers.
NEWEST_TARGET = (7, 5)
PTX = """
.version 6.3
.target sm_{}{}
.address_size 64
.visible .entry whichwall_nothing() {{ ret; }}
"""

# Function, grid, block, shared memory, stream, arguments, further options.
SIGNATURE: list[Any] = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]

Launch = Callable[[], object]


def measure_bare_launch(log: CeilingLog) -> None:
    """Add the cost of a bare launch to the limits; nothing where the driver cannot be reached."""
    with bare_launch(log.device) as launch:
        if launch is None:
            return
        call_us = spread(_costs_us(log.stopwatch(), empty_call())).median
        watch = log.stopwatch()
        costs = _costs_us(watch, launch)
        shape = f"{OPS} empty kernels by cuLaunchKernel, {call_us:.2f} us of Python's call in each"
        log.add(BARE_LAUNCH, MICROSECONDS, costs, watch, shape)


def _costs_us(watch: Stopwatch, call: Launch) -> list[float]:
    def work() -> None:
        for _ in range(OPS):
            call()

    return [t / OPS * US_PER_S for t in watch.host_seconds(work, OP_REPEATS)]


def empty_call() -> Launch:
    """Return a call of the shape of a launch into a C function that does nothing to speak of."""
    address = ctypes.cast(ctypes.CDLL(None).abs, ctypes.c_void_p).value
    assert address is not None
    function = ctypes.CFUNCTYPE(ctypes.c_int, *SIGNATURE)(address)
    return _bound(function, 0, 0)


def _bound(function: Callable[..., int], kernel: int, stream: int) -> Launch:
    """Return a call with everything converted that can be converted once."""
    one, none, null = ctypes.c_uint(1), ctypes.c_uint(0), ctypes.c_void_p(None)
    target, queue = ctypes.c_void_p(kernel), ctypes.c_void_p(stream)

    def call() -> int:
        return function(target, one, one, one, one, one, one, none, queue, null, null)

    return call


@contextmanager
def bare_launch(device: Device) -> Iterator[Launch | None]:
    """Hold an empty kernel loaded; None without NVIDIA's driver, or where it refuses the kernel."""
    driver = _driver() if device.is_gpu and torch.version.hip is None else None
    if driver is None:
        yield None
        return
    # Torch's context is the one that the driver works in: it is current once torch has used it.
    device.synchronize()
    facts = torch.cuda.get_device_properties(device.torch)
    stream = torch.cuda.current_stream(device.torch).cuda_stream
    with loaded(driver, (facts.major, facts.minor)) as kernel:
        if kernel is None:
            yield None
            return
        launch = _bound(driver.cuLaunchKernel, kernel, stream)
        yield launch if launch() == SUCCESS else None
        device.synchronize()


def _driver() -> Any:
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:
        return None
    driver.cuLaunchKernel.argtypes = SIGNATURE
    return driver


@contextmanager
def loaded(driver: Any, capability: tuple[int, int]) -> Iterator[int | None]:
    """Hold the empty kernel loaded for a compute capability, and give its handle; None: refused."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    text = PTX.format(*min(capability, NEWEST_TARGET)).encode()
    if driver.cuModuleLoadData(ctypes.byref(module), ctypes.c_char_p(text)) != SUCCESS:
        yield None
        return
    try:
        found = driver.cuModuleGetFunction(ctypes.byref(function), module, ctypes.c_char_p(KERNEL))
        yield function.value if found == SUCCESS else None
    finally:
        driver.cuModuleUnload(module)
