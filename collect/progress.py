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
    _done: float = 0.0
    _part: float = 1.0

    def stage(self, what: str) -> None:
        """Name the stage that begins."""
        self._done, self._part = 0.0, 1.0
        self.progress.reset(self.task, description=what, total=1.0)
        self.progress.refresh()

    def part(self, what: str, done: int, total: int) -> None:
        """Name the part that begins, of several that one bar shows together."""
        self._done, self._part = done / total, 1 / total
        self.progress.update(self.task, description=what, completed=self._done, refresh=True)

    def advance_to(self, share: float) -> None:
        """Show how much of the stage, or of the part, is done, from 0 to 1."""
        completed = self._done + self._part * min(share, 1.0)
        self.progress.update(self.task, completed=completed, refresh=True)


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
