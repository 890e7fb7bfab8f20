"""A process that answers questions: its answers, and how each way to fail is told."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from whichwall.collect.companion import Companion
from whichwall.schemas.errors import CollectError

# Far beyond what anything here takes; only a hang reaches it.
PATIENCE_S = 120.0
FUNCTIONS = """
import os, signal, time
from whichwall.schemas.errors import CollectError

def counter(spec):
    seen = []
    def answer(question):
        print("noise of a library")
        seen.append(question["number"])
        return {"sum": spec["start"] + sum(seen), "pid": os.getpid()}
    return answer

def explain(spec):
    raise CollectError("the card is gone; mend it")

def hang(spec):
    return lambda question: time.sleep(600)

def die(spec):
    return lambda question: os.kill(os.getpid(), signal.SIGKILL)

def fail(spec):
    raise ValueError("launch failure")
"""


@pytest.fixture(autouse=True)
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "functions_of_a_companion.py").write_text(FUNCTIONS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT / '.types'}")


@pytest.fixture
def companion(request: pytest.FixtureRequest) -> Iterator[Companion]:
    named: str = request.param
    one = Companion(f"functions_of_a_companion:{named}", {"start": 1})
    yield one
    one.close()


@pytest.mark.parametrize("companion", ["counter"], indirect=True)
def test_one_process_answers_every_question_and_keeps_what_it_knows(companion: Companion) -> None:
    first, second = (companion.ask({"number": n}, PATIENCE_S) for n in (20, 300))

    assert (first["sum"], second["sum"]) == (21, 321)
    assert first["pid"] == second["pid"] != os.getpid()


@pytest.mark.parametrize("companion", ["explain"], indirect=True)
def test_an_explained_failure_keeps_its_words_however_often_it_is_asked(
    companion: Companion,
) -> None:
    for _ in range(2):
        with pytest.raises(CollectError, match=r"^the card is gone; mend it$"):
            companion.ask({}, PATIENCE_S)


@pytest.mark.parametrize("companion", ["fail"], indirect=True)
def test_an_error_is_told_by_its_last_line(companion: Companion) -> None:
    with pytest.raises(CollectError, match=r"ended with status 1 .*\(ValueError: launch failure\)"):
        companion.ask({}, PATIENCE_S)


@pytest.mark.parametrize("companion", ["die"], indirect=True)
def test_a_crash_is_told_by_its_signal(companion: Companion) -> None:
    with pytest.raises(CollectError, match="ended by signal 9"):
        companion.ask({}, PATIENCE_S)


@pytest.mark.parametrize("companion", ["hang"], indirect=True)
def test_one_that_does_not_answer_is_told_so(companion: Companion) -> None:
    with pytest.raises(CollectError, match=r"did not answer within 2 s"):
        companion.ask({}, 2.0)
