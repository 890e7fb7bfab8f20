"""A run of limits alone, on the CPU."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from whichwall.collect import ceilings, ceilings_session
from whichwall.collect.collect import collect
from whichwall.collect.options import CollectOptions
from whichwall.schemas.ceilings import Ceilings
from whichwall.schemas.folder import file_name
from whichwall.schemas.manifest import FILE, read_manifest
from whichwall.schemas.points import Points


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Collect the limits of small buffers and matrices, once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ceilings, "CPU_BUFFER_BYTES", 8 << 20)
        patch.setattr(ceilings, "CPU_SIZES", (64, 96))
        # Which types this machine emulates is its own affair.
        patch.setattr(ceilings, "_is_emulated", lambda *_: False)
        patch.setattr(ceilings, "MATMUL_S", 0.0)
        patch.setattr(ceilings_session, "QUICK_SUSTAINED_S", 0.01)
        out = tmp_path_factory.mktemp("runs") / "ceilings"
        return collect(CollectOptions(mode="ceilings", device="cpu", quick=True, out=out))


def test_bursts_come_before_stretches_and_cool_limits_before_hot_ones(run: Path) -> None:
    table = pq.read_table(run / file_name(Ceilings))

    assert list(
        zip(table[Ceilings.name].to_pylist(), table[Ceilings.dtype].to_pylist(), strict=True)
    ) == [
        ("read", "float32"),
        ("copy", "float32"),
        ("eager_op", "float32"),
        ("matmul", "float32"),
        ("matmul", "bfloat16"),
        ("matmul", "int8"),
        ("read_sustained", "float32"),
        ("matmul_sustained", "float32"),
    ]
    starts = table[Ceilings.start_ns].to_numpy().tolist()
    assert starts == sorted(starts)


def test_a_run_of_limits_has_no_model_and_no_trace(run: Path) -> None:
    manifest = read_manifest(run)

    assert (manifest.mode, manifest.model, manifest.weights) == ("ceilings", None, None)
    assert (manifest.ranks, manifest.profiler) == ([], None)
    assert sorted(path.name for path in run.iterdir()) == sorted(
        ["ceilings.parquet", "points.parquet", FILE]
    )


def test_its_one_point_says_the_type_that_floors_would_be_of(run: Path) -> None:
    (point,) = pq.read_table(run / file_name(Points)).to_pylist()

    assert {name: value for name, value in point.items() if value is not None} == {
        Points.point: 0,
        Points.dtype: "float32",
        Points.outcome: "done",
    }


def test_what_needs_a_gpu_is_said(run: Path) -> None:
    assert [d.code for d in read_manifest(run).diagnostics] == ["samples_missing"]
