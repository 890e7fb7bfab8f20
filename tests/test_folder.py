import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT
from tests.frames import MANIFEST
from whichwall.schemas.errors import InputError, UsageError
from whichwall.schemas.folder import RunWriter, rank_files, read_schema
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.manifest import FileFacts, read_manifest
from whichwall.schemas.overheads import Overheads

# Odd, so that no float holds it.
START_NS = 1_790_000_000_123_456_789

KERNEL: dict[str, object] = {
    "point": 0, "rank": 0, "kind": "kernel", "name": "gemm", "start_ns": START_NS, "dur_ns": 1_001,
}  # fmt: skip


def write_run(out: Path, name: str = "gemm", *, overwrite: bool = False) -> Path:
    """Write a run of one kernel."""
    with RunWriter(out, overwrite=overwrite) as run:
        run.write(Kernels, [{**KERNEL, "name": name}])
        return run.finish(MANIFEST)


def fail_midway(out: Path, error: type[BaseException], *, overwrite: bool = False) -> None:
    """Write rows of a run, then raise."""
    with RunWriter(out, overwrite=overwrite) as run:
        run.write(Kernels, [KERNEL])
        raise error


def names(folder: Path) -> list[str]:
    """Return what a folder holds, hidden entries included."""
    return sorted(path.name for path in folder.iterdir())


def test_a_run_is_its_tables_and_a_manifest_that_knows_them(tmp_path: Path) -> None:
    out = write_run(tmp_path / "traces" / "run")
    raw = (out / "kernels.parquet").read_bytes()

    assert names(tmp_path / "traces") == ["run"]
    assert names(out) == ["kernels.parquet", "run.json"]
    found = read_manifest(out)
    assert (found.name, found.mode, len(found.id)) == ("run", "decode", 32)
    assert found.files == {
        "kernels.parquet": FileFacts(1, len(raw), hashlib.sha256(raw).hexdigest())
    }


def test_a_file_on_disk_says_what_its_columns_mean(tmp_path: Path) -> None:
    found = pq.read_schema(write_run(tmp_path / "run") / "kernels.parquet")

    assert found.equals(Kernels.schema(), check_metadata=True)


def test_many_small_writes_make_few_row_groups(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as run:
        for start in range(1_000):
            run.write(Overheads, [{**KERNEL, "start_ns": start}])
        run.finish(MANIFEST)

    written = pq.ParquetFile(tmp_path / "run" / "overheads.parquet")
    assert written.metadata.num_row_groups == 1
    assert written.read()["start_ns"].to_pylist() == list(range(1_000))


def test_null_in_a_required_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="null"), RunWriter(tmp_path / "run") as run:
        run.write(Kernels, [{**KERNEL, "start_ns": None}])

    assert names(tmp_path) == []


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_failure_inside_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error):
        fail_midway(tmp_path / "run", error)

    assert names(tmp_path) == []


def test_a_block_left_without_finish_leaves_nothing(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as run:
        run.write(Kernels, [KERNEL])

    assert names(tmp_path) == []


@pytest.mark.parametrize("moment", ["run.write(Kernels, ROWS); die()", "run._replace = die"])
def test_kill_leaves_a_hidden_partial_folder_and_no_run(tmp_path: Path, moment: str) -> None:
    code = f"""
import os, signal, sys
from pathlib import Path
from tests.test_folder import KERNEL, MANIFEST
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.kernels import Kernels

ROWS = [KERNEL]
die = lambda: os.kill(os.getpid(), signal.SIGKILL)
with RunWriter(Path(sys.argv[1])) as run:
    {moment}
    run.write(Kernels, ROWS)
    run.finish(MANIFEST)
"""
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / ".types"), str(ROOT)])},
        capture_output=True,
    )

    assert run.returncode == -signal.SIGKILL, run.stderr
    left = names(tmp_path)
    assert len(left) == 1
    assert left[0].startswith(".run.")
    assert left[0].endswith(".partial")
    assert names(write_run(tmp_path / "run")) == ["kernels.parquet", "run.json"]
    assert names(tmp_path) == ["run"]


def test_an_existing_out_is_refused_naming_overwrite(tmp_path: Path) -> None:
    out = write_run(tmp_path / "run")
    before = (out / "run.json").read_bytes()

    with pytest.raises(UsageError) as caught:
        RunWriter(out)

    assert str(caught.value) == f"{out}: already exists; give another --out, or --overwrite"
    assert (out / "run.json").read_bytes() == before


def test_overwrite_replaces_the_whole_run(tmp_path: Path) -> None:
    out = write_run(tmp_path / "run")
    (out / "report").mkdir()
    (out / "report" / "report.md").write_text("of the old run")

    write_run(out, "softmax", overwrite=True)

    assert names(tmp_path) == ["run"]
    assert names(out) == ["kernels.parquet", "run.json"]
    assert pq.read_table(out / "kernels.parquet")["name"].to_pylist() == ["softmax"]


def test_a_failed_overwrite_keeps_the_old_run(tmp_path: Path) -> None:
    out = write_run(tmp_path / "run")

    with pytest.raises(KeyboardInterrupt):
        fail_midway(out, KeyboardInterrupt, overwrite=True)

    assert names(tmp_path) == ["run"]
    assert names(out) == ["kernels.parquet", "run.json"]


def test_overwrite_leaves_a_folder_that_is_no_run_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("two years")

    with pytest.raises(UsageError) as caught:
        RunWriter(home, overwrite=True)

    assert str(caught.value) == (
        f"{home}: is not a run (no run.json in it), so --overwrite leaves it alone; "
        "give another --out"
    )
    assert names(home) == ["thesis.tex"]


def test_overwrite_leaves_a_file_and_a_link_alone(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("kept")
    link.symlink_to(write_run(tmp_path / "run"))

    with pytest.raises(UsageError, match="is not a run"):
        RunWriter(file, overwrite=True)
    with pytest.raises(UsageError, match="is a link"):
        write_run(link, overwrite=True)

    assert names(tmp_path) == ["file", "link", "run"]
    assert file.read_text() == "kept"


def test_overwrite_takes_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()

    assert names(write_run(tmp_path / "run", overwrite=True)) == ["kernels.parquet", "run.json"]


def test_a_run_that_appeared_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "run"

    with RunWriter(out) as slow:
        slow.write(Kernels, [KERNEL])
        write_run(out, "softmax")
        with pytest.raises(UsageError, match="already exists"):
            slow.finish(MANIFEST)

    assert names(tmp_path) == ["run"]
    assert pq.read_table(out / "kernels.parquet")["name"].to_pylist() == ["softmax"]


def test_an_out_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match=r"^\S+/file/run: cannot create it \(.+\); give a writab"):
        write_run(tmp_path / "file" / "run")


def test_ranks_are_found_in_order_of_number(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as run:
        for rank in (10, 2, 0):
            rows = [{**KERNEL, "rank": rank}]
            run.table(Kernels, rank).write(pa.Table.from_pylist(rows, schema=Kernels.schema()))
        run.finish(MANIFEST)
    (tmp_path / "run" / "kernels.rankX.parquet").write_text("of another program")

    assert [path.name for path in rank_files(tmp_path / "run", Kernels)] == [
        "kernels.rank0.parquet",
        "kernels.rank2.parquet",
        "kernels.rank10.parquet",
    ]


def test_duckdb_and_pandas_read_a_table_as_it_is(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run") / "kernels.parquet"

    in_duckdb = duckdb.execute(f"select start_ns, dur_ns, name from '{path}'").fetchall()
    in_pandas = pd.read_parquet(path)

    assert in_duckdb == [(START_NS, 1_001, "gemm")]
    assert in_pandas["start_ns"].dtype == "int64"
    assert in_pandas["start_ns"].tolist() == [START_NS]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kernels.parquet"
    path.write_bytes(content)

    with pytest.raises(InputError) as caught:
        read_schema(path)

    assert str(caught.value).startswith(f"{path}: not a readable Parquet file (")
    assert str(caught.value).endswith("); copy or collect the run again")
