"""Signals that end a process politely, and whom they reach."""

import os
import signal
import time

import pytest

from whichwall.collect.signals import terminable

PATIENCE_S = 30


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_ends_by_a_signal_as_it_would_without_us() -> None:
    ready, said = os.pipe()
    with terminable():
        child = os.fork()
        if child == 0:
            try:
                os.write(said, b".")
                time.sleep(PATIENCE_S)
            finally:
                os._exit(1)
        os.read(ready, 1)  # what comes sooner Python drops as it forks
        os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
    os.close(ready)
    os.close(said)

    assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM
