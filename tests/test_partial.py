import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.test_folder import KERNEL, fail_midway, names, write_run
from tests.test_usage import refused, run
from whichwall.schemas.errors import UsageError
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.partial import partial_folder, remove_left_over
from whichwall.schemas.run import open_run

LEFT, OTHER, OLD = ".run.0123abcd.partial", ".other.0123abcd.partial", ".run.0123abcd.old"


def test_a_folder_that_no_living_process_holds_is_removed(tmp_path: Path) -> None:
    (tmp_path / LEFT).mkdir()
    (tmp_path / LEFT / "kernels.parquet").touch()

    with partial_folder(tmp_path / "run") as folder:
        assert names(tmp_path) == [folder.name]

    assert names(tmp_path) == []


def test_a_folder_that_a_living_process_holds_is_left_alone(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as slow:
        slow.write(Kernels, [KERNEL])
        write_run(tmp_path / "run")

        assert names(tmp_path) == [slow.folder.name, "run"]
        assert names(slow.folder) == ["kernels.parquet"]


def test_the_lock_of_a_killed_process_goes_with_it(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from whichwall.schemas.partial import partial_folder\n"
        "with partial_folder(Path(sys.argv[1])) as folder:\n"
        "    print(folder.name, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": str(ROOT / ".types")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        held = child.stdout.readline().strip()
        remove_left_over(tmp_path / "run")
        assert names(tmp_path) == [held]
        child.send_signal(signal.SIGKILL)

    remove_left_over(tmp_path / "run")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    [
        ".run.partial",
        ".run.0123ABCD.partial",
        ".run.0123abcd.partial.zip",
        "run.0123abcd.partial",
        ".run.0123abcd.ranks",
    ],
)
def test_what_has_another_name_is_not_ours(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()

    remove_left_over(tmp_path / "run")

    assert names(tmp_path) == [name]


def test_a_link_and_a_file_of_that_name_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / LEFT).symlink_to(tmp_path / "kept")
    (tmp_path / ".run.00000000.partial").touch()

    remove_left_over(tmp_path / "run")

    assert names(tmp_path) == [".run.00000000.partial", LEFT, "kept"]


def test_a_replaced_run_is_kept_while_nothing_stands_in_its_place(tmp_path: Path) -> None:
    old = write_run(tmp_path / "run").rename(tmp_path / OLD)

    remove_left_over(tmp_path / "run")
    assert names(tmp_path) == [old.name]

    shutil.copytree(old, tmp_path / "run")
    remove_left_over(tmp_path / "run")
    assert names(tmp_path) == ["run"]


def test_a_replaced_run_is_put_back_by_the_next_command_of_that_name(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "earlier").rename(tmp_path / OLD)

    with pytest.raises(UsageError, match="already exists"):
        write_run(tmp_path / "run")

    assert names(tmp_path) == ["run"]
    assert open_run(tmp_path / "run").kernels.collect()["name"].to_list() == ["earlier"]


def test_of_several_replaced_runs_the_latest_is_put_back(tmp_path: Path) -> None:
    for number, name in enumerate(("first", "last", "second")):
        old = write_run(tmp_path / name, name).rename(tmp_path / f".run.{number:08x}.old")
        os.utime(old, ns=(0, 9 if name == "last" else number))

    with pytest.raises(ZeroDivisionError):
        fail_midway(tmp_path / "run", ZeroDivisionError, overwrite=True)

    assert names(tmp_path) == ["run"]
    assert open_run(tmp_path / "run").kernels.collect()["name"].to_list() == ["last"]


def test_opening_a_run_that_was_replaced_by_none_says_where_it_is(tmp_path: Path) -> None:
    old = write_run(tmp_path / "run").rename(tmp_path / OLD)

    for command in ("analyze", "validate"):
        assert f"{old}; rename that to run" in refused(run(command, tmp_path / "run"))


def test_half_a_run_of_another_name_is_removed_too(tmp_path: Path) -> None:
    for path in (OTHER, ".empty.0123abcd.partial"):
        (tmp_path / path).mkdir()
    for file in ("kernels.rank3.parquet", "ops.parquet", "run.json", "trace.json", "rank1.json.gz"):
        (tmp_path / OTHER / file).touch()

    write_run(tmp_path / "run")

    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize("stranger", ["notes.txt", "parquet", "My.parquet", "folder/"])
def test_a_folder_of_another_name_that_holds_more_than_half_a_run_is_left_alone(
    stranger: str, tmp_path: Path
) -> None:
    (tmp_path / OTHER).mkdir()
    (tmp_path / OTHER / "ops.parquet").touch()
    path = tmp_path / OTHER / stranger
    if stranger.endswith("/"):
        path.mkdir()
    else:
        path.touch()

    write_run(tmp_path / "run")

    assert names(tmp_path / OTHER) == sorted(["ops.parquet", stranger.rstrip("/")])


def test_half_a_run_of_another_name_that_a_living_process_holds_is_left_alone(
    tmp_path: Path,
) -> None:
    with RunWriter(tmp_path / "other") as slow:
        slow.write(Kernels, [KERNEL])
        write_run(tmp_path / "run")

        assert names(slow.folder) == ["kernels.parquet"]


def test_without_locks_nothing_is_taken_for_left_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    (tmp_path / LEFT).mkdir()

    assert names(write_run(tmp_path / "run")) == ["kernels.parquet", "run.json"]
    assert names(tmp_path) == [LEFT, "run"]


def test_a_folder_taken_for_left_over_before_it_was_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    taken: list[Path] = []

    def once_too_late(opened: int, how: int) -> None:
        if not taken:
            taken.extend(tmp_path.iterdir())
            taken[0].rmdir()
        lock(opened, how)

    monkeypatch.setattr(fcntl, "flock", once_too_late)
    with partial_folder(tmp_path / "run") as folder:
        assert folder.is_dir()
        assert [folder] != taken


def test_what_a_killed_analyze_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    out = write_run(tmp_path / "run")
    (out / ".report.0123abcd.partial").mkdir()

    assert run("analyze", out).exit_code == 0

    assert names(out) == ["kernels.parquet", "report", "run.json"]
    write_run(out, overwrite=True)
    assert names(out) == ["kernels.parquet", "run.json"]
