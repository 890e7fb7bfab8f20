"""Functions in a process of their own: their values, and how each way to fail is told."""

import os
from pathlib import Path

import pytest

from tests.conftest import ROOT
from whichwall.collect.fresh import run_fresh
from whichwall.schemas.errors import CollectError

# Far beyond what anything here takes; only a hang reaches it.
PATIENCE_S = 120.0
FUNCTIONS = """
import os, signal, time
from whichwall.schemas.errors import CollectError

def double(spec, folder):
    (folder / "seen").touch()
    return {"twice": 2 * spec["number"], "pid": os.getpid()}

def die(spec, folder):
    os.kill(os.getpid(), signal.SIGKILL)

def fail(spec, folder):
    raise ValueError("launch failure")

def explain(spec, folder):
    raise CollectError("the card is gone; mend it")

def hang(spec, folder):
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "functions_of_a_test.py").write_text(FUNCTIONS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT / '.types'}")


def fresh(name: str, folder: Path, seconds: float = PATIENCE_S) -> object:
    return run_fresh(f"functions_of_a_test:{name}", {"number": 21}, folder, seconds)


def test_a_value_comes_back_from_another_process_and_files_stay(tmp_path: Path) -> None:
    found = fresh("double", tmp_path)

    assert isinstance(found, dict)
    assert found["twice"] == 42
    assert found["pid"] != os.getpid()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["functions_of_a_test.py", "seen"]


def test_an_explained_failure_keeps_its_words(tmp_path: Path) -> None:
    with pytest.raises(CollectError, match=r"^the card is gone; mend it$"):
        fresh("explain", tmp_path)


def test_an_error_is_told_by_its_last_line(tmp_path: Path) -> None:
    with pytest.raises(CollectError, match=r"ended with status 1 .*\(ValueError: launch failure\)"):
        fresh("fail", tmp_path)


def test_a_crash_is_told_by_its_signal(tmp_path: Path) -> None:
    with pytest.raises(CollectError, match="ended by signal 9 before it was done"):
        fresh("die", tmp_path)


def test_a_hang_is_ended(tmp_path: Path) -> None:
    with pytest.raises(CollectError, match="did not end within 1 s"):
        fresh("hang", tmp_path, seconds=1.0)
