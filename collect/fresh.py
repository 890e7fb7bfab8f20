"""Run one function in a fresh interpreter: what it does to the process ends with it.

A profiler changes every later launch of its process, and a captured graph can crash under it. The
function is named `module:function`, takes a specification (JSON) and a folder for files, and
returns what JSON can hold; a crash, a hang and an error are one line to the caller.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from whichwall.collect.sampler import tied_to_us
from whichwall.schemas.errors import CollectError, WhichwallError

Json = dict[str, Any]

RESULT_FILE = "result.json"
VALUE, ERROR = "value", "error"
# Of what a process that crashed wrote last; the cause stands at the end.
LONGEST_CAUSE = 200


def run_fresh(function: str, spec: Json, folder: Path, seconds: float) -> Any:
    """Run `function` in a new process and return its value; nothing of it is left running.

    Args:
        function: `module:function`, importable from anywhere.
        spec: its first argument; must survive JSON.
        folder: its second argument, where its files go; it must exist.
        seconds: after that long it hangs, and is killed.

    Raises:
        CollectError: it failed, crashed or hung; the text says how.
    """
    result = folder / RESULT_FILE
    result.unlink(missing_ok=True)
    command = [sys.executable, "-m", "whichwall.collect.fresh", function, str(folder)]
    # A group of its own, so that Ctrl-C reaches this process alone, and its helpers end with it.
    process = subprocess.Popen(
        tied_to_us(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, said = process.communicate(json.dumps(spec).encode(), timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise CollectError(f"its process did not end within {seconds:.0f} s") from error
    finally:
        end(process)
    if not result.is_file():
        raise CollectError(how_it_ended(process.returncode, said))
    found: Json = json.loads(result.read_bytes())
    result.unlink()
    if ERROR in found:
        raise CollectError(found[ERROR])
    return found[VALUE]


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and whatever it started; an ended one has at most helpers left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def how_it_ended(status: int, said: bytes) -> str:
    """Return in a sentence how a process ended, with the last line that it wrote."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    cause = f" ({lines[-1][:LONGEST_CAUSE]})" if lines else ""
    how = f"with status {status}" if status >= 0 else f"by signal {-status}"
    return f"its process ended {how} before it was done{cause}"


def main(function: str, folder: Path) -> None:
    """Run the function in this process, the fresh one, and leave its value as a file."""
    module, _, name = function.partition(":")
    spec: Json = json.load(sys.stdin)
    try:
        found = {VALUE: getattr(importlib.import_module(module), name)(spec, folder)}
    except WhichwallError as error:
        found = {ERROR: str(error)}
    half = folder / f"{RESULT_FILE}.half"
    half.write_text(json.dumps(found))
    half.rename(folder / RESULT_FILE)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
    sys.stderr.flush()
    # CUPTI is taken down within the next CUDA call; on an H200 a process that profiled and made
    # no more of them hung when it ended. This one ends without clearing up.
    os._exit(0)
