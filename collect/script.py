"""Run a script that records itself: `whichwall collect -- python script.py`.

The script's `record(…)` learns from variables where its run goes, and notes each run it finishes
in a file that only lives meanwhile.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from whichwall.collect.options import TRACES, slug
from whichwall.schemas.errors import CollectError, UsageError
from whichwall.schemas.folder import RunWriter

OUT, OVERWRITE, NOTE = "WHICHWALL_OUT", "WHICHWALL_OVERWRITE", "WHICHWALL_NOTE"
RECORDED = "record"
# What each further interrupt sends: a program that does not end by itself is made to.
URGES = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True)
class Asked:
    """What `whichwall collect -- …` asks of a script's record()."""

    out: Path | None = None
    overwrite: bool = False


def asked_by(variables: Mapping[str, str]) -> Asked:
    """Return what the command that runs this script asks for; nothing without one."""
    out = variables.get(OUT)
    return Asked(Path(out), bool(variables.get(OVERWRITE))) if out else Asked()


def note_run(variables: Mapping[str, str], run: Path) -> None:
    """Tell the command that runs this script, if any, of a run that is in place."""
    if note := variables.get(NOTE):
        with Path(note).open("a", encoding="utf-8") as file:
            file.write(f"{run.absolute()}\n")


def default_out(command: Sequence[str]) -> Path:
    """Return where the run of a script goes: traces/record-<script>-<time>."""
    utc = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return TRACES / f"{RECORDED}-{slug(Path(script_of(command)).stem)}-{utc}"


def script_of(command: Sequence[str]) -> str:
    """Return the script's name without its folder: the first Python file, else the program."""
    named = [word for word in command if word.endswith(".py")]
    return Path((named or list(command))[0]).name


def run_script(command: Sequence[str], out: Path | None, *, overwrite: bool) -> list[Path]:
    """Run a command to its end and return the runs that it recorded, in order.

    Raises:
        UsageError: no such program, or a run is where this one should go.
        CollectError: the command failed, or recorded nothing.
    """
    where = RunWriter(out or default_out(command), overwrite=overwrite).out
    program = shutil.which(command[0])
    if program is None:
        raise UsageError(
            f"{command[0]}: no such program; a script is run as whichwall collect -- python "
            "SCRIPT; see whichwall collect --help"
        )
    with tempfile.TemporaryDirectory(prefix="whichwall-") as folder:
        note = Path(folder) / "runs"
        variables = {OUT: str(where.absolute()), NOTE: str(note)}
        if overwrite:
            variables[OVERWRITE] = "1"
        code = _run([program, *command[1:]], variables)
        runs = _noted(note, where)
    script = script_of(command)
    wrote = f"; it had recorded {', '.join(map(str, runs))}" if runs else "; no run was recorded"
    if code:
        raise CollectError(f"{script}: {_how_ended(code)}{wrote}")
    if not runs:
        raise CollectError(
            f"{script}: ended without a run; expected `with record(…) as run:` of "
            "whichwall.collect around its loop, and run.step() after each step"
        )
    return runs


def _run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a command and return its exit status, a signal's as a negative number.

    It runs in a session of its own, so that Ctrl-C reaches it once: through us.
    """
    urges = iter(URGES)
    with subprocess.Popen(
        command, env={**os.environ, **variables}, start_new_session=True
    ) as child:
        interrupted = False
        while True:
            try:
                code = child.wait()
                break
            except KeyboardInterrupt:
                interrupted = True
                _signal_group(child, next(urges, signal.SIGKILL))
    if interrupted:
        raise KeyboardInterrupt
    return code


def _signal_group(child: subprocess.Popen[bytes], sign: signal.Signals) -> None:
    try:
        os.killpg(child.pid, sign)
    except ProcessLookupError:
        return


def _noted(note: Path, where: Path) -> list[Path]:
    """Return the runs that were noted; the expected one as it was asked for."""
    if not note.is_file():
        return []
    runs = [Path(line) for line in note.read_text(encoding="utf-8").splitlines()]
    return [where if run == where.absolute() else run for run in runs]


def _how_ended(code: int) -> str:
    if code > 0:
        return f"failed with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
