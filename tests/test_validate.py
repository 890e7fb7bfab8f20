"""A run is whole or is not: each finding by the smallest run that is damaged so."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT
from tests.frames import BASE_NS, MANIFEST, PLACE, Row, a_pass, call, kernel, op, sample
from tests.test_usage import refused, run
from whichwall.analyze.validate import MOST_LINES, validate
from whichwall.schemas.errors import VersionError
from whichwall.schemas.findings import REMARK
from whichwall.schemas.folder import RunWriter, file_facts
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.manifest import FILE, LARGEST_BYTES, Manifest, RankFacts, read_manifest
from whichwall.schemas.ops import Ops
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import DONE, Points
from whichwall.schemas.run import RUN_TABLES
from whichwall.schemas.samples import Samples
from whichwall.schemas.table import MOMENTS, NANOSECONDS, UNIT_KEY, VERSION_KEY, Table

T = BASE_NS
TRACE = RankFacts(0, "collect", "epoch", T, 1, devices=[0])
POINT: Row = {Points.point: 0, Points.outcome: DONE}
ROWS: dict[type[Table], list[Row]] = {
    Points: [POINT],
    Passes: [a_pass(T, 500)],
    Kernels: [kernel(T + 10, T + 20, 1), kernel(T + 30, T + 40, 2)],
    Launches: [call(T + 1, T + 5, 1), call(T + 21, T + 25, 2)],
    Ops: [op(T, T + 9, "aten::linear"), op(T + 1, T + 8, "aten::mm")],
    Samples: [sample(T, 100.0)],
}


def write(out: Path, rows: dict[type[Table], list[Row]], **facts: object) -> Path:
    """Write a run of one trace."""
    manifest = msgspec.structs.replace(MANIFEST, **({"ranks": [TRACE]} | facts))
    with RunWriter(out) as writer:
        for table, these in rows.items():
            writer.write(table, these)
        return writer.finish(manifest)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return write(tmp_path / "run", ROWS)


def state(path: Path, change: Callable[[Manifest], Manifest]) -> None:
    """Change what run.json says."""
    (path / FILE).write_bytes(change(read_manifest(path)).encode())


def put(path: Path, table: type[Table], held: pa.Table, *, rows: int | None = None) -> None:
    """Write a table's file as no writer of ours does, and let the manifest vouch for it."""
    file = path / f"{table.NAME}.parquet"
    pq.write_table(held, file)
    facts = file_facts(file, held.num_rows if rows is None else rows)
    state(path, lambda m: msgspec.structs.replace(m, files={**m.files, file.name: facts}))


def change(path: Path, table: type[Table], column: str, value: object) -> None:
    """Give a column of the first row another value."""
    held = pq.read_table(path / f"{table.NAME}.parquet")
    at = held.schema.get_field_index(column)
    field = held.schema.field(at).with_nullable(nullable=True)
    values = pa.array([value, *held[column].to_pylist()[1:]], field.type)
    put(path, table, held.set_column(at, field, values))


def findings(path: Path) -> list[str]:
    """Return the lines of a run that is not whole, without its folder."""
    found = validate(path)
    assert not found.is_whole, found.lines()
    return [line.removeprefix(f"{path}/") for line in found.lines()]


def remarks(path: Path) -> list[str]:
    """Return what is remarked of a run that is whole."""
    found = validate(path)
    assert found.is_whole, found.lines()
    assert {finding.severity for finding in found.findings} <= {REMARK}
    return [finding.line() for finding in found.findings]


RUNS = sorted(
    path.parent
    for top in ("traces", "tests/data")
    for path in (ROOT / top).rglob(FILE)
    if not path.parent.name.startswith("demo")
)


@pytest.mark.parametrize("path", RUNS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_run_of_the_repository_is_whole_and_odd_in_nothing(path: Path) -> None:
    assert remarks(path) == []


def test_a_whole_run_is_one_line_and_exit_code_0(whole: Path) -> None:
    done = run("validate", whole, whole)

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"{whole}: whole: 6 files, 9 rows\n" * 2


def test_one_finding_is_one_line_and_exit_code_1(whole: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(whole, tmp_path / "damaged")
    (damaged / "ops.parquet").unlink()
    (damaged / "a\x1b[31m\nb").touch()

    done = run("validate", damaged, whole)

    assert (done.exit_code, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        f"{damaged}/a\\x1b[31m b: is no part of the run: run.json does not list it; "
        "expected its files and report/ alone; move it away",
        f"{damaged}/ops.parquet: is missing; expected {(whole / 'ops.parquet').stat().st_size} "
        "bytes; copy the run again",
        f"{whole}: whole: 6 files, 9 rows",
    ]


def test_what_is_no_run_is_refused(whole: Path, tmp_path: Path) -> None:
    assert "no such folder" in refused(run("validate", tmp_path / "absent"))
    assert "no run.json in it" in refused(run("validate", tmp_path))
    (whole / FILE).unlink()
    (whole / FILE).mkdir()
    assert "Is a directory" in refused(run("validate", whole))


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda raw: b"", "not a run manifest"),
        (lambda raw: raw[:-9], "not a run manifest"),
        (lambda raw: b"[]", "not a run manifest"),
        (lambda raw: b"\xff" + raw, "not a run manifest"),
        (lambda raw: raw.replace(b'"schema_version": 1', b'"schema_version": 0'), "version 0"),
        (lambda raw: raw.replace(b'"id": "', b'"id": 7, "was": "'), "Expected `str`"),
        (lambda raw: raw + b" " * LARGEST_BYTES, "is larger than any run.json"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_a_finding_like_any_other(
    damage: Callable[[bytes], bytes], found: str, whole: Path, tmp_path: Path
) -> None:
    damaged = shutil.copytree(whole, tmp_path / "damaged")
    (damaged / FILE).write_bytes(damage((whole / FILE).read_bytes()))

    done = run("validate", damaged, whole)

    assert (done.exit_code, done.stderr) == (1, "")
    first, second = done.stdout.splitlines()
    assert first.startswith(f"{damaged}/run.json: ")
    assert found in first
    assert second == f"{whole}: whole: 6 files, 9 rows"


def test_a_manifest_of_a_newer_version_is_refused(whole: Path) -> None:
    text = (whole / FILE).read_bytes()
    (whole / FILE).write_bytes(text.replace(b'"schema_version": 1', b'"schema_version": 99'))
    assert "upgrade whichwall" in refused(run("validate", whole))


def test_a_file_of_a_newer_version_is_refused_by_name(whole: Path) -> None:
    held = pq.read_table(whole / "ops.parquet")
    newer = {**(held.schema.metadata or {}), VERSION_KEY: b"7"}
    put(whole, Ops, held.replace_schema_metadata(newer))
    with pytest.raises(VersionError, match=r"run/ops\.parquet: ops has schema version 7"):
        validate(whole)


def test_one_changed_byte_is_found_by_its_checksum(whole: Path) -> None:
    path = whole / "kernels.parquet"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)

    (line,) = findings(whole)

    assert line.startswith("kernels.parquet: has SHA-256 ")
    assert line.endswith(" as run.json says; copy the run again")


def test_a_file_cut_short_is_found_by_its_size(whole: Path) -> None:
    path = whole / "kernels.parquet"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-1])

    assert findings(whole) == [
        f"kernels.parquet: has {size - 1} bytes; expected {size} as run.json says; "
        "copy the run again"
    ]


def test_a_count_of_rows_that_lies_is_found(whole: Path) -> None:
    put(whole, Ops, pq.read_table(whole / "ops.parquet"), rows=3)

    assert findings(whole) == [
        "ops.parquet: holds 2 rows; expected 3 as run.json says; copy the run again"
    ]


def test_a_file_that_is_no_parquet_is_found(whole: Path) -> None:
    (whole / "ops.parquet").write_bytes(b"PAR1")
    facts = file_facts(whole / "ops.parquet", 2)
    state(whole, lambda m: msgspec.structs.replace(m, files={**m.files, "ops.parquet": facts}))

    (line,) = findings(whole)

    assert line.startswith("ops.parquet: not a readable Parquet file (")
    assert line.endswith("); copy or collect the run again")


def test_a_page_that_was_damaged_before_its_checksum_was_taken_is_found(whole: Path) -> None:
    path = whole / "kernels.parquet"
    raw = bytearray(path.read_bytes())
    raw[4:60] = bytes(56)
    path.write_bytes(raw)
    facts = file_facts(path, 2)
    state(whole, lambda m: msgspec.structs.replace(m, files={**m.files, path.name: facts}))

    (line,) = findings(whole)

    assert line.startswith("kernels.parquet: is damaged (")
    assert line.endswith("); expected rows that can be read; copy the run again")


def test_another_table_another_type_and_a_missing_column_are_found(whole: Path) -> None:
    held = pq.read_table(whole / "ops.parquet")
    put(whole, Launches, held)
    put(whole, Passes, pq.read_table(whole / "passes.parquet").drop_columns([Passes.wall_ns]))
    at = held.schema.get_field_index(Ops.tid)
    put(whole, Ops, held.set_column(at, Ops.tid, held[Ops.tid].cast(pa.int32())))

    assert findings(whole) == [
        "launches.parquet: holds table 'ops', expected 'launches'; import or collect the run again",
        "ops.parquet: 1 wrong columns for ops: 'tid' is int32, expected int64; copy the run again",
        "passes.parquet: 1 wrong columns for passes: 'wall_ns' is missing; copy the run again",
    ]


def test_another_unit_is_found(whole: Path) -> None:
    held = pq.read_table(whole / "ops.parquet")
    at = held.schema.get_field_index(Ops.dur_ns)
    field = held.schema.field(at).with_metadata({UNIT_KEY: b"us"})
    put(whole, Ops, held.set_column(at, field, held[Ops.dur_ns]))

    assert findings(whole) == [
        "ops.parquet: column dur_ns is in us; expected ns; copy the run again"
    ]


def test_an_older_file_without_an_optional_column_is_whole(whole: Path) -> None:
    put(whole, Ops, pq.read_table(whole / "ops.parquet").drop_columns([Ops.input_types]))

    assert remarks(whole) == []


@pytest.mark.parametrize(
    ("table", "column", "value", "line"),
    [
        (Passes, Passes.wall_ns, None,
         "1 of 1 values of wall_ns are null; expected none; copy the run again"),
        (Passes, Passes.phase, "dancing",
         "1 values of phase such as 'dancing'; expected prefill or decode or matmul; "
         "copy the run again"),
        (Passes, Passes.wall_ns, -1,
         "1 of 1 values of wall_ns are negative; expected 0 or more; import or collect the run "
         "again"),
        (Passes, Passes.batch, -1,
         "1 of 1 values of batch are negative; expected 0 or more; import or collect the run "
         "again"),
        (Passes, Passes.start_ns, 12,
         "1 of 1 values of start_ns are no time of a recording; expected Unix epoch, from 2001 to "
         "2100; import or collect the run again"),
        (Launches, Launches.start_ns, 2**63 - 1,
         f"1 of 2 values of start_ns are out of all range; expected {-(2**60)} to {2**62} ns; "
         "copy the run again"),
        (Passes, Passes.point, 5,
         "1 rows of point 5; expected points of the points table; import or collect the run "
         "again"),
        (Passes, Passes.rank, 3,
         "1 rows of rank 3; expected ranks of run.json: 0; import or collect the run again"),
        (Kernels, Kernels.rank, 3,
         "1 rows of point 0, rank 3; expected traces that run.json names: point 0 of rank 0; "
         "import or collect the run again"),
        (Kernels, Kernels.device, 4,
         "activities of device 4 (rank 0); expected devices of run.json: 0; "
         "import or collect the run again"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_found(
    table: type[Table], column: str, value: object, line: str, whole: Path
) -> None:
    change(whole, table, column, value)

    assert findings(whole) == [f"{table.NAME}.parquet: {line}"]


def test_a_point_written_twice_is_found(tmp_path: Path) -> None:
    path = write(tmp_path / "run", {Points: [POINT, POINT]})

    assert findings(path) == [
        "points.parquet: point 0 stands there 2 times; expected a row per point; "
        "import or collect the run again"
    ]


def test_rows_of_another_rank_in_a_rank_s_file_are_found(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as writer:
        writer.write(Kernels, ROWS[Kernels], 1)
        ranks = [TRACE, msgspec.structs.replace(TRACE, rank=1)]
        path = writer.finish(msgspec.structs.replace(MANIFEST, ranks=ranks))

    assert findings(path) == [
        "kernels.rank1.parquet: 2 rows of rank 0; expected rank 1 alone; copy the run again"
    ]


@pytest.mark.parametrize("apart", ["role_check", "reference"])
def test_a_trace_kept_apart_must_have_a_point_of_its_own(apart: str, tmp_path: Path) -> None:
    path = write(tmp_path / "run", ROWS, **{apart: TRACE})

    assert findings(path) == [
        "run.json: names 2 traces of point 0, rank 0; expected one of each; "
        "import or collect the run again"
    ]


@pytest.mark.parametrize("apart", ["role_check", "reference"])
def test_a_trace_kept_apart_must_be_a_point_of_the_run(apart: str, tmp_path: Path) -> None:
    facts = msgspec.structs.replace(TRACE, point=2)
    rows = {**ROWS, Kernels: [*ROWS[Kernels], kernel(T, T + 1, 1, point=2)]}
    path = write(tmp_path / "run", rows, **{apart: facts})

    assert findings(path) == [
        f"run.json: names a trace of point 2 ({apart}); expected points of the points table; "
        "import or collect the run again",
        "kernels.parquet: 1 rows of point 2; expected points of the points table; "
        "import or collect the run again",
    ]


@pytest.mark.parametrize("name", ["/etc/passwd", "../other/kernels.parquet", "a\\b", ".."])
def test_a_file_outside_of_the_run_is_found_and_not_opened(name: str, whole: Path) -> None:
    facts = file_facts(whole / "ops.parquet", 2)
    state(whole, lambda m: msgspec.structs.replace(m, files={**m.files, name: facts}))

    assert findings(whole) == [
        f"run.json: lists the file {name!r}; expected a table's name without a folder; "
        "import or collect the run again"
    ]


@pytest.mark.parametrize("word", ["/home/ann/model", "C:\\Users\\ann"])
def test_a_folder_of_somebody_s_machine_is_found(word: str, whole: Path) -> None:
    state(whole, lambda m: msgspec.structs.replace(m, command=f"x --weights '{word}'"))

    assert findings(whole) == [
        f"run.json: command names {word!r}; expected no folder of a machine; take it out"
    ]


def test_links_are_found_wherever_they_lead(whole: Path, tmp_path: Path) -> None:
    moved = (whole / "ops.parquet").rename(tmp_path / "ops.parquet")
    (whole / "ops.parquet").symlink_to(moved)
    (whole / "other").symlink_to("/")
    (whole / "report").mkdir()
    (whole / "report" / "report.md").symlink_to(moved)
    end = "is a link; expected a file of the run itself; put the file itself there"

    assert findings(whole) == [f"{n}: {end}" for n in ("other", "report/report.md", "ops.parquet")]


def test_what_is_no_part_of_a_run_is_found(whole: Path) -> None:
    shutil.copy(whole / "ops.parquet", whole / "ops.rank1.parquet")
    os.mkfifo(whole / "pipe")
    (whole / "report").mkdir()
    (whole / "report" / "notes.md").touch()
    (whole / ".DS_Store").touch()
    end = "is no part of the run: run.json does not list it; expected its files and report/ alone"

    assert findings(whole) == [
        f"ops.rank1.parquet: {end}; move it away",
        f"pipe: {end}; move it away",
        "report/notes.md: is no part of a report; expected what analyze writes; move it away",
    ]


def test_a_folder_or_a_pipe_in_the_place_of_a_table_is_found_and_not_read(whole: Path) -> None:
    for name in ("ops.parquet", "kernels.parquet"):
        (whole / name).unlink()
    (whole / "ops.parquet").mkdir()
    os.mkfifo(whole / "kernels.parquet")

    assert findings(whole) == [
        f"{name}: is no file; expected a regular file; copy the run again"
        for name in ("kernels.parquet", "ops.parquet")
    ]


def test_a_list_without_end_is_cut_and_says_so(whole: Path) -> None:
    for number in range(MOST_LINES + 7):
        (whole / f"stranger{number:03}").touch()

    lines = validate(whole).lines()

    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == f"{whole}: 7 more findings"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({Kernels: [*ROWS[Kernels], kernel(T + 50, T + 40, 2)]},
         ["kernels.parquet: 1 of 3 GPU rows cannot be an activity and are left out (rank 0)"]),
        ({Kernels: [*ROWS[Kernels], kernel(T + 50, T + 60, 9), kernel(T + 70, T + 80)]},
         ["kernels.parquet: 2 of 4 GPU activities have no launch on record (rank 0)"]),
        ({Kernels: [kernel(T + 10, T + 20, 1)]},
         ["launches.parquet: 1 of 2 launches left no GPU row (rank 0)"]),
        ({Kernels: [*ROWS[Kernels], kernel(T + 50, T + 60, 2)]},
         ["kernels.parquet: 2 of 3 GPU activities share a launch that replays no graph (rank 0)"]),
        ({Ops: [op(T, T + 9, "a"), op(T + 5, T + 12, "b"), op(T + 12, T + 13, "c")]},
         ["ops.parquet: 1 of 3 operators begin inside another one of their thread and outlast it "
          "(rank 0)"]),
        ({Launches: [*ROWS[Launches], call(T + 50, T + 49, name="cudaFree")]},
         ["launches.parquet: 1 of 3 values of dur_ns are negative; expected 0 or more"]),
        ({Samples: [sample(T, float("nan"))]},
         ["samples.parquet: 1 values of power_instant_w are not finite; expected a number"]),
        ({Samples: [sample(7)]},
         ["samples.parquet: 1 of 1 values of time_ns are no time of a recording; "
          "expected Unix epoch, from 2001 to 2100"]),
    ],
)  # fmt: skip
def test_what_the_trace_itself_lacks_is_a_remark(
    changed: dict[type[Table], list[Row]], said: list[str], tmp_path: Path
) -> None:
    path = write(tmp_path / "run", ROWS | changed)

    assert remarks(path) == said
    assert run("validate", path).stdout == f"{'; '.join([whole_line(path), *said])}\n"


def whole_line(path: Path) -> str:
    files = read_manifest(path).files
    return f"{path}: whole: {len(files)} files, {sum(f.rows for f in files.values())} rows"


def test_replays_of_a_graph_share_their_launch(tmp_path: Path) -> None:
    rows: dict[type[Table], list[Row]] = {
        Kernels: [kernel(T + 10, T + 20, 1), kernel(T + 30, T + 40, 1)],
        Launches: [call(T + 1, T + 5, 1, name="cudaGraphLaunch")],
    }

    assert remarks(write(tmp_path / "run", rows)) == []


def test_another_rank_s_launch_is_none(tmp_path: Path) -> None:
    ranks = [TRACE, msgspec.structs.replace(TRACE, rank=1, devices=[])]
    rows = {Kernels: [kernel(T + 9, T + 10, 1)], Launches: [call(T, T + 5, 1, rank=1)]}

    assert remarks(write(tmp_path / "run", rows, ranks=ranks)) == [
        "kernels.parquet: 1 of 1 GPU activities have no launch on record (rank 0)",
        "launches.parquet: 1 of 1 launches left no GPU row (rank 1)",
    ]


def test_times_relative_to_nothing_known_are_as_the_manifest_says(tmp_path: Path) -> None:
    rows: dict[type[Table], list[Row]] = {
        Kernels: [kernel(10, 20, 1)], Launches: [call(1, 50, 1)],
    }  # fmt: skip
    said = ["launches.parquet: 1 of 1 values of start_ns are no time of a recording; "
            "expected Unix epoch, from 2001 to 2100"]  # fmt: skip
    relative = msgspec.structs.replace(TRACE, time_origin="unknown", base_ns=None)

    assert remarks(write(tmp_path / "relative", rows, ranks=[relative])) == []
    assert remarks(write(tmp_path / "epoch", rows)) == said


def test_a_table_of_the_future_is_known_by_its_checksum_alone(whole: Path) -> None:
    (whole / "networks.parquet").write_bytes(b"of a later version")
    facts = file_facts(whole / "networks.parquet", 0)
    state(whole, lambda m: msgspec.structs.replace(m, files={**m.files, "networks.parquet": facts}))

    assert remarks(whole) == [
        "networks.parquet: is no table that this whichwall knows; only its checksum was looked at"
    ]


def test_what_a_killed_analyze_left_is_a_remark(whole: Path) -> None:
    (whole / ".report.0123abcd.partial").mkdir()

    assert remarks(whole) == [
        ".report.0123abcd.partial: left by a killed analyze; the next one removes it"
    ]


def test_every_time_of_a_run_is_a_moment_or_a_span() -> None:
    times = {
        (table.NAME, column.name): "epoch" in column.doc or column.name in MOMENTS
        for table in RUN_TABLES
        for column in table.COLUMNS.values()
        if column.unit == NANOSECONDS
    }

    assert {name for (_, name), moment in times.items() if moment} == {*MOMENTS}
    assert PLACE.keys() <= Kernels.COLUMNS.keys()
