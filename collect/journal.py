"""The journal of an unfinished sweep: a line per finished visit, on disk before the next begins.

It lies in `<out>.unfinished/` beside where the run will be. A sweep that was killed goes on from
it; a last line that was only half written is dropped, and its visit measured again.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec

from whichwall.collect.options import CollectOptions
from whichwall.schemas.destination import plain
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import CollectError, InputError, UsageError, WhichwallError
from whichwall.schemas.manifest import EngineFacts
from whichwall.schemas.model import Model
from whichwall.schemas.partial import lock_folder
from whichwall.schemas.points import DONE

Row = dict[str, Any]

SUFFIX, FILE = ".unfinished", "journal.jsonl"
# Where a run goes is told by where its journal lies, which may have been moved.
_NOT_KEPT = ("out", "resume")


class Bench(msgspec.Struct, frozen=True):
    """What must be the same for a sweep to go on: software, device and model."""

    whichwall: str
    torch: str | None
    transformers: str | None
    device: str
    gpu_uuid: str | None
    model: Model | None
    vllm: str | None = None
    served_model: str | None = None  # by its name at a server, which is then the device


class Header(msgspec.Struct, frozen=True):
    """The first line: what was asked for, of what, on what."""

    options: Row
    created_ns: int
    bench: Bench
    points: list[Row]


class Visit(msgspec.Struct, frozen=True):
    """One finished visit of one point: how it ended, and every row that it measured."""

    point: int
    visit: int
    outcome: str
    reason: str | None = None
    setup_ns: int | None = None
    memory_bytes: int | None = None
    engine: EngineFacts | None = None
    passes: list[Row] = []
    completions: list[Row] = []
    tokens: list[Row] = []
    samples: list[Row] = []  # since the visit before


class Journal:
    """The visits so far, and the file that they are added to."""

    def __init__(self, out: Path, header: Header, visits: list[Visit]) -> None:
        """Take what is on disk already; `begin` and `resume` make one."""
        self.out = out
        self.folder = folder_of(out)
        self.header = header
        self.visits = visits

    def add(self, visit: Visit) -> None:
        """Write a visit and wait until it is on disk."""
        _append(self.folder / FILE, msgspec.json.encode(visit))
        self.visits.append(visit)

    def has(self, point: int, visit: int) -> bool:
        """Tell whether this visit needs no measuring: it is here, or its point has ended."""
        return is_made(self.visits, point, visit)

    def remove(self) -> None:
        """Remove the journal; its folder stays if somebody has put something into it."""
        (self.folder / FILE).unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()


def is_made(visits: Sequence[Visit], point: int, visit: int) -> bool:
    """Tell whether a visit needs no measuring: it was made, or its point has ended."""
    mine = [one for one in visits if one.point == point]
    return any(one.visit == visit or one.outcome != DONE for one in mine)


def folder_of(out: Path) -> Path:
    """Return the folder of the journal of a run."""
    out = plain(out) if out.name else out.resolve()
    return out.parent / (out.name + SUFFIX)


def refuse_unfinished(out: Path, *, overwrite: bool) -> None:
    """Refuse to begin where another sweep is unfinished.

    Raises:
        UsageError: there is a journal, and `overwrite` is false.
    """
    if not overwrite and (folder_of(out) / FILE).exists():
        raise UsageError(
            f"{out}: an unfinished sweep is in {folder_of(out).name}; go on with --resume {out}, "
            "or start anew with --overwrite"
        )


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Keep other processes off the sweep of this destination; where there are no locks, do nothing.

    Raises:
        UsageError: another process is at it.
    """
    folder, lock = folder_of(out), None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = lock_folder(folder)
    except BlockingIOError as error:
        raise UsageError(
            f"{out}: another process is measuring this sweep; wait for it, or give another --out"
        ) from error
    except OSError:  # no locks here; where nothing can be written, `begin` says so
        pass
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()  # if no journal was begun
        if lock is not None:
            os.close(lock)


def begin(out: Path, header: Header) -> Journal:
    """Begin a journal; an earlier one of the same destination is replaced.

    Raises:
        UsageError: the folder cannot be made.
    """
    journal = Journal(out, header, [])
    try:
        journal.folder.mkdir(parents=True, exist_ok=True)
        (journal.folder / FILE).unlink(missing_ok=True)
        _append(journal.folder / FILE, msgspec.json.encode(header))
    except OSError as error:
        raise UsageError(
            f"{journal.folder}: cannot be written ({error.strerror}); give a writable --out"
        ) from error
    return journal


def resume(asked: Path) -> Journal:
    """Read the journal of an interrupted sweep, given where its run was to go.

    Raises:
        UsageError: there is none.
        InputError: the file is no journal.
    """
    asked = plain(asked) if asked.name else asked.resolve()
    out = asked.parent / (asked.name.removesuffix(SUFFIX) or asked.name)
    path = folder_of(out) / FILE
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{out}: no sweep to go on with (no {path.parent.name}/{FILE} beside it); "
            "give the --out of one that was interrupted"
        ) from error
    whole, _, half = raw.rpartition(b"\n")
    lines = list(_lines(path, whole.split(b"\n")))
    header, visits = lines[0], lines[1:]
    if half:
        os.truncate(path, len(raw) - len(half))
    assert isinstance(header, Header)
    return Journal(out, header, [one for one in visits if isinstance(one, Visit)])


def _lines(path: Path, lines: list[bytes]) -> Iterator[Header | Visit]:
    for number, line in enumerate(lines):
        try:
            yield msgspec.json.decode(line, type=Visit if number else Header)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(
                f"{path}: line {number + 1} is not of a journal ({error}); "
                "start anew with --overwrite"
            ) from error


def kept(options: CollectOptions) -> Row:
    """Return options as a header keeps them."""
    return {name: value for name, value in asdict(options).items() if name not in _NOT_KEPT}


def asked_before(journal: Journal) -> CollectOptions:
    """Return the options that an interrupted sweep was begun with.

    Raises:
        InputError: its header names options that this whichwall does not have.
    """
    path = journal.folder / FILE
    try:
        options = CollectOptions(**journal.header.options)
    except TypeError as error:
        raise InputError(
            f"{path}: asks for what this whichwall does not have ({error}); "
            "go on with the version that it was begun with"
        ) from error
    return replace(options, out=journal.out, resume=journal.out)


def refuse_another(journal: Journal, here: Header) -> None:
    """Refuse to go on where the numbers would be of something else.

    Raises:
        UsageError: software, device, model or points are not those that the sweep began with.
    """
    before = journal.header
    for name in Bench.__struct_fields__:
        then, now = (getattr(bench, name) for bench in (before.bench, here.bench))
        if then != now:
            what = "its dimensions differ" if name == "model" else f"{then}, here it is {now}"
            raise UsageError(
                f"{journal.out}: was begun with another {name} ({what}); "
                "go on where it was begun, or start anew with --overwrite"
            )
    if before.points != here.points:
        raise UsageError(f"{journal.out}: was begun with other points; start anew with --overwrite")


def find_resumed(resumed: int | None, visits: int) -> list[Diagnostic]:
    """Return a note if an earlier process had made the first visits."""
    if resumed is None:
        return []
    text = (
        f"the sweep was interrupted after {resumed} of {visits} visits and went on later: "
        "in between, the state of card and host may have changed"
    )
    return [Diagnostic("sweep_resumed", "info", resumed, text)]


@contextmanager
def resumable(journal: Journal) -> Iterator[None]:
    """Say how to go on when the block ends early; a journal without a visit is removed."""
    try:
        yield
    except (KeyboardInterrupt, WhichwallError) as error:
        # What is on disk counts: an interrupt may come between writing a visit and knowing it.
        if not (visits := resume(journal.out).visits):
            journal.remove()
            raise
        kept_visits = "1 visit is" if len(visits) == 1 else f"{len(visits)} visits are"
        on = f"{kept_visits} kept; go on with --resume {journal.out}"
        if isinstance(error, WhichwallError):
            raise CollectError(f"{error}; {on}") from error
        raise KeyboardInterrupt(f"interrupted; {on}") from error


def _append(path: Path, line: bytes) -> None:
    with path.open("ab") as file:
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())
