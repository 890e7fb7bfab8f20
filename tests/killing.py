"""Kill imports at random moments: each must leave no run or a whole one.

    python -m tests.killing [--kills 50] [--megabytes 50] [--seed 1]

Every second import overwrites an earlier run, of which then that one may be left. What a killed
import leaves in hidden folders must be gone once another one has ended.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from tests.conftest import ROOT
from tests.frames import BASE_NS, Row, event, gpu_event, launch_event, native
from whichwall.analyze.validate import validate

MIB = 1 << 20
NO_RUN, WHOLE = "no run", "whole"
SHAPES: Row = {"External id": 7, "Input Dims": [[1, 896], [896, 4864]]}


class Kill(NamedTuple):
    """One import that was killed, or had ended before, and what it left."""

    after_s: float
    overwrites: bool
    killed: bool
    left: str  # no run, whole, or what validate has against it
    hidden: int  # folders of half a run, or of a replaced one

    @property
    def is_right(self) -> bool:
        """Tell whether no half-run is left; one that had ended has left its run."""
        return self.left == WHOLE or (self.left == NO_RUN and self.killed)


def write_trace(path: Path, megabytes: int) -> None:
    """Write a trace of so many MiB: the same few events over and over."""
    rows = [
        event("cpu_op", "aten::mm", 10.125, 20.5, args=SHAPES),
        launch_event(12.0, 3.5, 7),
        gpu_event("void gemm<float, 128, 64>(float const*, float*, int)", 40.0, 2.25, 7),
        event("python_function", "torch/nn/modules/linear.py(116): forward", 5.0, 30.0),
    ]
    block = "".join(native(row) + ",\n" for row in rows).encode()
    chunk = block * (MIB // len(block))
    with path.open("wb") as file:
        head = f'{{"schemaVersion": 1, "baseTimeNanoseconds": {BASE_NS},\n  "traceEvents": [\n'
        file.write(head.encode())
        for _ in range(megabytes):
            file.write(chunk)
        file.write(native(rows[0]).encode() + b"\n]}\n")


def start(trace: Path, out: Path, *, overwrite: bool = False) -> subprocess.Popen[bytes]:
    """Start an import in a process of its own."""
    words = ["import", str(trace), "--out", str(out), *(["--overwrite"] if overwrite else [])]
    return subprocess.Popen(
        [sys.executable, str(ROOT / "cli.py"), *words],
        env={**os.environ, "PYTHONPATH": str(ROOT / ".types")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def finish(trace: Path, out: Path, *, overwrite: bool = False) -> float:
    """Import to the end and return how long that took, in seconds."""
    begun = time.perf_counter()
    with start(trace, out, overwrite=overwrite) as child:
        if child.wait():
            raise click.ClickException(f"the import failed with exit code {child.returncode}")
    return time.perf_counter() - begun


def kill(trace: Path, out: Path, after_s: float, *, overwrite: bool) -> Kill:
    """Start an import, kill it after a while, and look at what it left."""
    with start(trace, out, overwrite=overwrite) as child:
        time.sleep(after_s)
        child.kill()
    hidden = [path for path in out.parent.iterdir() if path.name.startswith(f".{out.name}.")]
    return Kill(after_s, overwrite, child.returncode != 0, _left(out), len(hidden))


def _left(out: Path) -> str:
    if not out.exists():
        return NO_RUN
    found = validate(out)
    return WHOLE if found.is_whole else "; ".join(found.lines())


def kills(folder: Path, count: int, megabytes: int, seed: int) -> Iterator[Kill]:
    """Kill imports of one trace at moments spread over as long as a whole one takes.

    Every stretch of that time gets its kill, at a random moment within it.
    """
    trace, out, earlier = folder / "trace.json", folder / "runs" / "run", folder / "earlier"
    out.parent.mkdir()
    write_trace(trace, megabytes)
    finish(trace, earlier)  # the first one fills caches
    whole_s = finish(trace, earlier, overwrite=True)
    moments = random.Random(seed)
    for number in range(count):
        shutil.rmtree(out, ignore_errors=True)
        overwrite = number % 2 == 1
        if overwrite:
            shutil.copytree(earlier, out)
        after_s = (number + moments.random()) / count * whole_s
        yield kill(trace, out, after_s, overwrite=overwrite)
    finish(trace, out, overwrite=True)


def left_over(folder: Path) -> list[str]:
    """Return what lies beside the run at the end: nothing should."""
    return sorted(path.name for path in (folder / "runs").iterdir() if path.name != "run")


@click.command()
@click.option("--kills", "count", default=50, show_default=True)
@click.option("--megabytes", default=50, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(count: int, megabytes: int, seed: int) -> None:
    """Print a line for each kill, and fail if any left half a run."""
    with tempfile.TemporaryDirectory() as name:
        done: list[Kill] = []
        click.echo("  n   after ms  destination  ended   hidden  left")
        for number, one in enumerate(kills(Path(name), count, megabytes, seed), 1):
            where, ended = ("run", "empty")[not one.overwrites], ("itself", "killed")[one.killed]
            click.echo(
                f"{number:3} {one.after_s * 1000:10.0f}  {where:11}  {ended:6} {one.hidden:7}  "
                f"{one.left}"
            )
            done.append(one)
        wrong = sum(not one.is_right for one in done)
        beside = left_over(Path(name))
    killed = sum(one.killed for one in done)
    half = sum(one.killed and one.hidden > 0 for one in done)
    left = ", ".join(beside) or "nothing"
    click.echo(
        f"{killed} of {count} killed, {half} with a hidden folder left; {wrong} left half a run; "
        f"beside the run of a last whole import: {left}"
    )
    sys.exit(1 if wrong or beside else 0)


if __name__ == "__main__":
    main()
