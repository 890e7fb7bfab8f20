import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.frames import BASE_NS, Row, gpu_event, launch_event, native, trace_text
from whichwall.collect.importer import import_run
from whichwall.collect.kineto import source
from whichwall.collect.kineto.metadata import find_base, peek_rank, read_metadata
from whichwall.collect.kineto.source import Source
from whichwall.schemas.manifest import Gpu, read_manifest
from whichwall.schemas.run import RUN_TABLES, open_run

EVENTS = [launch_event("1.000", "2.000", 1), gpu_event("gemm", "4.000", "2.500", 1)]
DISTRIBUTED = {"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": [{"ranks": [0, 1]}]}


def on_demand(**metadata: object) -> bytes:
    """Return a trace with its metadata behind the events, as on-demand tracing writes it."""
    return json.dumps({"schemaVersion": 1, "traceEvents": EVENTS, **metadata}, indent=2).encode()


def test_the_base_is_found_wherever_a_block_ends() -> None:
    text = on_demand(baseTimeNanoseconds=BASE_NS)
    for cut in range(text.index(b'"baseTime') - 2, len(text)):
        assert find_base(iter([text[:cut], text[cut:]])) == BASE_NS


@pytest.mark.parametrize(
    "written", ["", "17514", "1e18", "1.75", "-5", "null", "9999999999999999999", "1" * 25]
)
def test_a_base_that_is_no_whole_time_of_64_bits_is_unknown(written: str) -> None:
    # Cut off, the first two have no end: half a number is not the number.
    end = b"" if written in ("", "17514") else b",\n"
    text = b'"baseTimeNanoseconds": ' + written.encode() + end
    assert find_base(iter([text])) is None
    assert read_metadata(text).base_ns is None


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("behind", [False, True])
def test_the_rank_is_read_before_and_behind_the_events(
    tmp_path: Path, packed: bool, behind: bool
) -> None:
    text = on_demand(distributedInfo=DISTRIBUTED) if behind else trace_text(
        EVENTS, distributedInfo=DISTRIBUTED
    )  # fmt: skip
    path = tmp_path / "t.json"
    path.write_bytes(gzip.compress(text) if packed else text)
    assert peek_rank(path) == 3


def long_trace(*, at_end: bool, microseconds: str = "1.000", **metadata: object) -> bytes:
    """Return a trace of several blocks, its metadata before or behind the events."""
    rows = [gpu_event("gemm", microseconds, "2.500", 1)] * 999
    rest = "".join(f", {json.dumps(k)}: {json.dumps(v)}" for k, v in metadata.items())
    before, behind = ("", rest) if at_end else (rest, "")
    events = ",".join(map(native, rows))
    return f'{{"schemaVersion": 1{before}, "traceEvents": [{events}]{behind}}}'.encode()


@pytest.fixture
def inflated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the lengths of what is inflated from here on, in blocks that are small."""
    monkeypatch.setattr(source, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(source, "PIECE_BYTES", 1000)
    found: list[int] = []
    pieces = Source._inflate

    def noted(self: Source, file: BinaryIO) -> Iterator[bytes]:
        for piece in pieces(self, file):
            found.append(len(piece))
            yield piece

    monkeypatch.setattr(Source, "_inflate", noted)
    return found


ONE_BLOCK = 4096 + 1000


@pytest.mark.parametrize(
    ("at_end", "microseconds", "metadata"),
    [
        (True, "1790000000000000.000", {}),
        (True, "1790000000000000.000", {"baseTimeNanoseconds": BASE_NS}),
        (True, "1790000000000000.000", {"distributedInfo": {"rank": 0}}),
        (False, "1.000", {"baseTimeNanoseconds": BASE_NS, "distributedInfo": {"rank": 3}}),
        (False, "1.000", {"baseTimeNanoseconds": BASE_NS}),
    ],
)
def test_a_gz_file_is_inflated_once_but_for_its_first_block(
    tmp_path: Path, inflated: list[int], at_end: bool, microseconds: str, metadata: Row
) -> None:
    text = long_trace(at_end=at_end, microseconds=microseconds, **metadata)
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(text))
    import_run([tmp_path / "t.json.gz"], tmp_path / "run")
    assert len(text) <= sum(inflated) <= len(text) + ONE_BLOCK


@pytest.mark.parametrize("microseconds", ["1.000", "1790000000000000.000"])
@pytest.mark.parametrize("named", ["t", "t_rank5"])
def test_what_a_gz_file_states_at_its_end_is_true_of_every_row(
    tmp_path: Path, inflated: list[int], named: str, microseconds: str
) -> None:
    text = long_trace(
        at_end=True, microseconds=microseconds,
        baseTimeNanoseconds=BASE_NS, distributedInfo=DISTRIBUTED,
    )  # fmt: skip
    plain, packed = tmp_path / "plain.json", tmp_path / f"{named}.json.gz"
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text))
    expected, found = (open_run(import_run([p], tmp_path / p.name[:5])) for p in (plain, packed))
    assert found.manifest.ranks == expected.manifest.ranks
    assert (found.manifest.ranks[0].rank, found.manifest.ranks[0].base_ns) == (3, BASE_NS)
    assert list(found.manifest.files) == list(expected.manifest.files)
    assert_frame_equal(found.kernels.collect(), expected.kernels.collect())
    assert inflated


def test_facts_are_read_by_name_and_a_broken_one_costs_only_itself() -> None:
    gpus = [{"id": 1, "name": "NVIDIA H200", "totalGlobalMem": 150_000_000_000, "numSms": 132,
             "computeMajor": 9, "computeMinor": 0}]  # fmt: skip
    text = trace_text(
        EVENTS, deviceProperties=gpus, cuda_runtime_version=12090, distributedInfo={"rank": 2}
    )
    found = read_metadata(text)
    gpu = Gpu(
        name="NVIDIA H200", ordinal=1, memory_bytes=150_000_000_000, multiprocessors=132,
        compute_capability="9.0",
    )  # fmt: skip
    assert (found.base_ns, found.rank, found.world_size) == (BASE_NS, 2, None)
    assert (found.gpus, found.cuda_runtime, found.distributed) == ([gpu], "12090", True)
    broken = read_metadata(text.replace(b'"numSms": 132', b'"numSms": '))
    assert (broken.gpus, broken.base_ns, broken.rank) == ([], BASE_NS, 2)


def test_nothing_unnamed_is_carried_over(tmp_path: Path) -> None:
    secrets = ["hf_token_abc", "build-host-17", "/home/someone"]
    text = trace_text(
        EVENTS,
        metadata={"environment": {"TOKEN": secrets[0]}},
        host_name=secrets[1],
        worker=f"{secrets[2]}/run",
    ).replace(b'"t.json"', b'"/home/someone/t.json"')
    path = tmp_path / "trace.json"
    path.write_bytes(text)
    run = open_run(import_run([path], tmp_path / "run"))
    written = (run.path / "run.json").read_text()
    for table in RUN_TABLES:
        written += run.scan(table).collect().select(pl.all().cast(pl.String)).write_csv()
    assert [secret for secret in secrets if secret in written] == []
    assert "gemm" in written
    assert str(tmp_path) not in written


def test_a_run_of_two_files_takes_each_rank_from_its_own_file(tmp_path: Path) -> None:
    files = []
    for rank in (5, 2):
        path = tmp_path / f"trace{rank}.json.gz"
        path.write_bytes(gzip.compress(on_demand(distributedInfo={"rank": rank, "world_size": 8})))
        files.append(path)
    manifest = read_manifest(import_run(files, tmp_path / "run"))
    assert [(one.rank, one.world_size) for one in manifest.ranks] == [(2, 8), (5, 8)]
    # Without a base in either file the origin is unknown, and each says so.
    assert [d.code for d in manifest.diagnostics] == ["unknown_time_origin"] * 2
