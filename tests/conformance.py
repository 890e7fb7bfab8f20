"""Hold what whichwall says of every given trace and file against numbers that were made apart.

    python -m tests.conformance        # a line each: ok, or what differs; exit code 1 if any does

The traces with a `reference.json`, the fault cases of `cases.json` and its nvidia-smi cases lie
beside the checkout; where they are absent, that is said. The test suite makes the same checks.
"""

import sys
import tempfile
import time
from pathlib import Path

import click
import polars as pl

from tests.differences import ABSENT, Check
from tests.fault_cases import case_checks
from tests.references import trace_checks
from tests.smi_cases import smi_checks
from whichwall.schemas.errors import WhichwallError

FAILURES = (
    ArithmeticError, AssertionError, LookupError, OSError, TypeError, ValueError,
    pl.exceptions.PolarsError, WhichwallError,
)  # fmt: skip
LONGEST_NAME = 72


def outcome(check: Check) -> list[str]:
    """Return what differs; a failure does too."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return check.differences(Path(folder))
        except FAILURES as error:
            return [f"{type(error).__name__}: {error}"]


def line(check: Check) -> tuple[str, bool]:
    """Make a check; return its line of the table, and whether all is as stated."""
    begun = time.perf_counter()
    differences = outcome(check)
    took = time.perf_counter() - begun
    name = check.name[-LONGEST_NAME:]
    said = "; ".join(differences) or "ok"
    return f"{check.group:6} {name:{LONGEST_NAME}} {took:6.2f} s  {said}", not differences


def main() -> int:
    """Print the table and return the exit code."""
    groups = {
        "traces with a reference.json": trace_checks(),
        "fault cases of traces": case_checks(),
        "cases of nvidia-smi": smi_checks(),
    }
    right = []
    for what, checks in groups.items():
        if not checks:
            click.echo(f"skipped: no {what}: {ABSENT}")
        for check in checks:
            text, as_stated = line(check)
            click.echo(text)
            right.append(as_stated)
    click.echo(f"{sum(right)} of {len(right)} as stated")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
