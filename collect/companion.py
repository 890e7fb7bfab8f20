"""A process that answers one question after another, and waits without work in between.

For what has to stay in a process of its own for a whole run: an engine that changes its process,
and takes a minute to start. The function is named `module:function`; it takes a specification
(JSON), and returns what answers a question. A crash, a hang and an error are one line to the
caller, as in `fresh`.
"""

import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from whichwall.collect.fresh import ERROR, VALUE, Json, end, how_it_ended
from whichwall.collect.sampler import tied_to_us
from whichwall.schemas.errors import CollectError, WhichwallError

Answerer = Callable[[Json], Any]
CHUNK_BYTES = 1 << 16


class Companion:
    """One such process; `close` ends it."""

    def __init__(self, function: str, spec: Json) -> None:
        """Start it; it reads its specification and waits.

        Args:
            function: `module:function`, importable from anywhere.
            spec: its argument; must survive JSON.
        """
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        command = [sys.executable, "-m", "whichwall.collect.companion", function]
        # A group of its own, so that Ctrl-C reaches this process alone, and its helpers end too.
        self._process = subprocess.Popen(
            tied_to_us(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            start_new_session=True,
        )
        self._read = b""
        self._write(spec)

    def ask(self, question: Json, seconds: float) -> Any:
        """Return the answer to a question.

        Raises:
            CollectError: it failed, crashed, or did not answer in time; the text says how.
        """
        self._write(question)
        found: Json = json.loads(self._line(time.monotonic() + seconds, seconds))
        if ERROR in found:
            raise CollectError(found[ERROR])
        return found[VALUE]

    def close(self) -> None:
        """End the process and whatever it started."""
        end(self._process)
        self._said.close()

    def _write(self, value: Json) -> None:
        assert self._process.stdin is not None
        # One that has crashed is found out by its missing answer.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            self._process.stdin.flush()

    def _line(self, deadline: float, seconds: float) -> bytes:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._read:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise CollectError(f"its process did not answer within {seconds:.0f} s")
            chunk = os.read(pipe, CHUNK_BYTES)
            if not chunk:
                self._process.wait()
                self._said.seek(0)
                raise CollectError(how_it_ended(self._process.returncode, self._said.read()))
            self._read += chunk
        line, _, self._read = self._read.partition(b"\n")
        return line


def main(function: str) -> None:
    """Answer questions, a line each, until there are no more."""
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    module, _, name = function.partition(":")
    spec = json.loads(sys.stdin.readline())
    answer: Answerer | None = None
    for line in sys.stdin:
        try:
            if answer is None:
                answer = getattr(importlib.import_module(module), name)(spec)
            found = {VALUE: answer(json.loads(line))}
        except WhichwallError as error:
            found = {ERROR: str(error)}
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
    sys.stderr.flush()
    os._exit(0)  # as in `fresh`: it has nothing left to clear up
