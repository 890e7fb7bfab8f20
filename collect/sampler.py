"""Sample a GPU with one long-lived nvidia-smi: started before the work, dead after it.

nvidia-smi writes a row per period into a pipe, and a thread reads them: a pipe that nobody reads
fills up and stops the writer. The child is in its own process group, dies with this process even
if that is killed, and is given up on rather than waited for.
"""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

import msgspec

from whichwall.collect.smi_fields import QUERY, TIMESTAMP, supported_fields
from whichwall.collect.smi_health import NS_PER_MS, diagnose, missing, sampler_facts
from whichwall.collect.smi_rows import NS_PER_S, SmiParser
from whichwall.schemas.diagnostics import Diagnostic, Severity
from whichwall.schemas.manifest import SamplerFacts

PROGRAM = "nvidia-smi"
# Printing the list of fields takes 20 ms; a driver that hangs must not hang us.
HELP_S = 10.0
# The first row comes after some 30 ms, or after seconds where the driver has to be loaded first.
FIRST_ROW_S = 10.0
# How long `finish` waits for a sample after the end of the work, and then for the child's death.
LAST_ROW_PERIODS, LAST_ROW_S = 3, 1.0
TERMINATE_S, KILL_S, READER_S = 0.3, 0.3, 0.2

# Asks the kernel to be killed when the parent (argument 1) ends, then becomes the program in the
# further arguments. A process of its own does it, since forking with a function to run in the
# child is not safe where threads are running, and torch has started many.
DIE_WITH_PARENT = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Samples:
    """What a sampler brought home."""

    rows: list[dict[str, object]]
    facts: SamplerFacts | None
    diagnostics: list[Diagnostic]


class _Child:
    """One nvidia-smi and the thread that reads it."""

    def __init__(self, command: Sequence[str], fields: Sequence[str]) -> None:
        """Start both."""
        self.parser = SmiParser(fields)
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.ended = False
        self._lines = 0
        self.process = subprocess.Popen(
            tied_to_us(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TZ": "UTC", "LC_ALL": "C"},
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self._read, name="nvidia-smi reader", daemon=True)
        self.reader.start()
        atexit.register(self.kill)

    def _read(self) -> None:
        assert self.process.stdout is not None
        pipe: IO[bytes] = self.process.stdout
        for raw in iter(pipe.readline, b""):
            received_ns = time.time_ns()
            line = raw.decode("utf-8", "replace")
            with self.changed:
                self._lines += 1
                if line.endswith("\n"):
                    self.parser.feed(self._lines, line.rstrip("\r\n"), received_ns)
                else:
                    self.parser.reject(self._lines, line)
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait_for(self, done: Callable[[SmiParser], bool], seconds: float) -> bool:
        """Wait until what has been read satisfies `done`, the child has ended or time is up."""
        with self.changed:
            self.changed.wait_for(lambda: done(self.parser) or self.ended, timeout=seconds)
            return done(self.parser)

    def end(self) -> None:
        """Ask the child to end, then make it; a child that cannot die is left behind."""
        for sign, seconds in ((signal.SIGTERM, TERMINATE_S), (signal.SIGKILL, KILL_S)):
            if self._signal(sign):
                break
            try:
                self.process.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                continue
        self.reader.join(READER_S)
        if not self.reader.is_alive() and self.process.stdout is not None:
            self.process.stdout.close()
        atexit.unregister(self.kill)

    def kill(self) -> None:
        """Kill the child's group at once."""
        if not self._signal(signal.SIGKILL):
            try:
                self.process.wait(KILL_S)
            except subprocess.TimeoutExpired:
                return

    def _signal(self, sign: signal.Signals) -> bool:
        """Signal the child's group; return whether it had ended already."""
        if self.process.poll() is not None:
            return True
        try:
            os.killpg(self.process.pid, sign)
        except ProcessLookupError:
            return True
        return False


def tied_to_us(command: Sequence[str]) -> list[str]:
    """Return the command so that it dies with this process, where the platform has the means."""
    if sys.platform != "linux" or not sys.executable:
        return list(command)
    return [sys.executable, "-I", "-S", "-c", DIE_WITH_PARENT, str(os.getpid()), *command]


class Sampler:
    """Sample one GPU from `start` to `finish`, inside a block that leaves no child behind."""

    def __init__(self, uuid: str | None, interval_ms: int) -> None:
        """Prepare; nothing runs yet."""
        self.uuid = uuid
        self.interval_ms = interval_ms
        self.refused: list[str] = []
        self._child: _Child | None = None
        self._why_none = "not started"

    def __enter__(self) -> "Sampler":
        """Promise an end to whatever `start` starts."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child, if `finish` has not."""
        if self._child is not None:
            self._child.end()

    @property
    def why_none(self) -> str | None:
        """Say why nothing is sampled; None between a `start` that worked and `finish`."""
        return self._why_none if self._child is None else None

    def start(self) -> None:
        """Start nvidia-smi, dropping fields that it refuses, and wait for a first row."""
        program = shutil.which(PROGRAM)
        if self.uuid is None or program is None:
            self._why_none = "no GPU" if self.uuid is None else f"no {PROGRAM} on the path"
            return
        fields = self._supported(program)
        while fields:
            self._child = child = self._spawn(program, fields)
            if child is None or child.wait_for(lambda parser: bool(parser.values), FIRST_ROW_S):
                return
            child.end()
            self._child = None
            dropped = [e.field for e in child.parser.events if e.field in fields]
            if not dropped or TIMESTAMP in dropped:
                self._why_none = _why_silent(child)
                return
            self.refused += [name for name in dropped if name]
            fields = [name for name in fields if name not in dropped]

    def _supported(self, program: str) -> list[str]:
        """Return the fields to ask for, as this driver spells them."""
        try:
            said = subprocess.run(
                [program, "--help-query-gpu"],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=HELP_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return list(QUERY)
        known = supported_fields(said.stdout.decode("utf-8", "replace"))
        if TIMESTAMP not in known:
            return list(QUERY)
        self.refused = [name for name in QUERY if name not in known]
        return [known[name] for name in QUERY if name in known]

    def _spawn(self, program: str, fields: Sequence[str]) -> _Child | None:
        command = [
            program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits",
            "-lms", str(self.interval_ms), "-i", str(self.uuid),
        ]  # fmt: skip
        try:
            return _Child(command, fields)
        except (OSError, subprocess.SubprocessError) as error:
            self._why_none = f"{PROGRAM} cannot be started ({error})"
            return None

    def rows(self) -> list[dict[str, object]]:
        """Return the samples so far, as the samples table has them."""
        if self._child is None:
            return []
        with self._child.lock:
            return self._child.parser.sample_rows()

    def finish(self) -> Samples:
        """Wait for one sample after this moment, end the child, and return the samples."""
        if self._child is None:
            severity: Severity = "info" if self.uuid is None else "warning"
            return Samples([], None, [missing(self._why_none, severity)])
        child, self._child = self._child, None
        end_ns = time.time_ns()
        limit = min(LAST_ROW_S, LAST_ROW_PERIODS * self.interval_ms * NS_PER_MS / NS_PER_S + 0.1)
        after = child.wait_for(lambda parser: _received_after(parser, end_ns), limit)
        status = child.process.poll()
        child.end()
        with child.lock:
            facts = sampler_facts(child.parser, PROGRAM, self.interval_ms)
            found = diagnose(child.parser, self.interval_ms * NS_PER_MS)
            rows = child.parser.sample_rows()
            silent = None if after else _silence(child.parser, end_ns, status)
        facts = msgspec.structs.replace(facts, fields_refused=self.refused + facts.fields_refused)
        return Samples(rows, facts, found + ([silent] if silent else []))


def _received_after(parser: SmiParser, end_ns: int) -> bool:
    last = parser.received_ns[-1] if parser.received_ns else None
    return last is not None and last > end_ns


def _silence(parser: SmiParser, end_ns: int, status: int | None) -> Diagnostic | None:
    """Return a diagnostic of samples that stop before the work does."""
    last = parser.received_ns[-1] if parser.received_ns else None
    if last is None:
        return None
    what = "was silent for" if status is None else f"ended by itself (status {status})"
    seconds = (end_ns - last) / NS_PER_S
    text = f"{PROGRAM} {what}{'' if status is None else ','} {seconds:.1f} s before the work did"
    return Diagnostic("sampler_gap", "error", 1, text)


def _why_silent(child: _Child) -> str:
    """Return why a child gave no row: what it said, else its status."""
    if child.parser.events:
        return f"{PROGRAM} gave no sample ({child.parser.events[0].kind})"
    status = child.process.poll()
    return f"{PROGRAM} gave no sample within {FIRST_ROW_S:.0f} s (status {status})"
