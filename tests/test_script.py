"""`whichwall collect -- …`: a script that records itself, how it ends, and who is told."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.conftest import ROOT
from whichwall.cli import main
from whichwall.collect.script import NOTE, OUT, default_out
from whichwall.schemas.manifest import read_manifest

# Far beyond what anything here takes; only a hang reaches it.
PATIENCE_S = 120.0
# What record() does at its end, without what it costs to import torch.
NOTES = """
    import os
    from pathlib import Path
    from whichwall.collect.script import OUT, note_run
    note_run(os.environ, Path(os.environ[OUT]))
    """
RECORDS = """
    import sys
    import torch
    from whichwall.collect import record
    with record(warmup=0, clean=1, profiled=1, after=1) as run:
        for _ in range(int(sys.argv[1])):
            torch.ones(4).add(1)
            run.step()
    """


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder of its own, where scripts find whichwall."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / ".types"))
    for name in (OUT, NOTE, "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def script(text: str) -> str:
    Path("job.py").write_text(textwrap.dedent(text))
    return "job.py"


def collect(*words: str) -> Result:
    return CliRunner().invoke(main, ["collect", *words])


def refused(result: Result) -> str:
    """Check the form of a refusal and return its line."""
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert result.stdout == ""
    return line


def test_a_script_is_recorded_where_the_command_says() -> None:
    result = collect("--out", "mine", "--", sys.executable, script(RECORDS), "9")

    assert (result.exit_code, result.stdout) == (0, "mine\n")
    assert read_manifest(Path("mine")).command.endswith(" in job.py")


def test_without_out_a_run_is_named_after_its_script() -> None:
    result = collect("--", sys.executable, script(NOTES))

    assert result.stdout.startswith("traces/record-job-")
    assert default_out(["torchrun", "--nproc-per-node=2", "a/train.py", "b.py"]).match(
        "traces/record-train-*"
    )


def test_a_script_that_names_a_folder_has_its_way_and_that_is_said() -> None:
    text = NOTES.replace("os.environ[OUT]", '"other"')

    result = collect("--out", "mine", "--", sys.executable, script(text))

    assert result.stdout == f"{Path('other').absolute()}\n"
    assert "--out mine was not used" in result.stderr


def test_a_script_that_fails_is_one_line_with_its_exit_code() -> None:
    line = refused(collect("--", sys.executable, script("raise SystemExit(7)")))

    assert line == "whichwall: job.py: failed with exit code 7; no run was recorded"


def test_a_script_that_fails_after_its_run_names_the_run() -> None:
    text = textwrap.dedent(NOTES) + "raise SystemExit(1)"

    line = refused(collect("--out", "mine", "--", sys.executable, script(text)))

    assert line == "whichwall: job.py: failed with exit code 1; it had recorded mine"


def test_a_script_that_is_killed_is_told_by_its_signal() -> None:
    text = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"

    assert "was ended by SIGKILL" in refused(collect("--", sys.executable, script(text)))


def test_a_script_that_never_records_is_told_what_it_lacks() -> None:
    assert "run.step()" in refused(collect("--", sys.executable, script("print('no words')")))


@pytest.mark.parametrize(
    "words", [["--mode", "prefill"], ["--model", "tiny"], ["--sample-interval-ms", "100"]]
)
def test_an_option_that_the_script_decides_is_refused(words: list[str]) -> None:
    line = refused(collect(*words, "--", sys.executable, script("print(1)")))

    assert f"{words[0]}: does not go with a script" in line


def test_a_program_that_is_not_there_is_named() -> None:
    assert "no-such-program: no such program" in refused(collect("--", "no-such-program", "x.py"))


def test_a_run_that_is_there_is_kept_unless_overwritten_and_the_script_not_run() -> None:
    Path("mine").mkdir()
    (Path("mine") / "thesis.txt").touch()

    line = refused(collect("--out", "mine", "--", sys.executable, script("open('ran', 'w')")))

    assert "already exists" in line
    assert not Path("ran").exists()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_an_interrupt_reaches_the_script_once_and_is_waited_for(sign: signal.Signals) -> None:
    text = """
        import time
        from pathlib import Path
        Path("began").touch()
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            time.sleep(0.5)
            Path("tidied").touch()
            raise
        """
    parent = subprocess.Popen(
        [sys.executable, "-m", "whichwall.cli", "collect", "--", sys.executable, script(text)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    )
    deadline = time.monotonic() + PATIENCE_S
    while not Path("began").exists() and time.monotonic() < deadline:
        time.sleep(0.02)

    parent.send_signal(sign)
    _, said = parent.communicate(timeout=PATIENCE_S)

    assert parent.returncode == 130
    assert said.splitlines()[-1] == b"whichwall: interrupted; nothing was left behind"
    assert Path("tidied").exists()
