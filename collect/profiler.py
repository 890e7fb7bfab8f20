"""Record a trace with torch's profiler: one session, warmed before it records, checked after."""

import errno
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import torch
from torch.profiler import ProfilerActivity, profile

from whichwall.collect.device import Device
from whichwall.schemas.manifest import ProfilerFacts

TEARDOWN, NO_LAZY_REINIT = "TEARDOWN_CUPTI", "DISABLE_CUPTI_LAZY_REINIT"
# Before 12.6, CUPTI does not survive being torn down and started again.
TEARDOWN_CUDA = (12, 6)

# A session may lose the first kernels it should record, so these go first.
LEADING_KERNELS = 8

# Since 2.13, Kineto says on stderr, at any log level, that a session starts and stops. That a file
# could not be written it says there too, and nowhere else; `export` finds that out by itself.
_NOISE = (b"USDT:", b"output_json.cpp")


class TraceSession:
    """One session of the profiler, as a context manager.

    Entering starts the profiler up without recording: whatever runs then pays for its buffers.
    `start` and `stop` enclose what is recorded.
    """

    def __init__(self, device: Device) -> None:
        """Ask for CPU operators with shapes, and on a GPU for its activities."""
        self.device = device
        self.activities = [ProfilerActivity.CPU]
        if device.is_gpu:
            self.activities.append(ProfilerActivity.CUDA)
            tear_down_afterwards()
        # One cycle is all there is; saying so keeps torch from warning of lost earlier ones.
        self._profile = profile(activities=self.activities, record_shapes=True, acc_events=True)
        self._recording = False
        self._finished = False

    def __enter__(self) -> "TraceSession":
        """Start the profiler up.

        CUPTI of an earlier session is taken down within the next CUDA calls; a session that
        starts before that records no kernel.
        """
        launch_a_few(self.device)
        self._profile.prepare_trace()
        return self

    def start(self) -> None:
        """Begin to record, after a few kernels that may be lost without harm."""
        self.device.synchronize()
        with _without_noise():
            self._profile.start_trace()
        self._recording = True
        launch_a_few(self.device)

    def stop(self) -> None:
        """End the recording; the GPU has finished everything first."""
        self.device.synchronize()
        with _without_noise():
            self._profile.stop_trace()
        self._recording, self._finished = False, True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave no profiler running, whatever happened."""
        if self._finished:
            return
        with _without_noise():
            if not self._recording:
                self._profile.start_trace()
            self._profile.stop_trace()

    def export(self, path: Path) -> None:
        """Write the trace as Kineto's JSON.

        Raises:
            OSError: it could not be written; Kineto says nothing and leaves no file.
        """
        with _without_noise():
            self._profile.export_chrome_trace(str(path))
        if not path.is_file():
            raise OSError(errno.ENOSPC, "the profiler could not write its trace", str(path))

    def facts(self) -> ProfilerFacts:
        """Return how the trace was taken."""
        return profiler_facts([one.name for one in self.activities], record_shapes=True)


def profiler_facts(activities: list[str], *, record_shapes: bool) -> ProfilerFacts:
    """Return how a trace was taken, with CUPTI's variables as they are now.

    torch itself may have changed them while the profiler started.
    """
    return ProfilerFacts(
        activities=activities,
        record_shapes=record_shapes,
        with_stack=False,
        teardown_cupti=os.environ.get(TEARDOWN),
        disable_cupti_lazy_reinit=os.environ.get(NO_LAZY_REINIT),
    )


def launch_a_few(device: Device) -> None:
    """Launch kernels that may be lost without harm, on a GPU, and wait for them."""
    if device.is_gpu:
        scratch = torch.zeros(1, device=device.torch)
        for _ in range(LEADING_KERNELS):
            scratch.add_(1)
    device.synchronize()


def tear_down_afterwards() -> None:
    """Have CUPTI taken down after the session, or every later launch stays slower.

    It must be asked for before the first session; what the caller has set is left alone.
    """
    version = torch.version.cuda
    if version and tuple(map(int, version.split(".")[:2])) >= TEARDOWN_CUDA:
        os.environ.setdefault(TEARDOWN, "1")


def stay_attached() -> None:
    """Keep CUPTI from session to session in this process, where nothing is timed any more.

    Graphs that were captured before may crash a profiler that comes back; what the caller has set
    is left alone.
    """
    os.environ.setdefault(TEARDOWN, "0")


@contextmanager
def _without_noise() -> Iterator[None]:
    """Keep Kineto's own lines off stderr; whatever else is written there still comes."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as caught:
        os.dup2(caught.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            caught.seek(0)
            rest = b"".join(line for line in caught if not any(n in line for n in _NOISE))
            os.write(2, rest)
