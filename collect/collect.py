"""Collect a run: the one call behind `whichwall collect`."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from whichwall.collect.journal import asked_before, refuse_unfinished, resume
from whichwall.collect.options import OPENAI, SINGLE, SWEEPS, VLLM, CollectOptions
from whichwall.collect.packages import require_vllm
from whichwall.collect.signals import terminable
from whichwall.schemas.errors import CollectError, UsageError
from whichwall.schemas.experiments import CEILINGS, CLOCKS, PREFIX, REQUEST, TAX
from whichwall.schemas.folder import RunWriter

NEEDED = ("torch", "transformers")
# A server has its own: it is asked by HTTP.
NEEDED_FOR_A_SERVER = ("httpx2",)
SERVER_RUNNER = "whichwall.collect.endpoint.session"
# The module whose `run` collects a mode; each is imported only when it is asked for.
RUNNERS = {
    **dict.fromkeys(SINGLE, "whichwall.collect.session"),
    **dict.fromkeys(SWEEPS, "whichwall.collect.sweep"),
    REQUEST: "whichwall.collect.request_session",
    CEILINGS: "whichwall.collect.ceilings_session",
    CLOCKS: "whichwall.collect.clocks_session",
    TAX: "whichwall.collect.tax_session",
    PREFIX: "whichwall.collect.prefix_session",
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
    _refuse_without_packages(options)
    with terminable():
        try:
            run: Callable[[CollectOptions, RunWriter | None], Path]
            of_a_server = options.engine == OPENAI
            run = import_module(SERVER_RUNNER if of_a_server else RUNNERS[options.mode]).run
        except (ImportError, OSError) as error:
            names = " or ".join(_needed(options))
            raise CollectError(f"{names} cannot be loaded ({error}); install anew") from error
        return run(options, writer)


def _needed(options: CollectOptions) -> tuple[str, ...]:
    return NEEDED_FOR_A_SERVER if options.engine == OPENAI else NEEDED


def _refuse_without_packages(options: CollectOptions) -> None:
    """Refuse what the packages installed here cannot do.

    Raises:
        CollectError: naming those that are missing.
    """
    missing = [name for name in _needed(options) if find_spec(name) is None]
    if missing and options.engine == OPENAI:
        raise CollectError(
            f"asking a server needs {' and '.join(missing)}, not installed here; "
            "pip install 'whichwall[endpoint]'"
        )
    if missing:
        raise CollectError(
            f"collecting needs {' and '.join(missing)}, not installed here; "
            "pip install 'whichwall[collect]', or import a trace made elsewhere"
        )
    if options.engine == VLLM:
        require_vllm()
