"""Have a server take a trace of itself, and pick the file up from the folder where it puts it.

vLLM and SGLang start and stop their profiler by two requests. The trace is of a few requests after
everything else has been measured, since a profiler taxes what comes after it too.
"""

import asyncio
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from whichwall.collect.endpoint.client import PROFILE_S, START_PROFILE, STOP_PROFILE, Client
from whichwall.collect.endpoint.dialect import NOT_FOUND, Dialect
from whichwall.collect.endpoint.plan import ServedPoint
from whichwall.collect.endpoint.rows import Asked, RowLog
from whichwall.collect.kineto.metadata import peek_rank
from whichwall.collect.kineto.trace import read_trace
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import InputError
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.manifest import RankFacts
from whichwall.schemas.passes import PROFILED

SUFFIXES = (".json", ".json.gz")
# vLLM's front end traces its own Python too: a file that says nothing of the model.
FRONT_END = ".async_llm"
# A trace of more steps tells no more, and grows by megabytes.
TRACED_TOKENS, TRACED_REQUESTS = 9, 2
# How long a file may take to appear after the profiler has stopped, and to stay as it is.
APPEAR_S, SETTLED_S, LOOK_S = 60.0, 2.0, 0.25


@dataclass(frozen=True)
class ServerTrace:
    """What came of asking for a trace: files, and a sentence."""

    files: list[Path]
    says: str


@dataclass
class Imported:
    """Traces that became tables of the run."""

    ranks: list[RankFacts] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)


async def take_trace(
    client: Client, dialect: Dialect, point: ServedPoint, folder: Path, log: RowLog
) -> ServerTrace:
    """Let the server trace a few requests of a point; return the files that then appear."""
    before = _files(folder)
    started = await client.post(START_PROFILE)
    if started.status in NOT_FOUND:
        return ServerTrace([], f"the server offers no {START_PROFILE}")
    if not started.is_ok:
        return ServerTrace([], f"{START_PROFILE} failed ({started.says})")
    for _ in range(TRACED_REQUESTS):
        prompt = dialect.prompter.prompt(point.prompt_tokens)
        answer = await dialect.ask(prompt, min(point.new_tokens, TRACED_TOKENS))
        log.add(Asked(point.number, None, PROFILED, point.prompt_tokens), answer)
    stopped = await client.post(STOP_PROFILE, limit_s=PROFILE_S)
    if not stopped.is_ok:
        return ServerTrace([], f"{STOP_PROFILE} failed ({stopped.says})")
    files = await _appearing(folder, before)
    if not files:
        return ServerTrace([], f"no new trace in {folder.name} within {APPEAR_S:.0f} s")
    return ServerTrace(files, f"traced by {START_PROFILE}")


async def _appearing(folder: Path, before: dict[Path, int]) -> list[Path]:
    """Wait for files that are new or have changed, until they have not grown for a while."""
    deadline = time.monotonic() + APPEAR_S
    seen: dict[Path, int] = {}
    same_since = time.monotonic()
    while (now := time.monotonic()) < deadline:
        found = {path: size for path, size in _files(folder).items() if before.get(path) != size}
        if found != seen:
            seen, same_since = found, now
        elif seen and now - same_since >= SETTLED_S:
            break
        await asyncio.sleep(LOOK_S)
    return sorted(path for path, size in seen.items() if size)


def _files(folder: Path) -> dict[Path, int]:
    """Return the traces in a folder and below it, with their sizes."""
    found: dict[Path, int] = {}
    for path in folder.rglob("*"):
        if path.name.endswith(SUFFIXES) and FRONT_END not in path.name and path.is_file():
            with suppress(FileNotFoundError):  # the server has just renamed or removed it
                found[path] = path.stat().st_size
    return found


def import_traces(files: list[Path], writer: RunWriter, point: int) -> Imported:
    """Add the traces of a server to a run: a rank a file, as each says or in their order.

    They are read from copies, whose names are ours: servers put the host's name into theirs.
    """
    done = Imported()
    for rank, file in _ranked(files).items():
        ending = next(end for end in SUFFIXES if file.name.endswith(end))
        copy = writer.folder / f"rank{rank}{ending}"
        try:
            _copy(file, copy)
            facts = read_trace(copy, writer, rank=rank, numbered=len(files) > 1, point=point)
        except InputError as error:
            said = str(error).replace(str(copy), "the server's trace")
            done.diagnostics.append(Diagnostic("trace_failed", "warning", None, said))
            continue
        finally:
            copy.unlink(missing_ok=True)
        done.ranks.append(facts.rank)
        done.diagnostics += facts.diagnostics
    return done


def _copy(file: Path, copy: Path) -> None:
    """Copy a trace; one that this user may not read must not cost the run."""
    try:
        shutil.copyfile(file, copy)
    except (PermissionError, FileNotFoundError) as error:
        raise InputError(
            f"{copy}: {error.strerror}; expected a file that this user can read: have the server "
            "write its traces so"
        ) from error


def _ranked(files: list[Path]) -> dict[int, Path]:
    """Return the files by rank: as each states it, where no other does, else by the next number."""
    ranked: dict[int, Path] = {}
    unsaid = []
    for file in files:
        stated = _stated(file)
        if stated is None or stated in ranked:
            unsaid.append(file)
        else:
            ranked[stated] = file
    for file in unsaid:
        ranked[next(n for n in range(len(files)) if n not in ranked)] = file
    return dict(sorted(ranked.items()))


def _stated(file: Path) -> int | None:
    try:
        return peek_rank(file)
    except InputError:  # whoever reads all of it says why
        return None
