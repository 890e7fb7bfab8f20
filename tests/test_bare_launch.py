"""A launch without the framework: what is asked of the driver, and what its refusal leaves."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from whichwall.collect import bare_launch
from whichwall.collect.bare_launch import empty_call, loaded, measure_bare_launch
from whichwall.collect.ceilings import CeilingLog
from whichwall.collect.device import Device, choose_device
from whichwall.schemas.ceilings import Ceilings

REFUSED = 218  # CUDA_ERROR_INVALID_PTX


class Driver:
    """A driver that notes what it is asked, and hands out one kernel."""

    KERNEL = 0x1234

    def __init__(self, *, load: int = 0) -> None:
        self.load = load
        self.asked: list[str] = []
        self.text = b""

    def cuModuleLoadData(self, module: Any, text: ctypes.c_char_p) -> int:  # noqa: N802
        self.asked.append("load")
        self.text = text.value or b""
        return self.load

    def cuModuleGetFunction(self, function: Any, module: Any, name: Any) -> int:  # noqa: N802
        self.asked.append("find")
        function._obj.value = self.KERNEL
        return 0

    def cuModuleUnload(self, module: Any) -> int:  # noqa: N802
        self.asked.append("unload")
        return 0


@pytest.mark.parametrize(
    ("capability", "target"), [((9, 0), b"sm_75"), ((7, 5), b"sm_75"), ((7, 0), b"sm_70")]
)
def test_the_kernel_is_written_for_no_newer_card_than_every_driver_knows(
    capability: tuple[int, int], target: bytes
) -> None:
    driver = Driver()

    with loaded(driver, capability):
        pass

    assert b".target " + target in driver.text


def test_a_loaded_kernel_is_unloaded_after_use() -> None:
    driver = Driver()

    with loaded(driver, (9, 0)) as kernel:
        assert kernel == Driver.KERNEL
        assert driver.asked == ["load", "find"]

    assert driver.asked == ["load", "find", "unload"]


def test_a_refused_kernel_is_none_and_is_not_unloaded() -> None:
    driver = Driver(load=REFUSED)

    with loaded(driver, (9, 0)) as kernel:
        assert kernel is None

    assert driver.asked == ["load"]


def test_a_cpu_has_no_bare_launch() -> None:
    log = CeilingLog(choose_device("cpu"))

    measure_bare_launch(log)

    assert log.rows == []


def test_the_call_that_stands_for_the_way_into_c_does_nothing() -> None:
    assert empty_call()() == 0


def test_the_limit_states_what_the_call_from_python_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def stand_in(_device: Device) -> Iterator[bare_launch.Launch]:
        yield empty_call()

    monkeypatch.setattr(bare_launch, "bare_launch", stand_in)
    log = CeilingLog(choose_device("cpu"))

    measure_bare_launch(log)

    (row,) = log.rows
    assert (row[Ceilings.name], row[Ceilings.unit]) == ("bare_launch", "us")
    assert str(row[Ceilings.shape]).startswith("1000 empty kernels by cuLaunchKernel, ")
    assert str(row[Ceilings.shape]).endswith(" us of Python's call in each")
