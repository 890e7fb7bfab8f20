"""Measured limits beside the datasheet, sustained ones beside a burst."""

import msgspec
import pytest

from tests.experiment_runs import limit
from tests.frames import Row, table
from tests.golden import GPU
from whichwall.analyze.reached import reached
from whichwall.schemas.ceilings import MATMUL, READ, READ_SUSTAINED, ROUND_TRIP, Ceilings
from whichwall.schemas.experiments import Reached
from whichwall.schemas.manifest import Gpu


def found(*rows: Row, gpu: Gpu = GPU) -> list[Reached]:
    return reached(table(Ceilings, *rows), [gpu])


def test_a_limit_is_a_share_of_what_the_datasheet_prints() -> None:
    read, matmul = found(limit(READ, 4080.0, "GB/s"), limit(MATMUL, 791.2, "TFLOP/s", "bfloat16"))

    assert (read.datasheet, read.share) == (4800.0, 0.85)
    assert matmul.datasheet == 989.0
    assert matmul.share == pytest.approx(0.8)


def test_a_sustained_limit_is_a_share_of_its_burst() -> None:
    burst, long = found(limit(READ, 4000.0, "GB/s"), limit(READ_SUSTAINED, 3000.0, "GB/s"))

    assert (burst.sustained_of, long.sustained_of, long.share) == (None, 0.75, 0.625)


def test_what_no_datasheet_prints_has_no_share() -> None:
    launch, odd = found(limit(ROUND_TRIP, 9.0, "us"), limit(MATMUL, 900.0, "TOP/s", "int8"))

    assert (launch.datasheet, odd.datasheet) == (None, None)


def test_a_slice_of_a_gpu_is_compared_with_no_datasheet() -> None:
    (read,) = found(limit(READ, 500.0, "GB/s"), gpu=msgspec.structs.replace(GPU, mig=True))

    assert read.share is None
