"""Let a polite end of the process unwind like Ctrl-C."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind like Ctrl-C, so that nothing half-done stays behind.

    Python takes signals in its main thread only; elsewhere the block changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    ours = os.getpid()

    def interrupt(sign: int, _frame: FrameType | None) -> None:
        if os.getpid() == ours:
            raise KeyboardInterrupt
        # A fork inherits this handler; a pool that ends its workers means them to end.
        signal.signal(sign, signal.SIG_DFL)
        os.kill(os.getpid(), sign)

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    signals = [signal.Signals[name] for name in names]
    # A hang-up that is ignored stays ignored: that is what nohup is for.
    kept = {s: signal.getsignal(s) for s in signals if signal.getsignal(s) == signal.SIG_DFL}
    for sign in kept:
        signal.signal(sign, interrupt)
    try:
        yield
    finally:
        for sign, handler in kept.items():
            signal.signal(sign, handler)
