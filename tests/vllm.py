"""Given traces of vLLM, and what is written of each apart from this code."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import SHARED
from whichwall.analyze.trace import Trace, read_trace
from whichwall.collect.importer import import_run
from whichwall.schemas.run import open_run

FOLDER = SHARED / "traces" / "vllm"
FILES = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))
# Others' traces of engines, with the longer annotations.
PUBLIC = sorted((SHARED / "traces" / "public" / "TraceLens" / "inference").rglob("*.json.gz"))
CONFIGS = {"q05": "qwen2.5-0.5b", "llama8l": "llama3-8b-8l", "moe32": "qwen3-moe-32e"}

needs_traces = pytest.mark.skipif(not FILES, reason="no handed traces: ../shared is absent")
every_trace = pytest.mark.parametrize("name", FILES)

_ROW = re.compile(r"^\| (?P<name>\w+) \|(?P<cells>.*)\|$")
_STEPS = re.compile(r"(\d+)×c(\d+)\((\d+)\)_g(\d+)\((\d+)\)")


class Written(NamedTuple):
    """A row of the table of files: what the trace holds."""

    graph_kernels: int
    graph_launches: int
    steps: list[tuple[str, int, int]]  # phase, sequences, tokens; those of no sequence left out
    decode_busy_ms: float


@cache
def written() -> dict[str, Written]:
    """Return what the reference says of each file, by name."""
    text = (SHARED / "reference" / "vllm.md").read_text()
    rows = [match for line in text.splitlines() if (match := _ROW.match(line))]
    told = {row["name"]: [cell.strip() for cell in row["cells"].split("|")] for row in rows}
    return {
        name: Written(int(cells[1]), int(cells[2]), _steps(cells[3]), float(cells[7]))
        for name, cells in told.items()
        if len(cells) == 9 and cells[0].isdecimal()
    }


def _steps(text: str) -> list[tuple[str, int, int]]:
    found = []
    for match in _STEPS.findall(text):
        times, prompts, prompt_tokens, answers, answer_tokens = map(int, match)
        if not prompts + answers:
            continue
        phase = ("mixed" if answers else "prefill") if prompts else "decode"
        found += times * [(phase, prompts + answers, prompt_tokens + answer_tokens)]
    return found


def traced(name: str, out: Path, *, given: bool = True) -> Trace:
    """Import and read one of the traces, with its model's config or by its shapes alone."""
    config = FOLDER / f"{CONFIGS[name.split('_')[0]]}.config.json"
    path = FOLDER / f"{name}.json.gz"
    return read_trace(open_run(import_run([path], out / name, model=config if given else None)))
