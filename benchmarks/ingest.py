"""Print what import and analyze cost on a trace and on a bigger repeat of it.

    python benchmarks/ingest.py [TRACE] [--repeat N]

Each command runs in a process of its own: wall time, CPU time and peak resident memory are that
process's, start-up included. The default trace is an H100 profile of 45 MB with stacks, from
the public traces beside the checkout; the repeat shifts its times and ids.
"""

import argparse
import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TRACE = (
    ROOT.parent
    / "shared/traces/public/TraceLens/h100/google_owlv2-large-patch14-ensemble__1016001.json.gz"
)
SHIFTED_IDS = ("correlation", "External id", "Ev Idx", "Python id", "Python parent id")
MIB = 1 << 20


def repeat(source: Path, out: Path, times: int) -> None:
    """Write a trace that holds the events of another several times, one after the other."""
    with gzip.open(source, "rt") as file:
        trace = json.load(file, parse_float=Decimal)
    events = trace.pop("traceEvents")
    timed = [e for e in events if "ts" in e]
    span = max(e["ts"] + e.get("dur", 0) for e in timed) - min(e["ts"] for e in timed) + 1000
    ids = 1 + max(i for e in events for i in _ids(e))
    with out.open("w") as file:
        file.write(json.dumps(trace, default=float)[:-1] + ', "traceEvents": [\n')
        first = True
        for n in range(times):
            for event in events:
                file.write(("" if first else ",\n") + _text(_moved(event, n * span, n * ids)))
                first = False
        file.write("\n]}\n")


def _ids(event: dict[str, Any]) -> Iterator[int]:
    arguments = event.get("args", {})
    return (arguments[k] for k in SHIFTED_IDS if isinstance(arguments.get(k), int))


def _moved(event: dict[str, Any], later: Decimal, further: int) -> dict[str, Any]:
    moved = dict(event)
    if "ts" in event:
        moved["ts"] = event["ts"] + later
    if "args" in event:
        moved["args"] = {
            k: v + further if k in SHIFTED_IDS and isinstance(v, int) else v
            for k, v in event["args"].items()
        }
    return moved


def _text(value: object) -> str:
    """Return JSON that keeps every digit of a decimal."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return json.dumps(value)


def measure(*words: str) -> tuple[float, float, float]:
    """Run whichwall and return wall seconds, CPU seconds and peak MiB of its process."""
    command = [sys.executable, str(ROOT / "cli.py"), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".types")}
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    started = time.perf_counter()
    child = os.posix_spawn(sys.executable, command, environment, file_actions=silent)
    _, status, used = os.wait4(child, 0)
    wall = time.perf_counter() - started
    if status:
        sys.exit(f"{' '.join(words)} failed")
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def report(trace: Path, folder: Path) -> None:
    """Import and analyze one trace, and print a line for each."""
    with gzip.open(trace) if trace.suffix == ".gz" else trace.open("rb") as file:
        size = sum(len(block) for block in iter(lambda: file.read(MIB), b"")) / 1e6
    run = str(folder / "run")
    wall, cpu, peak = measure("import", str(trace), "--out", run, "--overwrite")
    name = f"{trace.name[:28]:28} {size:7.0f} MB"
    print(
        f"{name}  import   {wall:6.2f} s {cpu:6.2f} CPU s {peak:6.0f} MiB {size / wall:5.0f} MB/s"
    )
    wall, cpu, peak = measure("analyze", run)
    print(f"{name}  analyze  {wall:6.2f} s {cpu:6.2f} CPU s {peak:6.0f} MiB")


def main() -> None:
    """Measure the trace as it is, and its repeat."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", nargs="?", type=Path, default=TRACE)
    parser.add_argument("--repeat", type=int, default=6, help="6 makes about 270 MB")
    asked = parser.parse_args()
    if not asked.trace.exists():
        print(f"{asked.trace.name} is not here: name a trace to measure")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bigger = folder / "repeat.json"
        report(asked.trace, folder)
        repeat(asked.trace, bigger, asked.repeat)
        report(bigger, folder)


if __name__ == "__main__":
    main()
