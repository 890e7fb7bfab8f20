import json

import polars as pl
import pytest

from whichwall.analyze.charts.clocks import clocks
from whichwall.analyze.charts.theme import spec, svg
from whichwall.analyze.clocks import (
    MOST_BANDS,
    MOST_READINGS,
    one_gpu,
    origin_ns,
    readings,
    stage_bands,
)
from whichwall.schemas.chart import Readings, StageBands
from whichwall.schemas.passes import CLEAN, PROFILED, WARMUP, Passes
from whichwall.schemas.run import frame
from whichwall.schemas.samples import Samples

EPOCH = 1_796_000_000_000_000_000
S = 1_000_000_000


def sample(at_s: float, **values: object) -> dict[str, object]:
    return {"time_ns": EPOCH + int(at_s * S), "gpu_uuid": "GPU-1", **values}


def one_pass(stage: str, at_s: float, wall_s: float) -> dict[str, object]:
    return {"point": 0, "rank": 0, "stage": stage, "phase": "decode", "index": 0,
            "start_ns": EPOCH + int(at_s * S), "wall_ns": int(wall_s * S)}  # fmt: skip


def test_readings_count_seconds_from_the_first_sample_or_pass() -> None:
    samples = frame(Samples, [sample(0.5, sm_clock_mhz=1980.0), sample(0.6, sm_clock_mhz=1440.0)])
    passes = frame(Passes, [one_pass(CLEAN, 0.25, 1)])

    found = readings(samples, origin_ns(samples, passes))

    assert found.select(Readings.time_s, Readings.sm_clock_mhz).rows() == [
        (0.25, 1980.0),
        (pytest.approx(0.35), 1440.0),
    ]


def test_a_reason_other_than_idleness_marks_a_sample_as_slowed() -> None:
    reasons = [None, 0x0, 0x1, 0x100, 0x4, 0x1 | 0x20]
    samples = frame(
        Samples, [sample(place, throttle_reasons=bits) for place, bits in enumerate(reasons)]
    )

    found = readings(samples, EPOCH).get_column(Readings.slowed).to_list()

    assert found == [None, False, False, False, True, True]


def test_power_is_the_instant_one_where_it_can_be_read() -> None:
    both = frame(Samples, [sample(0, power_w=100.0, power_instant_w=300.0)])
    average = frame(Samples, [sample(0, power_w=100.0)])
    neither = frame(Samples, [sample(0)])

    found = [readings(one, EPOCH)[Readings.power_w][0] for one in (both, average, neither)]

    assert found == [300.0, 100.0, None]


def test_a_silence_of_the_sampler_breaks_the_line() -> None:
    samples = frame(Samples, [sample(at) for at in (0, 0.1, 0.2, 0.3, 5, 5.1)])

    assert readings(samples, EPOCH)[Readings.segment].to_list() == [0, 0, 0, 0, 1, 1]


def test_many_samples_are_averaged_to_what_a_plot_can_show() -> None:
    samples = frame(Samples, [sample(at / 10, sm_clock_mhz=1000.0 + at % 2) for at in range(9000)])

    found = readings(samples, EPOCH)

    assert found.height <= MOST_READINGS + 1
    assert found[Readings.sm_clock_mhz].mean() == pytest.approx(1000.5, abs=0.01)
    assert found[Readings.time_s].is_sorted()


def test_passes_of_one_stage_after_another_are_one_band() -> None:
    passes = frame(
        Passes,
        [
            one_pass(WARMUP, 0, 1),
            one_pass(CLEAN, 1, 0.5),
            one_pass(CLEAN, 2, 0.5),
            one_pass(PROFILED, 3, 1),
            one_pass(CLEAN, 5, 1),
        ],
    )

    assert stage_bands(passes, EPOCH).rows() == [
        (WARMUP, 0.0, 1.0),
        (CLEAN, 1.0, 2.5),
        (PROFILED, 3.0, 4.0),
        (CLEAN, 5.0, 6.0),
    ]


def test_a_long_sweep_keeps_a_bounded_number_of_bands() -> None:
    passes = frame(
        Passes, [one_pass((WARMUP, CLEAN)[place % 2], place, 0.5) for place in range(500)]
    )

    found = stage_bands(passes, EPOCH)

    assert found.height == MOST_BANDS
    assert found[StageBands.from_s].is_sorted()


def test_samples_of_another_gpu_are_left_out() -> None:
    samples = frame(Samples, [sample(0), {"time_ns": EPOCH, "gpu_uuid": "GPU-2"}])

    assert one_gpu(samples, "GPU-2")[Samples.gpu_uuid].to_list() == ["GPU-2"]
    assert one_gpu(samples, None)[Samples.gpu_uuid].to_list() == ["GPU-1"]
    assert one_gpu(samples.clear(), "GPU-2").is_empty()


def test_the_picture_shows_what_is_known_and_only_that() -> None:
    samples = frame(
        Samples,
        [sample(at / 10, sm_clock_mhz=1980.0, throttle_reasons=4 * (at > 10)) for at in range(20)],
    )
    bands = stage_bands(frame(Passes, [one_pass(CLEAN, 0.2, 1.5)]), EPOCH)
    chart = clocks(readings(samples, EPOCH), bands, "the title", ["the subtitle"])

    picture = svg(chart)

    for text in ("the title", "SM clock, MHz", "clean", "s since the first sample or pass"):
        assert f">{text}<" in picture
    assert "power, W" not in picture
    assert "temperature" not in picture
    json.dumps(spec(chart), allow_nan=False)


def test_the_power_limit_is_drawn_where_it_is_known() -> None:
    samples = frame(
        Samples,
        [sample(at / 10, power_instant_w=130.0, power_limit_w=700.0) for at in range(20)],
    )
    none = pl.DataFrame(schema=stage_bands(frame(Passes, []), EPOCH).schema)

    assert ">limit 700 W<" in svg(clocks(readings(samples, EPOCH), none, "the title", []))
