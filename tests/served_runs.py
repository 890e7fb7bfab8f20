"""Runs of a test's own server: what to ask for, and how to look at what came."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.served import Served
from whichwall.collect.options import CollectOptions
from whichwall.schemas.completions import Completions
from whichwall.schemas.folder import file_name
from whichwall.schemas.manifest import read_manifest
from whichwall.schemas.table import Table

Row = dict[str, Any]


def asked(served: Served, out: Path, mode: str = "decode", **more: Any) -> CollectOptions:
    """Return options for a small run; sizes only where the mode does not vary them."""
    given: Row = {"mode": mode, "engine": "openai", "url": served.url, "quick": True, "out": out}
    if mode != "prompt":
        given["prompt_tokens"] = 8
    if mode not in ("output", "prefix"):
        given["new_tokens"] = 4
    return CollectOptions(**(given | {"timeout_s": 20.0} | more))


def rows(run: Path, table: type[Table]) -> list[Row]:
    """Return the rows of a table of a run."""
    found: list[Row] = pq.read_table(run / file_name(table)).to_pylist()
    return found


def clean(run: Path) -> list[Row]:
    """Return the clean requests of a run."""
    return [row for row in rows(run, Completions) if row[Completions.stage] == "clean"]


def codes(run: Path) -> set[str]:
    """Return the codes of what a run confesses."""
    return {one.code for one in read_manifest(run).diagnostics}
