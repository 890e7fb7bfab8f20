"""Collect a run: the one call behind `whichwall collect`."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from whichwall.collect.journal import asked_before, refuse_unfinished, resume
from whichwall.collect.options import SINGLE, SWEEPS, CollectOptions
from whichwall.collect.signals import terminable
from whichwall.schemas.errors import CollectError, UsageError
from whichwall.schemas.experiments import CEILINGS, CLOCKS, REQUEST, TAX
from whichwall.schemas.folder import RunWriter

NEEDED = ("torch", "transformers")
# The module whose `run` collects a mode; each is imported only when it is asked for.
RUNNERS = {
    **dict.fromkeys(SINGLE, "whichwall.collect.session"),
    **dict.fromkeys(SWEEPS, "whichwall.collect.sweep"),
    REQUEST: "whichwall.collect.request_session",
    CEILINGS: "whichwall.collect.ceilings_session",
    CLOCKS: "whichwall.collect.clocks_session",
    TAX: "whichwall.collect.tax_session",
}


def collect(options: CollectOptions) -> Path:
    """Run the workload, record it, and return the folder of the finished run.

    SIGTERM and SIGHUP raise KeyboardInterrupt here; an interrupted run leaves nothing behind, but
    for the journal of a sweep.

    Raises:
        UsageError: what is asked for contradicts itself, is not built, or exists already.
        CollectError: this machine cannot do it: no torch, no usable GPU, no memory, no disk.
    """
    if options.resume is not None:
        if replace(options, resume=None) != CollectOptions():
            raise UsageError("--resume goes on as asked for before; give it without other options")
        options = asked_before(resume(options.resume))
    options.check()
    writer = None
    if options.out is not None:
        writer = RunWriter(options.out, overwrite=options.overwrite)
        if options.mode in SWEEPS and options.resume is None:
            refuse_unfinished(options.out, overwrite=options.overwrite)
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise CollectError(
            f"collecting needs {' and '.join(missing)}, not installed here; "
            "pip install 'whichwall[collect]', or import a trace made elsewhere"
        )
    with terminable():
        try:
            run: Callable[[CollectOptions, RunWriter | None], Path]
            run = import_module(RUNNERS[options.mode]).run
        except (ImportError, OSError) as error:
            raise CollectError(
                f"torch or transformers cannot be loaded ({error}); install them anew"
            ) from error
        return run(options, writer)
