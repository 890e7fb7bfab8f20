"""Limits over a stretch: how work is taken together, and which half counts."""

from collections.abc import Callable

import pytest
import torch

from whichwall.collect import ceilings, sustained
from whichwall.collect.ceilings import CeilingLog, measure_product
from whichwall.collect.device import choose_device
from whichwall.collect.products import products_of
from whichwall.collect.stopwatch import Stopwatch
from whichwall.collect.sustained import repeats_in, stretch, sustain_product, sustain_read
from whichwall.schemas.ceilings import Ceilings

CPU = choose_device("cpu")


class Slowing(Stopwatch):
    """A stopwatch of a card that slows: repeat n takes n times as long as one piece of work."""

    ONCE_S = 0.01

    def seconds(self, work: Callable[[], object], repeats: int) -> list[float]:
        return [self.ONCE_S * (n + 1) for n in range(repeats)]


class Log(CeilingLog):
    def stopwatch(self) -> Stopwatch:
        return Slowing(self.device, self._state)


def test_only_the_last_half_of_a_stretch_counts() -> None:
    _, times = stretch(Log(CPU), lambda: None, 0.3)

    # Pieces of 10 ms, five to a chunk, six chunks in 0.3 s.
    assert times == pytest.approx([0.01 * n / 5 for n in (4, 5, 6)])


@pytest.mark.parametrize(("seconds", "once", "times"), [(0.05, 0.01, 5), (0.05, 1.0, 1)])
def test_work_is_repeated_as_often_as_it_fits_and_once_at_least(
    seconds: float, once: float, times: int
) -> None:
    assert repeats_in(seconds, once) == times


def test_a_stretch_of_products_is_named_after_its_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "CPU_SIZES", (64, 96))
    monkeypatch.setattr(ceilings, "MATMUL_S", 0.0)
    log = CeilingLog(CPU)
    product = products_of(CPU, torch.float32)[0]
    size = measure_product(log, product)
    assert size is not None

    sustain_product(log, product, size, 0.01)

    burst, long = log.rows
    assert (burst[Ceilings.name], long[Ceilings.name]) == ("matmul", "matmul_sustained")
    assert (long[Ceilings.dtype], long[Ceilings.unit]) == ("float32", "TFLOP/s")
    assert long[Ceilings.shape] == f"{burst[Ceilings.shape]}, last half of 0.01 s back to back"


def test_reading_is_not_sustained_where_its_burst_had_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sustained, "buffer_bytes", lambda _device: None)
    log = CeilingLog(CPU)

    sustain_read(log, 0.01)

    assert log.rows == []
