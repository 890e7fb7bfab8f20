"""Where a finished folder goes: never over a file that whichwall did not write itself."""

import errno
import json
import re
import shutil
import uuid
from collections.abc import Collection
from pathlib import Path

from whichwall.schemas.errors import UsageError
from whichwall.schemas.manifest import FILE
from whichwall.schemas.partial import REPLACED, SUFFIX

REPORT = "report"
REPORT_FILES = ("summary.json", "roles.parquet", "report.md", "report.html")
COMPARISON_FILES = ("compare.json", "compare.md", "compare.html")
PICTURE = ".svg"
# What a killed analyze leaves beside a report that it was about to replace.
UNFINISHED_REPORT = re.compile(rf"\.{REPORT}\.[0-9a-f]{{8}}\.({SUFFIX}|{REPLACED})")
# What file managers leave in a folder that somebody has looked at.
LEFT_BY_FILE_MANAGERS = frozenset((".DS_Store", "Thumbs.db", "desktop.ini"))
# Another process that writes the same folder may come between two renames, but not each time.
TRIES = 5


def plain(out: Path) -> Path:
    """Return a path without `..`, through which a folder cannot be renamed."""
    return out.resolve() if ".." in out.parts else out


def is_unfinished_report(name: str) -> bool:
    """Tell the hidden folders of reports that were being written when their writer was killed."""
    return UNFINISHED_REPORT.fullmatch(name) is not None


def strangers_of_run(out: Path) -> list[str]:
    """Return what a run's folder holds beside the run, by name.

    The run's own manifest says which tables are its own; what it does not list is a stranger.
    """
    try:
        listed = json.loads((out / FILE).read_bytes())["files"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        listed = {}
    mine = [FILE, *(listed if isinstance(listed, dict) else ())]
    found = [
        name
        for name in _strangers(out, mine, folders=(REPORT,))
        if not is_unfinished_report(name.rstrip("/"))
    ]
    report = out / REPORT
    return found + [f"{REPORT}/{name}" for name in strangers_of_report(report)]


def strangers_of_report(out: Path) -> list[str]:
    """Return what a report's folder holds beside the report, by name; none if it is not there."""
    return _strangers_but_pictures(out, REPORT_FILES)


def strangers_of_comparison(out: Path) -> list[str]:
    """Return what the folder of a comparison holds beside it, by name; none if it is not there."""
    return _strangers_but_pictures(out, COMPARISON_FILES)


def _strangers_but_pictures(out: Path, files: Collection[str]) -> list[str]:
    if not out.is_dir():
        return []
    return [name for name in _strangers(out, files) if not name.endswith(PICTURE)]


def _strangers(folder: Path, files: Collection[str], folders: Collection[str] = ()) -> list[str]:
    known = {*files, *LEFT_BY_FILE_MANAGERS}
    return sorted(
        entry.name + ("/" if entry.is_dir() else "")
        for entry in folder.iterdir()
        if entry.name not in (folders if entry.is_dir() else known)
    )


def put_new(made: Path, out: Path) -> None:
    """Rename a finished folder to a destination where nothing may be.

    Raises:
        UsageError: something has come to be there since.
    """
    try:
        made.rename(out)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise UsageError(f"{out}: exists by now, and was left alone; give another --out") from error


def put_in_place(made: Path, out: Path) -> None:
    """Rename a finished folder to its destination; what was there is removed after that."""
    for attempt in range(TRIES):
        old = _set_aside(out)
        try:
            made.rename(out)
        except OSError:
            if attempt + 1 < TRIES and out.exists():
                continue
            if old is not None and not out.exists():
                old.rename(out)
            raise
        finally:
            if old is not None and out.exists():
                shutil.rmtree(old, ignore_errors=True)
        return


def _set_aside(out: Path) -> Path | None:
    old = out.parent / f".{out.name}.{uuid.uuid4().hex[:8]}.{REPLACED}"
    try:
        return out.rename(old)
    except FileNotFoundError:
        return None
