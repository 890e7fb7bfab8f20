from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

import whichwall
from tests.frames import MANIFEST
from whichwall.schemas.errors import InputError, VersionError
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.points import Points
from whichwall.schemas.run import RUN_TABLES, Run, frame, scan
from whichwall.schemas.samples import Samples
from whichwall.schemas.table import Table

KERNEL: dict[str, object] = {
    "point": 0, "rank": 0, "kind": "kernel", "name": "gemm", "start_ns": 1, "dur_ns": 2,
}  # fmt: skip

POLARS_TYPES = {
    pa.int32(): pl.Int32(), pa.int64(): pl.Int64(), pa.float64(): pl.Float64(),
    pa.string(): pl.String(), pa.bool_(): pl.Boolean(),
}  # fmt: skip

VALUES: dict[pa.DataType, object] = {
    pa.int32(): -2_147_483_648, pa.int64(): 9_007_199_254_740_993, pa.float64(): 0.1,
    pa.string(): "void f<T>(×, \U0001f600)\n", pa.bool_(): True,
}  # fmt: skip


def two_rows(table: type[Table]) -> list[dict[str, object]]:
    """Return a row with every value, and one with all that may be unknown unknown."""
    full = {name: VALUES[c.type] for name, c in table.COLUMNS.items()}
    bare = {name: full[name] if c.required else None for name, c in table.COLUMNS.items()}
    return [full, bare]


def write_run(out: Path, table: type[Table], rows: list[dict[str, object]]) -> Path:
    """Write a run of one table."""
    with RunWriter(out) as run:
        run.write(table, rows)
        return run.finish(MANIFEST)


@pytest.mark.parametrize("table", RUN_TABLES)
def test_what_was_written_is_read_back_whole(tmp_path: Path, table: type[Table]) -> None:
    rows = two_rows(table)

    found = scan(write_run(tmp_path / "run", table, rows), table).collect()

    schema = {name: POLARS_TYPES[c.type] for name, c in table.COLUMNS.items()}
    assert_frame_equal(found, pl.DataFrame(rows, schema=schema))


@pytest.mark.parametrize("table", RUN_TABLES)
def test_a_missing_table_is_an_empty_frame(tmp_path: Path, table: type[Table]) -> None:
    schema = {name: POLARS_TYPES[c.type] for name, c in table.COLUMNS.items()}

    assert_frame_equal(scan(tmp_path, table).collect(), pl.DataFrame(schema=schema))


def test_every_table_of_a_run_has_a_property(tmp_path: Path) -> None:
    run = whichwall.open(write_run(tmp_path / "run", Points, [{"point": 0, "outcome": "done"}]))

    for table in RUN_TABLES:
        found = getattr(run, table.NAME)
        assert_frame_equal(found.collect(), run.scan(table).collect())


def test_open_reads_the_manifest_and_then_the_tables(tmp_path: Path) -> None:
    out = write_run(tmp_path / "run", Points, [{"point": 0, "outcome": "done"}])

    run = whichwall.open(str(out))

    assert isinstance(run, Run)
    assert run.manifest.name == "run"
    assert run.points.select("outcome").collect().item() == "done"


def test_open_is_the_only_name_beside_the_version() -> None:
    assert whichwall.__all__ == ["__version__", "open"]
    with pytest.raises(AttributeError, match="no attribute 'close'"):
        whichwall.close  # noqa: B018


def test_ranks_are_read_one_after_the_other(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as run:
        for rank in (10, 9):
            rows = pa.Table.from_pylist([{**KERNEL, "rank": rank}], schema=Kernels.schema())
            run.table(Kernels, rank).write(rows)
        run.finish(MANIFEST)

    assert scan(tmp_path / "run", Kernels).select("rank").collect()["rank"].to_list() == [9, 10]


def test_a_column_that_an_older_file_lacks_is_null(tmp_path: Path) -> None:
    older = Kernels.schema().remove(Kernels.schema().get_field_index("graph_node_id"))
    pq.write_table(pa.Table.from_pylist([KERNEL], schema=older), tmp_path / "kernels.parquet")

    assert_frame_equal(scan(tmp_path, Kernels).collect(), frame(Kernels, [KERNEL]))


def test_a_column_that_this_version_does_not_know_is_left_out(tmp_path: Path) -> None:
    wider = Kernels.schema().append(pa.field("weather", pa.string()))
    rows = [{**KERNEL, "weather": "fair"}]
    pq.write_table(pa.Table.from_pylist(rows, schema=wider), tmp_path / "kernels.parquet")

    assert_frame_equal(scan(tmp_path, Kernels).collect(), frame(Kernels, [KERNEL]))


def test_columns_in_another_order_are_read_by_name(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([KERNEL], schema=Kernels.schema())
    pq.write_table(table.select(table.schema.names[::-1]), tmp_path / "kernels.parquet")

    assert_frame_equal(scan(tmp_path, Kernels).collect(), frame(Kernels, [KERNEL]))


def test_a_newer_file_is_refused_naming_found_and_known(tmp_path: Path) -> None:
    version = str(Samples.VERSION + 1)
    newer = Samples.schema().with_metadata(
        {"whichwall.table": "samples", "whichwall.version": version}
    )
    pq.write_table(newer.empty_table(), tmp_path / "samples.parquet")

    with pytest.raises(VersionError) as caught:
        scan(tmp_path, Samples)

    assert str(caught.value) == (
        f"{tmp_path}/samples.parquet: samples has schema version {Samples.VERSION + 1}, "
        f"this whichwall knows up to {Samples.VERSION}; upgrade whichwall"
    )


def test_a_table_under_the_name_of_another_is_refused(tmp_path: Path) -> None:
    out = write_run(tmp_path / "run", Points, [{"point": 0, "outcome": "done"}])
    (out / "points.parquet").rename(out / "kernels.parquet")

    with pytest.raises(InputError, match="holds table 'points', expected 'kernels'"):
        scan(out, Kernels)


@pytest.mark.parametrize("name", ["run [1]", "run*", "run?", "with space", "a.b", "läuft", "{x}"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    rows = two_rows(Kernels)

    out = write_run(tmp_path / name, Kernels, rows)

    assert_frame_equal(scan(out, Kernels).collect(), frame(Kernels, rows))


def test_a_moved_run_is_the_same_run(tmp_path: Path) -> None:
    out = write_run(tmp_path / "here", Kernels, [KERNEL])
    (tmp_path / "far").mkdir()

    moved = out.rename(tmp_path / "far" / "away")

    assert_frame_equal(whichwall.open(moved).kernels.collect(), frame(Kernels, [KERNEL]))
