"""Print how much of each trace gets a role that its recorded truth accepts.

    python benchmarks/score_roles.py [FOLDER] [--mistakes N]

A folder holds traces (`NAME.json.gz`), for each the truth (`NAME.truth.csv`: correlation, ts_us,
dur_us and the accepted roles, separated by |) and a model's `MODEL.config.json` for the traces
whose names begin with MODEL. Each trace is scored with its model's dimensions and without. The
default folder is the traces beside the checkout.
"""

import argparse
import csv
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import polars as pl

from whichwall.analyze.trace import Trace, read_trace
from whichwall.collect.importer import import_run
from whichwall.schemas.activities import Activities
from whichwall.schemas.roles import OTHER, Roles
from whichwall.schemas.run import open_run

FOLDER = Path(__file__).parents[1].parent / "shared/traces/roles"
TRACE, TRUTH, CONFIG = ".json.gz", ".truth.csv", ".config.json"
MICROSECOND_NS = 1000
ACCEPTED, RIGHT = "accepted", "right"


class Score(NamedTuple):
    """How one trace fared."""

    kernels: int
    right_kernels: float
    right_time: float
    attributed_time: float
    mean_confidence: float
    layers: int


def read_truth(path: Path, base_ns: int) -> pl.DataFrame:
    """Return the accepted roles of each activity, by correlation and start."""
    rows: dict[tuple[int, int], set[str]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            key = int(row["correlation"]), base_ns + round(Decimal(row["ts_us"]) * MICROSECOND_NS)
            rows.setdefault(key, set()).update(row["accepted_roles"].split("|"))
    return pl.DataFrame(
        {
            Activities.correlation: [key[0] for key in rows],
            Activities.start_ns: [key[1] for key in rows],
            ACCEPTED: [sorted(accepted) for accepted in rows.values()],
        },
        schema_overrides={ACCEPTED: pl.List(pl.String)},
    )


def compare(trace: Trace, truth: pl.DataFrame) -> pl.DataFrame:
    """Return the activities that the truth knows, with their roles and whether they are right."""
    found = trace.activities.hstack(
        trace.roles.select(Roles.role, Roles.layer, Roles.method, Roles.confidence)
    )
    return found.join(
        truth, on=[Activities.correlation, Activities.start_ns], maintain_order="left"
    ).with_columns(pl.col(ACCEPTED).list.contains(pl.col(Roles.role)).alias(RIGHT))


def score(compared: pl.DataFrame) -> Score:
    """Return the shares of kernels and of GPU time with an accepted role."""
    whole = compared[Activities.dur_ns].sum()

    def share(rows: pl.Expr) -> float:
        return float(compared.filter(rows)[Activities.dur_ns].sum() / whole)

    deepest = compared.select(pl.col(Roles.layer).max()).item()
    return Score(
        compared.height,
        compared.filter(RIGHT).height / compared.height,
        share(pl.col(RIGHT)),
        share(pl.col(Roles.role) != OTHER),
        float(compared.select(pl.col(Roles.confidence).mean()).item()),
        0 if deepest is None else deepest + 1,
    )


def mistakes(compared: pl.DataFrame, most: int) -> Iterator[str]:
    """Yield the most frequent kinds of wrong roles."""
    kind = [Roles.role, ACCEPTED, Activities.op_name, Activities.op_dims]
    wrong = compared.filter(~pl.col(RIGHT)).group_by(kind).len().sort("len", descending=True)
    for role, accepted, op, dims, count in wrong.head(most).iter_rows():
        yield f"    {count} × {role}, expected {'|'.join(accepted)}: {op} {dims}"


def report(folder: Path, most: int) -> None:
    """Print a line for each trace, with its model and without."""
    print(f"{'trace':36} {'model':6} kernels   right  time right  attributed  confidence  layers")
    for truth_file in sorted(folder.glob(f"*{TRUTH}")):
        name = truth_file.name.removesuffix(TRUTH)
        config = next(
            c for c in folder.glob(f"*{CONFIG}") if name.startswith(c.name.split(CONFIG)[0])
        )
        for model in (config, None):
            with tempfile.TemporaryDirectory() as place:
                run = open_run(
                    import_run([folder / f"{name}{TRACE}"], Path(place) / "run", model=model)
                )
                base_ns = run.manifest.ranks[0].base_ns or 0
                compared = compare(read_trace(run), read_truth(truth_file, base_ns))
            s = score(compared)
            print(
                f"{name:36} {'given' if model else 'none':6} {s.kernels:7} {s.right_kernels:7.2%} "
                f"{s.right_time:11.2%} {s.attributed_time:11.2%} {s.mean_confidence:11.3f} "
                f"{s.layers:7}"
            )
            for line in mistakes(compared, most):
                print(line)


def main() -> None:
    """Parse the command line and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--mistakes", type=int, default=5, metavar="N", help="kinds shown a trace")
    options = parser.parse_args()
    if not options.folder.is_dir():
        print(f"{options.folder} is not here: name a folder of traces and their truth")
        return
    report(options.folder, options.mistakes)


if __name__ == "__main__":
    main()
