"""The journal of a sweep: what is written is read again, and what is broken is told."""

import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from whichwall.collect.collect import collect
from whichwall.collect.journal import (
    FILE,
    Bench,
    Header,
    Journal,
    Visit,
    alone,
    asked_before,
    begin,
    folder_of,
    kept,
    refuse_another,
    resume,
)
from whichwall.collect.options import CollectOptions
from whichwall.schemas.errors import InputError, UsageError
from whichwall.schemas.model import Model

OPTIONS = CollectOptions(mode="batch", values="1,2", model="tiny", quick=True)
MODEL = Model("toy", "toy", 32, 80, 2, 4, 2, 8, 500)
BENCH = Bench("0.1", "2.11", "5.17", "card", "GPU-1", MODEL)
HEADER = Header(kept(OPTIONS), 1_700_000_000_000_000_001, BENCH, [{"point": 0}, {"point": 1}])
FIRST = Visit(
    0, 0, "done", setup_ns=5, memory_bytes=7,
    passes=[{"wall_ns": 1_234_567_890_123_456_789, "gpu_ns": None}],
    samples=[{"power_w": 71.30000000000001}],
)  # fmt: skip
SECOND = Visit(1, 0, "refused", "no kernel")


@pytest.fixture
def written(tmp_path: Path) -> Journal:
    journal = begin(tmp_path / "run", HEADER)
    journal.add(FIRST)
    journal.add(SECOND)
    return journal


def test_a_journal_is_read_as_it_was_written(written: Journal, tmp_path: Path) -> None:
    for asked in ("run", "run.unfinished"):
        found = resume(tmp_path / asked)

        assert (found.out, found.header, found.visits) == (written.out, HEADER, [FIRST, SECOND])


def test_options_come_back_with_the_destination_where_the_journal_lies(written: Journal) -> None:
    assert asked_before(written) == replace(OPTIONS, out=written.out, resume=written.out)


def test_a_half_written_last_line_is_dropped_for_good(written: Journal, tmp_path: Path) -> None:
    path = written.folder / FILE
    whole = path.read_bytes()
    path.write_bytes(whole + msgspec.json.encode(FIRST)[:40])

    found = resume(tmp_path / "run")

    assert found.visits == [FIRST, SECOND]
    found.add(FIRST)
    assert path.read_bytes() == whole + msgspec.json.encode(FIRST) + b"\n"


def test_a_broken_line_before_the_last_is_no_journal(written: Journal, tmp_path: Path) -> None:
    path = written.folder / FILE
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], lines[1][:40], *lines[2:]]))

    with pytest.raises(InputError, match="line 2 is not of a journal"):
        resume(tmp_path / "run")


def test_a_visit_is_missing_unless_it_is_there_or_its_point_has_ended(written: Journal) -> None:
    visits = [(point, visit) for point in (0, 1) for visit in (0, 1)]

    assert [one for one in visits if not written.has(*one)] == [(0, 1)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"torch": "2.13"}, "was begun with another torch (2.11, here it is 2.13)"),
        ({"gpu_uuid": "GPU-2"}, "was begun with another gpu_uuid (GPU-1, here it is GPU-2)"),
        ({"model": Model("toy", "toy", 64, 80, 2, 4, 2, 8, 500)}, "another model (its dimensions"),
    ],
)
def test_another_bench_is_refused(
    written: Journal, changed: dict[str, object], message: str
) -> None:
    here = msgspec.structs.replace(HEADER, bench=msgspec.structs.replace(BENCH, **changed))

    with pytest.raises(UsageError) as refused:
        refuse_another(written, here)

    assert message in str(refused.value)


def test_what_somebody_else_put_beside_a_journal_stays(written: Journal) -> None:
    (written.folder / "notes.txt").touch()

    written.remove()

    assert [path.name for path in written.folder.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("asked", ["run", "/"])
def test_nothing_to_go_on_with_is_one_line(asked: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sweep to go on with"):
        collect(CollectOptions(resume=tmp_path / asked))


@pytest.mark.skipif(sys.platform == "win32", reason="no locks on folders")
def test_one_process_at_a_time_measures_a_sweep(written: Journal) -> None:
    with (
        alone(written.out),
        pytest.raises(UsageError, match="another process is measuring this sweep"),
        alone(written.out),
    ):
        pass

    with alone(written.out):
        assert resume(written.out).visits == [FIRST, SECOND]


def test_a_sweep_that_began_no_journal_leaves_nothing(tmp_path: Path) -> None:
    with alone(tmp_path / "run"):
        pass

    assert list(tmp_path.iterdir()) == []


def test_going_on_takes_no_other_option(written: Journal) -> None:
    with pytest.raises(UsageError, match="--resume goes on as asked for before"):
        collect(CollectOptions(resume=written.out, mode="batch"))


def test_a_second_sweep_to_the_same_place_is_told_both_ways_on(written: Journal) -> None:
    with pytest.raises(UsageError, match=r"unfinished sweep .*--resume .*--overwrite"):
        collect(CollectOptions(mode="output", out=written.out))

    assert folder_of(written.out).is_dir()
