"""The exception tree: every failure that whichwall explains.

    WhichwallError                 exit code 2, its text is the one line on stderr
    ├── UsageError                 the request cannot be met as asked
    ├── InputError                 a file is not what was expected
    │   └── VersionError           a run was written by a newer whichwall
    └── CollectError               this machine cannot do the work

Each message says what happened, to which file or device, what was expected, and what to do.
"""


class WhichwallError(Exception):
    """Report a failure that the user can act on."""

    def __str__(self) -> str:
        """Return the message on one line, whatever a file or a library put into it."""
        return " ".join(super().__str__().split())


class UsageError(WhichwallError):
    """Report a request that contradicts itself or what is on disk."""


class InputError(WhichwallError):
    """Report a file that is not what was expected."""


class VersionError(InputError):
    """Report a file written under a schema version that this whichwall does not know."""


class CollectError(WhichwallError):
    """Report a machine that cannot collect what was asked."""
