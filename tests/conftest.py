"""What tests share: where things are, runs to write, and the check that nothing keeps running."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Traces of other tools, too large to commit; a checkout may have them beside it.
SHARED = ROOT.parent / "shared"

# A child that was told to end may need a moment; one that was forgotten stays.
CHILD_GRACE_S = 2.0


@pytest.fixture
def shared() -> Path:
    """Return the folder of handed traces, or skip."""
    if not SHARED.is_dir():
        pytest.skip("no handed traces: ../shared is absent")
    return SHARED


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fail a test that leaves a thread of ours or a child process behind."""
    threads, children = set(threading.enumerate()), _children()
    yield
    left = [t.name for t in set(threading.enumerate()) - threads if _ours(t)]
    assert not left, f"threads left running: {left}"
    deadline = time.monotonic() + CHILD_GRACE_S
    while (alive := _children() - children) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive, f"child processes left running: {sorted(alive)}"


def _ours(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    modules = (type(thread).__module__, getattr(target, "__module__", None) or "")
    return any(module.partition(".")[0] == "whichwall" for module in modules)


def _children() -> set[str]:
    """Return command lines of living children; none where /proc does not tell."""
    found = set()
    for path in Path("/proc/self/task").glob("*/children"):
        try:
            pids = path.read_text().split()
        except OSError:  # the thread has ended since it was listed
            continue
        for pid in pids:
            try:
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            except OSError:
                continue
            if state != "Z" and b"resource_tracker" not in command:
                found.add(f"{pid} {os.fsdecode(command)}")
    return found
