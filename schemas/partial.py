"""The hidden folder in which a run or a report is made: locked for as long as its maker lives.

A killed process leaves its folder, and its lock goes with it: so the next one that makes the same
run or report can tell what is left over, and removes it. The lock is on the folder itself, which
puts nothing into it, and stays with it when it is renamed.

Where a file system has no locks (Windows, some network drives) nothing is taken for left over.
"""

import errno
import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

SUFFIX, REPLACED = "partial", "old"
# Between making a folder and locking it another process may take it for left over, once.
TRIES = 5


@contextmanager
def partial_folder(out: Path) -> Iterator[Path]:
    """Make a hidden folder beside `out`; whatever is left of it at the end of the block is removed.

    What killed processes left of the same destination is removed first.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    remove_left_over(out)
    folder, lock = _make(out)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def remove_left_over(out: Path) -> None:
    """Remove what killed processes left of this destination: half of a new one, a replaced one.

    A replaced one is kept while nothing stands in its place.
    """
    name = re.escape(out.name)
    half, old = (re.compile(rf"\.{name}\.[0-9a-f]{{8}}\.{end}") for end in (SUFFIX, REPLACED))
    for path in sorted(out.parent.iterdir()):
        if path.is_symlink() or not path.is_dir():
            continue
        if old.fullmatch(path.name) and out.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif half.fullmatch(path.name):
            with suppress(OSError):  # its maker lives, or there are no locks
                lock = lock_folder(path)
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _make(out: Path) -> tuple[Path, int | None]:
    for _ in range(TRIES):
        # Not the process id: in a container the next process may have the same one.
        folder = out.parent / f".{out.name}.{uuid.uuid4().hex[:8]}.{SUFFIX}"
        folder.mkdir()
        try:
            lock = lock_folder(folder)
        except (BlockingIOError, FileNotFoundError):
            continue
        except OSError:
            return folder, None
        if folder.is_dir():
            return folder, lock
        os.close(lock)
    raise FileNotFoundError(
        errno.ENOENT, "its hidden folder is removed as soon as it is made", str(out)
    )


def lock_folder(folder: Path) -> int:
    """Lock a folder for this process until the returned descriptor is closed.

    Raises:
        BlockingIOError: another process has it.
        OSError: there is no such folder, or there are no locks here.
    """
    if sys.platform == "win32":
        raise OSError(errno.ENOTSUP, "no locks on folders", str(folder))
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        raise
    return opened
