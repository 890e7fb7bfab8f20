"""Several ranks that record one run: who meets whom, who is missing, and what is left."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT
from tests.test_recorder import loop
from whichwall.analyze.analysis import analyze_to_folder
from whichwall.collect.ranks import CALL, Launch, find_launch
from whichwall.schemas.errors import CollectError, UsageError
from whichwall.schemas.folder import rank_files
from whichwall.schemas.manifest import read_manifest
from whichwall.schemas.passes import Passes

# Far beyond what anything here takes; only a hang reaches it.
PATIENCE_S = 120.0
LAUNCHED = {
    "RANK": "0",
    "WORLD_SIZE": "2",
    "LOCAL_RANK": "0",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
}
SCRIPT = """
    import torch
    from whichwall.collect import record
    torch.distributed.init_process_group("gloo")
    total = torch.ones(4)
    with record("run", batch=1, warmup=1, clean=3, profiled=2, after=2) as run:
        for _ in range(12):
            torch.distributed.all_reduce(total)
            run.step()
    torch.distributed.destroy_process_group()
    """


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record a loop of two ranks under torchrun, for all tests that look at one."""
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "loop.py").write_text(textwrap.dedent(SCRIPT))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    subprocess.run(
        [*launcher, "--nproc-per-node", "2", "loop.py"],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": str(ROOT / ".types"), "OMP_NUM_THREADS": "1"},
    )
    return folder / "run"


def launch(monkeypatch: pytest.MonkeyPatch, **changed: str) -> Launch:
    for name, value in (LAUNCHED | changed).items():
        monkeypatch.setenv(name, value)
    return find_launch(os.environ)


def test_every_rank_has_its_tables_in_the_one_run(run: Path) -> None:
    assert [path.name for path in rank_files(run, Passes)] == [
        "passes.rank0.parquet",
        "passes.rank1.parquet",
    ]
    for rank, path in enumerate(rank_files(run, Passes)):
        table = pq.read_table(path)
        assert table[Passes.rank].to_pylist() == [rank] * 7
    assert sorted(path.name for path in run.parent.iterdir()) == ["loop.py", "run"]


def test_the_manifest_knows_every_rank_and_every_file(run: Path) -> None:
    manifest = read_manifest(run)

    assert [(r.rank, r.source, r.world_size) for r in manifest.ranks] == [
        (0, "collect", 2),
        (1, "collect", 2),
    ]
    assert sorted(manifest.files) == sorted(path.name for path in run.glob("*.parquet"))
    assert {d.message.split(":")[0] for d in manifest.diagnostics} == {"rank 0", "rank 1"}


def test_a_run_of_two_ranks_is_analyzed_rank_by_rank(run: Path, tmp_path: Path) -> None:
    inputs, _ = analyze_to_folder(run, tmp_path / "report")

    assert [(g.rank, g.phase) for g in inputs.summary.steps.groups] == [
        (0, "decode"),
        (1, "decode"),
    ]


def test_a_rank_that_never_comes_is_missed_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch(monkeypatch, WORLD_SIZE="3")

    loop(tmp_path / "run", 0, wait_s=0.1)

    manifest = read_manifest(tmp_path / "run")
    said = [(d.severity, d.count, d.message) for d in manifest.diagnostics
            if d.code == "missing_rank"]  # fmt: skip
    assert said == [("error", 2, "rank 1, 2 wrote no part within 0.1 s after rank 0 had ended")]
    assert [facts.rank for facts in manifest.ranks] == [0]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_rank_whose_part_nobody_takes_fails_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch(monkeypatch, RANK="1", LOCAL_RANK="1")

    with pytest.raises(CollectError, match="rank 1: rank 0 did not take its part"):
        loop(tmp_path / "run", 0, wait_s=0.1)

    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_launch_left_behind_is_no_part_and_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = launch(monkeypatch).meeting(tmp_path / "run")
    (meeting / "rank1.stale").mkdir(parents=True)
    (meeting / CALL).write_text("stale")

    loop(tmp_path / "run", 0, wait_s=0.1)

    assert [facts.rank for facts in read_manifest(tmp_path / "run").ranks] == [0]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_part_given_to_a_killed_launch_is_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = launch(monkeypatch, RANK="1").meeting(tmp_path / "run")
    meeting.mkdir()
    (meeting / CALL).write_text("stale")
    code = f"""
        import os
        from pathlib import Path
        from tests.test_recorder import loop
        loop(Path({str(tmp_path / "run")!r}), 0)
        """
    other = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": f"{ROOT / '.types'}{os.pathsep}{ROOT}"},
    )
    try:
        while not (meeting / "rank1.stale").is_dir() and other.poll() is None:
            time.sleep(0.02)
        launch(monkeypatch)
        loop(tmp_path / "run", 0, wait_s=PATIENCE_S)
        assert other.wait(PATIENCE_S) == 0
    finally:
        other.kill()
        other.wait()

    assert [facts.rank for facts in read_manifest(tmp_path / "run").ranks] == [0, 1]


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "here", "MASTER_PORT": "1"},
        {"RANK": "3", "WORLD_SIZE": "8"},
    ],
    ids=["none", "one rank", "no launcher"],
)
def test_a_process_that_nobody_launched_with_others_is_alone(variables: dict[str, str]) -> None:
    assert find_launch(variables) == Launch()


def test_two_launches_never_meet(tmp_path: Path) -> None:
    launches = [
        find_launch(LAUNCHED | {"TORCHELASTIC_RUN_ID": name, "RANK": rank})
        for name in ("a", "b")
        for rank in ("0", "1")
    ]

    assert [one.rank for one in launches] == [0, 1, 0, 1]
    assert len({one.meeting(tmp_path / "run") for one in launches}) == 2


@pytest.mark.parametrize(
    ("changed", "named"), [({"RANK": "2"}, "RANK=2"), ({"WORLD_SIZE": "many"}, "WORLD_SIZE=many")]
)
def test_variables_that_contradict_each_other_are_named(
    changed: dict[str, str], named: str
) -> None:
    with pytest.raises(UsageError, match=named):
        find_launch(LAUNCHED | changed)
