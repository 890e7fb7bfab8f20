"""A trace by vLLM's own profiler, used as one of ours is."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from whichwall.collect.device import Device
from whichwall.collect.engines.vllm_api import Engine
from whichwall.collect.profiler import launch_a_few, profiler_facts, tear_down_afterwards
from whichwall.schemas.errors import CollectError
from whichwall.schemas.manifest import ProfilerFacts

PATTERNS = ("*.json", "*.json.gz")
ACTIVITIES = ("CPU", "CUDA")


class EngineTrace:
    """One recording of an engine, as a context manager; `start` and `stop` enclose it.

    vLLM marks each of its steps by an annotation of its own, `execute_…`. Its profiler records from
    its start on, so entering starts one recording that is thrown away: it pays for buffers, and
    the one that counts is then not the first that sees the engine's graphs.
    """

    def __init__(self, device: Device, engine: Engine, started: Callable[[], None]) -> None:
        """Take an engine, and what to call once it records; nothing records yet."""
        self.device, self._engine, self._started = device, engine, started
        self._recording = False

    def __enter__(self) -> "EngineTrace":
        """Start the profiler up, after what an earlier session has left of it."""
        launch_a_few(self.device)
        self._begin()
        return self

    def start(self) -> None:
        """Begin to record, between two steps."""
        self.stop()
        if self.device.is_gpu:
            tear_down_afterwards()
        self._begin()
        self._started()

    def _begin(self) -> None:
        for path in self._files():
            path.unlink()
        self.device.synchronize()
        self._engine.start_profile()
        self._recording = True
        launch_a_few(self.device)

    def stop(self) -> None:
        """End the recording; the GPU has finished everything first."""
        self.device.synchronize()
        self._recording = False
        self._engine.stop_profile()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave no profiler running, whatever happened."""
        if self._recording:
            self._engine.stop_profile()

    def export(self, path: Path) -> None:
        """Put the trace where it is wanted.

        Raises:
            CollectError: vLLM has written none, or several.
            OSError: it cannot be put there.
        """
        found = self._files()
        if len(found) != 1:
            raise CollectError(
                f"vLLM's profiler left {len(found)} traces in place of one; look at the free space "
                "of the folder for temporary files"
            )
        shutil.move(found[0], path)
        if not path.is_file():
            raise OSError(errno.ENOSPC, "the trace could not be written", str(path))

    def _files(self) -> list[Path]:
        return [path for one in PATTERNS for path in self._engine.trace_folder.glob(one)]

    def facts(self) -> ProfilerFacts:
        """Return how the trace was taken."""
        activities = ACTIVITIES if self.device.is_gpu else ACTIVITIES[:1]
        return profiler_facts(list(activities), record_shapes=self._engine.records_shapes)
