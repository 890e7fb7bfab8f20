"""The hidden folder in which a run or a report is made: locked for as long as its maker lives.

A killed process leaves its folder, and its lock goes with it: so the next one that makes a run or a
report beside it can tell what is left over, and removes it. The lock is on the folder itself, which
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
LEFT = re.compile(rf"\.(.+)\.[0-9a-f]{{8}}\.({SUFFIX}|{REPLACED})", re.DOTALL)
# What collect and import write into the folder of a run that is not finished: tables and traces.
OF_A_RUN = re.compile(r"[a-z_]+(\.rank\d+)?\.parquet|[a-z]+\d*\.json(\.gz)?")
# Between making a folder and locking it another process may take it for left over, once.
TRIES = 5


@contextmanager
def partial_folder(out: Path) -> Iterator[Path]:
    """Make a hidden folder beside `out`; whatever is left of it at the end of the block is removed.

    What killed processes left there is removed first.
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
    """Remove what killed processes left beside this destination: half folders, replaced ones.

    Half a run of another name goes too, since a name with a time in it does not come again. A
    replaced folder is kept while nothing stands in its place.
    """
    for path in sorted(out.parent.iterdir()):
        match = LEFT.fullmatch(path.name)
        if match is None or path.is_symlink() or not path.is_dir():
            continue
        name, kind = match.groups()
        if kind == SUFFIX:
            with suppress(OSError):  # its maker lives, or there are no locks
                lock = lock_folder(path)
                try:
                    if name == out.name or _is_half_run(path):
                        shutil.rmtree(path, ignore_errors=True)
                finally:
                    os.close(lock)
        elif name == out.name and out.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def _is_half_run(folder: Path) -> bool:
    return all(OF_A_RUN.fullmatch(path.name) and path.is_file() for path in folder.iterdir())


def find_replaced(out: Path) -> Path | None:
    """Return what a killed process set aside for another folder that it did not put in place."""
    if out.exists():
        return None
    try:
        left = [
            (path.stat().st_mtime_ns, path)
            for path in out.parent.iterdir()
            if (match := LEFT.fullmatch(path.name)) and match.groups() == (out.name, REPLACED)
        ]
    except OSError:  # it cannot be listed
        return None
    return max(left)[1] if left else None


def put_back(out: Path) -> None:
    """Put what a killed process had set aside back into its place."""
    if (old := find_replaced(out)) is not None:
        with suppress(OSError):  # another process was quicker
            old.rename(out)


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
