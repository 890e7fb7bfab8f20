"""Check what run.json says: names of files, the traces it refers to, and no folder of a machine."""

import shlex
from collections import Counter
from collections.abc import Collection
from pathlib import PurePosixPath, PureWindowsPath

from whichwall.schemas.findings import MAKE_AGAIN, Finding
from whichwall.schemas.manifest import FILE, Manifest, RankFacts


def is_plain(name: str) -> bool:
    """Tell whether a file's name stays inside the folder that it is looked for in."""
    return name not in ("", ".", "..", FILE) and not {"/", "\\", "\0"} & {*name}


def check_manifest(manifest: Manifest) -> list[Finding]:
    """Return what is wrong in a manifest by itself."""
    outside = [
        Finding(FILE, f"lists the file {name!r}", "a table's name without a folder", MAKE_AGAIN)
        for name in manifest.files
        if not is_plain(name)
    ]
    return [*outside, *_paths(manifest), *_traces(manifest)]


def _paths(manifest: Manifest) -> list[Finding]:
    """Find absolute paths: they name folders, and people, of the machine that wrote the run."""
    said = {"command": manifest.command, "weights": manifest.weights or ""}
    return [
        Finding(FILE, f"{field} names {word!r}", "no folder of a machine", "take it out")
        for field, text in said.items()
        for word in _words(text)
        if PurePosixPath(word).is_absolute() or PureWindowsPath(word).is_absolute()
    ]


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _traces(manifest: Manifest) -> list[Finding]:
    """Find traces that stand for each other's rows: a point and rank is one trace's alone."""
    places = Counter((facts.point, facts.rank) for _, facts in named_traces(manifest))
    return [
        Finding(FILE, f"names {n} traces of point {point}, rank {rank}", "one of each", MAKE_AGAIN)
        for (point, rank), n in places.items()
        if n > 1
    ]


def check_points(manifest: Manifest, points: Collection[int]) -> list[Finding]:
    """Return the traces of points that the run's table of points does not have."""
    return [
        Finding(
            FILE, f"names a trace of point {facts.point} ({field})",
            "points of the points table", MAKE_AGAIN,
        )
        for field, facts in named_traces(manifest)
        if facts.point not in points
    ]  # fmt: skip


def named_traces(manifest: Manifest) -> list[tuple[str, RankFacts]]:
    """Return every trace that a manifest names, with the field that does; those kept apart too."""
    apart = {"role_check": manifest.role_check, "reference": manifest.reference}
    return [
        *(("ranks", facts) for facts in manifest.ranks),
        *((field, facts) for field, facts in apart.items() if facts),
    ]
