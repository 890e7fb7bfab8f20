import json
import re
from pathlib import Path

import pytest

from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import InputError, VersionError
from whichwall.schemas.manifest import (
    VERSION,
    EnergyFacts,
    Environment,
    FileFacts,
    Gpu,
    Manifest,
    ProfilerFacts,
    RankFacts,
    SamplerFacts,
    read_manifest,
)

SMALL = Manifest(
    schema_version=VERSION,
    id="7",
    name="run",
    created_ns=1_790_000_000_123_456_789,
    tool_version="0.1.0",
    command="whichwall collect --mode decode",
    mode="decode",
)


def put(run: Path, text: str | bytes) -> Path:
    """Write run.json into a folder."""
    run.mkdir(exist_ok=True)
    (run / "run.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    return run


def test_a_manifest_reads_back_as_it_was_written(tmp_path: Path) -> None:
    whole = Manifest(
        schema_version=VERSION,
        id="7",
        name="run",
        created_ns=1_790_000_000_123_456_789,
        tool_version="0.1.0",
        command="whichwall import a.json",
        mode="import",
        weights="dummy",
        ranks=[RankFacts(0, "kineto", "epoch", 1_790_000_000_000_000_000, 1, has_shapes=True)],
        gpus=[Gpu("NVIDIA H200", ordinal=0, uuid="GPU-1", power_limit_w=700.0, mig=False)],
        environment=Environment(python="3.11.7", torch="2.13.0"),
        sampler=SamplerFacts("csv", nulls={"power_draw": {"[N/A]": 3}}),
        energy=EnergyFacts(1, 2, 3),
        profiler=ProfilerFacts(["CPU", "CUDA"], record_shapes=True),
        diagnostics=[Diagnostic("no_clean_timing", "info", None, "No clean timing.")],
        files={"kernels.parquet": FileFacts(3, 4, "ab")},
    )

    assert read_manifest(put(tmp_path / "run", whole.encode())) == whole


def test_the_text_is_indented_and_leaves_out_what_is_unknown() -> None:
    assert SMALL.encode().decode() == (
        "{\n"
        '  "schema_version": 1,\n'
        '  "id": "7",\n'
        '  "name": "run",\n'
        '  "created_ns": 1790000000123456789,\n'
        '  "tool_version": "0.1.0",\n'
        '  "command": "whichwall collect --mode decode",\n'
        '  "mode": "decode"\n'
        "}\n"
    )


def test_fields_that_a_later_minor_release_adds_are_ignored(tmp_path: Path) -> None:
    added = {**json.loads(SMALL.encode()), "weather": "fair"}

    assert read_manifest(put(tmp_path / "run", json.dumps(added))) == SMALL


def test_a_newer_version_is_refused_naming_found_and_known(tmp_path: Path) -> None:
    run = put(tmp_path / "run", json.dumps({"schema_version": VERSION + 1, "shape": "new"}))

    with pytest.raises(VersionError) as caught:
        read_manifest(run)

    assert str(caught.value) == (
        f"{run}/run.json: schema version {VERSION + 1}, this whichwall knows up to {VERSION}; "
        "upgrade whichwall"
    )


def test_a_missing_folder_is_told_from_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError) as absent:
        read_manifest(tmp_path / "absent")
    with pytest.raises(InputError) as empty:
        read_manifest(tmp_path)

    expected = "expected a run folder made by collect or import"
    assert str(absent.value) == f"{tmp_path}/absent: no such folder; {expected}"
    assert str(empty.value) == f"{tmp_path}: no run.json in it; {expected}"


def test_a_file_is_no_run(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text("{}")

    with pytest.raises(InputError, match=r"^\S+/trace.json: no run.json in it; expected a run"):
        read_manifest(file)


def test_a_folder_named_run_json_is_no_manifest(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()

    with pytest.raises(InputError, match=r"/run.json: Is a directory; expected a readable"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a run manifest"),
        (b"\xff\xfe", "not a run manifest"),
        ("[1]", "not a run manifest"),
        ("[" * 100_000, "not a run manifest"),
        ('{"id": 1}', "not a run manifest ('schema_version')"),
        ('{"schema_version": "1"}', "schema version '1' is not a version number"),
        ('{"schema_version": 0}', "schema version 0 is not a version number"),
        ('{"schema_version": true}', "Expected `int`, got `bool` - at `$.schema_version`"),
        ('{"schema_version": 1}', "missing required field `id`"),
        (SMALL.encode().replace(b'"7"', b"7"), "Expected `str`, got `int` - at `$.id`"),
    ],
)
def test_what_is_not_a_manifest_is_refused_by_name(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    run = put(tmp_path / "run", text)

    with pytest.raises(InputError, match=re.escape(said)) as caught:
        read_manifest(run)

    assert str(caught.value).startswith(f"{run}/run.json: ")
