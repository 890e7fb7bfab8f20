"""Say on stderr what is going on, if somebody is watching."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn


@dataclass
class Reporter:
    """Show one stage at a time.

    Nothing is drawn in the background: a thread that wakes to draw would take the interpreter
    away from the launches being timed. So the line changes only between passes.
    """

    progress: Progress
    task: TaskID

    def stage(self, what: str) -> None:
        """Name the stage that begins."""
        self.progress.reset(self.task, description=what, total=1.0)
        self.progress.refresh()

    def advance_to(self, share: float) -> None:
        """Show how much of the stage is done, from 0 to 1."""
        self.progress.update(self.task, completed=min(share, 1.0), refresh=True)


@contextmanager
def reporting() -> Iterator[Reporter]:
    """Draw progress on stderr while the block runs; nothing if stderr is not a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn())
    progress = Progress(
        *columns,
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with progress:
        yield Reporter(progress, progress.add_task("", total=1.0))
