import time

import pytest
import torch

from whichwall.collect import ceilings
from whichwall.collect.ceilings import CeilingLog, measure_matmul, measure_streams_and_launches
from whichwall.collect.device import choose_device
from whichwall.collect.products import plain_product
from whichwall.collect.spread import Spread, spread
from whichwall.schemas.ceilings import Ceilings


def test_a_cpu_has_the_limits_of_memory_of_arithmetic_and_of_one_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ceilings, "CPU_BUFFER_BYTES", 8 << 20)
    monkeypatch.setattr(ceilings, "CPU_SIZES", (128, 256))
    log = CeilingLog(choose_device("cpu"))
    before = time.time_ns()

    measure_streams_and_launches(log, torch.float32)
    measure_matmul(log, torch.float32)

    found = [(row[Ceilings.name], row[Ceilings.unit]) for row in log.rows]
    assert found == [("read", "GB/s"), ("copy", "GB/s"), ("eager_op", "us"), ("matmul", "TFLOP/s")]
    for row in log.rows:
        low, value, high = (
            float(str(row[name])) for name in (Ceilings.p10, Ceilings.value, Ceilings.p90)
        )
        assert 0 < low <= value <= high
        assert before <= int(str(row[Ceilings.start_ns])) <= time.time_ns()
        assert (row[Ceilings.gpu_uuid], row[Ceilings.sm_clock_mhz]) == (None, None)


def test_percentiles_are_interpolated() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(1.2, 2.0, 2.8, 3)
    assert spread([5.0]) == Spread(5.0, 5.0, 5.0, 1)
    assert spread([1.0, 3.0]).ratio == pytest.approx(2.8 / 1.2)


@pytest.mark.parametrize(("times", "emulated"), [(1, False), (4, False), (40, True)])
def test_a_host_is_not_held_up_by_a_type_that_it_emulates(
    times: int, emulated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = iter([times * 1e-3, 1e-3])
    monkeypatch.setattr(ceilings, "seconds_once", lambda *_: next(took))
    log = CeilingLog(choose_device("cpu"))
    assert ceilings._is_emulated(log, plain_product(torch.bfloat16)) is emulated
    assert not ceilings._is_emulated(log, plain_product(torch.float32))
