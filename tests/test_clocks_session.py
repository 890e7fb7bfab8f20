"""The same passes on a rested card and on a worked one: what comes when, on the CPU."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from whichwall.collect import ceilings, clocks_session, loads
from whichwall.collect.clocks_session import both_sides
from whichwall.collect.collect import collect
from whichwall.collect.device import Device, choose_device
from whichwall.collect.options import CollectOptions
from whichwall.collect.passes import PassLog
from whichwall.collect.progress import Reporter, reporting
from whichwall.collect.sampler import Samples
from whichwall.schemas.folder import file_name
from whichwall.schemas.manifest import read_manifest
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import Points


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten every stage to what tests can wait for."""
    monkeypatch.setattr(clocks_session, "QUICK_REST_S", 0.0)
    monkeypatch.setattr(clocks_session, "QUICK_WORK_S", 0.01)
    monkeypatch.setattr(loads, "PRODUCTS_S", 0.0)
    monkeypatch.setattr(ceilings, "CPU_SIZES", (64, 96))
    monkeypatch.setattr(ceilings, "MATMUL_S", 0.0)


def stages(run: Path) -> list[tuple[int, str, str]]:
    """Return point, stage and phase of the passes in order of time, each change once."""
    rows = pq.read_table(run / file_name(Passes)).sort_by(Passes.start_ns).to_pylist()
    found = [(row[Passes.point], row[Passes.stage], row[Passes.phase]) for row in rows]
    return [change for change, _ in groupby(found)]


def labels(run: Path) -> list[tuple[int, str]]:
    rows = pq.read_table(run / file_name(Points)).to_pylist()
    return [(row[Points.point], row[Points.label]) for row in rows]


@pytest.mark.usefixtures("quick")
def test_decode_steps_are_timed_before_and_after_requests_without_a_pause(tmp_path: Path) -> None:
    asked = CollectOptions(
        mode="clocks", model="tiny", device="cpu", prompt_tokens=8, new_tokens=8, quick=True,
        out=tmp_path / "run",
    )  # fmt: skip

    run = collect(asked)

    kept_busy = [(1, "warmup", "prefill"), (1, "warmup", "decode")]
    found = stages(run)
    assert labels(run) == [(0, "rested"), (1, "hot")]
    assert found[:5] == [
        (0, "warmup", "prefill"),
        (0, "warmup", "decode"),
        (0, "warmup", "prefill"),
        (0, "warmup", "decode"),
        (0, "clean", "decode"),
    ]
    assert found[5:-1] == kept_busy * (len(found[5:-1]) // 2)
    assert found[-1] == (1, "clean", "decode")
    assert read_manifest(run).command == (
        "whichwall collect --mode clocks --model tiny --weights dummy --engine eager "
        "--attention auto --dtype float32 --prompt-tokens 8 --new-tokens 8 --batch-size 1 "
        "--device cpu --sample-interval-ms 100 --quick"
    )


@pytest.mark.usefixtures("quick")
def test_matrix_products_need_no_model(tmp_path: Path) -> None:
    run = collect(
        CollectOptions(mode="clocks", work="matmul", device="cpu", quick=True, out=tmp_path / "run")
    )

    assert labels(run) == [(0, "rested"), (1, "hot")]
    assert stages(run) == [
        (0, "warmup", "matmul"),
        (0, "clean", "matmul"),
        (1, "warmup", "matmul"),
        (1, "clean", "matmul"),
    ]
    assert read_manifest(run).model is None
    (said,) = {row[Points.reason] for row in pq.read_table(run / file_name(Points)).to_pylist()}
    assert said in {f"matrix products in a pass: 1, each {n} x {n} x {n}" for n in (64, 96)}


def test_samples_run_from_before_the_rest_until_after_the_last_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    happened: list[str] = []

    class Sampling:
        def __init__(self, uuid: str | None, interval_ms: int) -> None:
            happened.append(f"sample each {interval_ms} ms")

        def __enter__(self) -> "Sampling":
            return self

        def __exit__(self, *_: object) -> None: ...

        def start(self) -> None:
            happened.append("start")

        def finish(self) -> Samples:
            happened.append("finish")
            return Samples([], None, [])

    class Working:
        phase = "decode"
        logs: Sequence[PassLog] = ()

        def keep_busy(self, at: int, seconds: float, reporter: Reporter) -> None:
            happened.append(f"work {seconds:g} s for point {at}")

        def few(self, at: int) -> None:
            happened.append(f"few passes of point {at}")

    def resting(device: Device, seconds: float, reporter: Reporter) -> None:
        happened.append(f"rest {seconds:g} s")

    monkeypatch.setattr(clocks_session, "Sampler", Sampling)
    monkeypatch.setattr(clocks_session, "rest", resting)
    asked = CollectOptions(mode="clocks", sample_interval_ms=50)

    with reporting() as reporter:
        both_sides(Working(), choose_device("cpu"), asked, reporter)

    assert happened == [
        "sample each 50 ms",
        "start",
        "rest 45 s",
        "few passes of point 0",
        "work 60 s for point 1",
        "few passes of point 1",
        "finish",
    ]
