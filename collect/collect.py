"""Collect a run: the one call behind `whichwall collect`."""

from importlib.util import find_spec
from pathlib import Path

from whichwall.collect.options import CollectOptions
from whichwall.collect.signals import terminable
from whichwall.schemas.errors import CollectError
from whichwall.schemas.folder import RunWriter

NEEDED = ("torch", "transformers")


def collect(options: CollectOptions) -> Path:
    """Run the workload, record it, and return the folder of the finished run.

    SIGTERM and SIGHUP raise KeyboardInterrupt here; an interrupted run leaves nothing behind.

    Raises:
        UsageError: what is asked for contradicts itself, is not built, or exists already.
        CollectError: this machine cannot do it: no torch, no usable GPU, no memory, no disk.
    """
    options.check()
    writer = None
    if options.out is not None:
        writer = RunWriter(options.out, overwrite=options.overwrite)
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise CollectError(
            f"collecting needs {' and '.join(missing)}, not installed here; "
            "pip install 'whichwall[collect]', or import a trace made elsewhere"
        )
    with terminable():
        try:
            from whichwall.collect.session import run
        except (ImportError, OSError) as error:
            raise CollectError(
                f"torch or transformers cannot be loaded ({error}); install them anew"
            ) from error
        return run(options, writer)
