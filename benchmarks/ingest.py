"""Print what import and analyze cost on traces of any size, beside a peer on the same files.

    python benchmarks/ingest.py [--sizes MB ...] [--peer PYTHON] [--times N] [--folder DIR]

A real trace is repeated to each size, its times and ids shifted. Each command runs in a process of
its own, start-up included, several times, the tools in turn: printed are the median wall time, the
median CPU time and the largest peak of resident memory, all processes of the command together.
PYTHON is the interpreter of an environment with HolisticTraceAnalysis, of which the JSON loader
alone is timed.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared/traces"
# Of an H100 with stacks, shapes and memory, 46 MB; small files repeat a decode of an H200, 4 MB.
TRACE = SHARED / "public/TraceLens/h100/google_owlv2-large-patch14-ensemble__1016001.json.gz"
SMALL = SHARED / "h200/decode_eager_stack.json.gz"
SMALL_MB = 40
LARGEST_FOR_PEER_MB = 1100  # it needs five times the file in memory
SHIFTED_IDS = ("correlation", "External id", "Ev Idx", "Python id", "Python parent id", "id")
PAUSE_NS = 1_000_000  # between two repeats
SAMPLED_EVERY_S = 0.02
PEER = """
import sys
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserBackend, ParserConfig
asked = ParserConfig.get_default_cfg()
asked.set_parser_backend(ParserBackend.JSON)
parse_trace_dataframe(sys.argv[1], asked)
"""

# An event's text with a hole for each time and id, and what goes there: is it a time, its value.
Template = tuple[str, list[tuple[bool, int]]]


class Cost(NamedTuple):
    """What a command took: one time, or as the median of several with the largest peak."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    load: float  # of the machine as it began


def repeat(source: Path, out: Path, size: float) -> None:
    """Write a trace that holds the events of another over and over, up to a size in bytes."""
    with gzip.open(source, "rt") as file:
        trace = json.load(file, parse_float=Decimal)
    events = trace.pop("traceEvents")
    timed = [(_ns(e["ts"]), _ns(e.get("dur", 0))) for e in events if "ts" in e]
    span = max(t + d for t, d in timed) - min(t for t, _ in timed) + PAUSE_NS
    templates = [_template(e) for e in events]
    ids = 1 + max(value for _, holes in templates for is_time, value in holes if not is_time)
    with out.open("w") as to:
        to.write(json.dumps(trace, default=float)[:-1] + ', "traceEvents": [\n')
        done = 0
        while to.tell() < size:
            for text, holes in templates:
                to.write(text % tuple([
                    _microseconds(v + done * span) if is_time else v + done * ids
                    for is_time, v in holes
                ]))  # fmt: skip
            done += 1
        to.write('  {"ph": "M", "name": "repeats", "args": {"count": ' + f"{done}}}}}\n]}}\n")


def _template(event: dict[str, Any]) -> Template:
    holes: list[tuple[bool, int]] = []

    def text(key: str, value: object) -> str:
        if key == "ts":
            holes.append((True, _ns(value)))
            return "%s"
        if key in SHIFTED_IDS and isinstance(value, int):
            holes.append((False, value))
            return "%d"
        if isinstance(value, dict):
            return (
                "{\n      "
                + ", ".join(f"{_json(k)}: {text(k, v)}" for k, v in value.items())
                + "\n    }"
            )
        return _json(value)

    fields = ",\n    ".join(f"{_json(k)}: {text(k, v)}" for k, v in event.items())
    return "  {\n    " + fields + "\n  },\n", holes


def _json(value: object) -> str:
    """Return JSON that keeps every digit of a decimal, for use in a template."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    text = f"{value:f}" if isinstance(value, Decimal) else json.dumps(value)
    return text.replace("%", "%%")


def _ns(microseconds: Any) -> int:
    return int(Decimal(microseconds) * 1000)


def _microseconds(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03}"


def measure(command: list[str]) -> Cost:
    """Run a command once."""
    load = os.getloadavg()[0]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".types")}
    started = time.perf_counter()
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    )
    peak, status = 0, 0
    while not status:
        peak = max(peak, _resident(child.pid))
        time.sleep(SAMPLED_EVERY_S)
        status, result, used = os.wait4(child.pid, os.WNOHANG)
    wall = time.perf_counter() - started
    if result:
        said = child.stderr.read().decode() if child.stderr else ""
        sys.exit(f"{' '.join(command)} failed: {said}")
    return Cost(wall, used.ru_utime + used.ru_stime, peak / 1e6, load)


def _resident(pid: int) -> int:
    """Return the resident bytes of a process and of all that it started."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        started = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has just ended
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(_resident(int(child)) for child in started)


def measured(commands: dict[str, list[str]], times: int) -> dict[str, Cost]:
    """Run each command several times, in turn, so that a busy spell falls on all of them."""
    taken: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            taken[name].append(measure(command))

    def of(costs: list[Cost], field: str, choose: Callable[[list[float]], float]) -> float:
        return choose([getattr(cost, field) for cost in costs])

    return {
        name: Cost(
            of(costs, "wall_s", statistics.median),
            of(costs, "cpu_s", statistics.median),
            of(costs, "peak_mb", max),
            of(costs, "load", statistics.median),
        )
        for name, costs in taken.items()
    }


def report(trace: Path, run: Path, peer: str | None, times: int) -> None:
    """Measure a trace plain and gzipped and the analysis of its run, and print a row for each."""
    megabytes = trace.stat().st_size / 1e6
    zipped = trace.with_suffix(".json.gz")
    with trace.open("rb") as plain, gzip.open(zipped, "wb", compresslevel=6) as file:
        while block := plain.read(1 << 20):
            file.write(block)
    ours = [sys.executable, str(ROOT / "cli.py")]
    commands = {
        "import": [*ours, "import", str(trace), "--out", str(run), "--overwrite"],
        "import, gz": [*ours, "import", str(zipped), "--out", str(run), "--overwrite"],
        "analyze": [*ours, "analyze", str(run)],
    }
    if peer is not None and megabytes < LARGEST_FOR_PEER_MB:
        commands["HTA"] = [peer, "-c", PEER, str(trace)]
    for name, cost in measured(commands, times).items():
        print(
            f"| {megabytes:,.0f} MB | {name} | {cost.wall_s:.2f} s | {cost.cpu_s:.2f} s "
            f"| {cost.peak_mb:,.0f} MB | {cost.load:.1f} |",
            flush=True,
        )
    zipped.unlink()


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", nargs="?", type=Path, help="a Kineto trace, gz, to repeat")
    parser.add_argument("--sizes", nargs="+", type=float, default=[10, 217], metavar="MB")
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter that can import hta")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the files go; they are removed")
    asked = parser.parse_args()
    print("| trace | command | wall | CPU | peak memory | load |")
    print("| --: | :-- | --: | --: | --: | --: |")
    for size in asked.sizes:
        source = asked.trace or (SMALL if size < SMALL_MB else TRACE)
        if not source.exists():
            print(f"{source.name} is not here: name a trace to repeat")
            return
        with tempfile.TemporaryDirectory(dir=asked.folder) as name:
            trace = Path(name) / "trace.json"
            repeat(source, trace, size * 1e6)
            report(trace, Path(name) / "run", asked.peer, asked.times)


if __name__ == "__main__":
    main()
