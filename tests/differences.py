"""What files are held against: given right answers, and a text for each thing that differs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import SHARED
from whichwall.analyze.validate import validate

CASES = SHARED / "cases"
LISTED = CASES / "cases.json"
SMI = "smi/"
ABSENT = "../shared is absent, or does not hold them"
Case = dict[str, Any]
Facts = dict[str, object]


class Check(NamedTuple):
    """One file with its right answer; `differences` takes an empty folder to work in."""

    group: str
    name: str
    differences: Callable[[Path], list[str]]


def listed_cases() -> list[Case]:
    """Return every case that is listed, of traces and of nvidia-smi; none without the corpus."""
    listed: list[Case] = json.loads(LISTED.read_text()) if LISTED.is_file() else []
    return listed


def differing(found: Facts, wanted: Facts) -> list[str]:
    """Return what differs, a text for each name; what is wanted must have been looked for."""
    return [
        f"{name}: {_short(found[name])}, expected {_short(value)}"
        if name in found
        else f"{name}: states {_short(value)}, and nothing here looks for that"
        for name, value in wanted.items()
        if name not in found or found[name] != value
    ]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"


def code_differences(case: Case, codes: set[Any]) -> list[str]:
    """Compare the diagnostics that must appear, of which one must, and that must not."""
    either = set(case.get("diagnostics_any") or ())
    return [
        *(f"no diagnostic {code}" for code in case["diagnostics"] if code not in codes),
        *(f"diagnostic {code}, expected none" for code in case["not_diagnostics"] if code in codes),
        *([f"none of the diagnostics {sorted(either)}"] if either and not either & codes else ()),
    ]


def not_whole(run: Path) -> list[str]:
    """Return what `validate` has against a run that was just made."""
    found = validate(run)
    return [] if found.is_whole else [f"validate: {line}" for line in found.lines()]
