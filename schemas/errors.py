"""The exception tree: every failure that whichwall explains.

    WhichwallError                 exit code 2, its text is the one line on stderr
    ├── UsageError                 the request cannot be met as asked
    ├── InputError                 a file is not what was expected
    │   └── VersionError           a run was written by a newer whichwall
    └── CollectError               this machine cannot do the work

Each message says what happened, to which file or device, what was expected, and what to do.
"""

import os
from pathlib import Path

# What happened stands at the start, what to do at the end; a file's own text may fill the middle.
LONGEST_START, LONGEST_END = 1200, 300


class WhichwallError(Exception):
    """Report a failure that the user can act on."""

    def __str__(self) -> str:
        """Return the message on one line, whatever a file or a library put into it."""
        text = " ".join(super().__str__().split())
        if len(text) <= LONGEST_START + LONGEST_END:
            return text
        return f"{text[:LONGEST_START]} … {text[-LONGEST_END:]}"


class UsageError(WhichwallError):
    """Report a request that contradicts itself or what is on disk."""


class InputError(WhichwallError):
    """Report a file that is not what was expected."""


class VersionError(InputError):
    """Report a file written under a schema version that this whichwall does not know."""


class CollectError(WhichwallError):
    """Report a machine that cannot collect what was asked."""


def require_regular(path: Path, expected: str) -> None:
    """Refuse what would be read without an end or block: pipes and devices.

    Raises:
        InputError: it is there and is neither a file nor a folder, which its reader names better.
    """
    if path.exists() and not (path.is_file() or path.is_dir() or _is_null(path)):
        raise InputError(f"{path}: is a pipe or a device; expected a {expected} as a file on disk")


def _is_null(path: Path) -> bool:
    return str(path) == os.devnull
