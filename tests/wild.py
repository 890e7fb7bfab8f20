"""A healthy trace to break in many ways, and what an analysis says of a file in few words."""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.frames import BASE_NS, LAUNCH, Row, event, trace_text
from whichwall.analyze.analysis import analyze
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.collect.importer import import_run
from whichwall.schemas.activities import Activities
from whichwall.schemas.run import open_run

MANY = 4
FIRST_NS = BASE_NS + 10_000
# What any trace of so few kernels is told.
USUAL = {"no_clean_timing", "power_not_measurable", "no_shapes"}


@dataclass(frozen=True)
class Said:
    """What a test may ask of an analyzed file; by device where there are several."""

    activities: int
    busy_ns: int | list[int] | None
    window_ns: int | list[int] | None
    gaps_ns: dict[str, int] | list[dict[str, int]] | None
    codes: Mapping[str, int | None] = field(default_factory=dict)


def op(at: int, id_: int, name: str = "aten::mm", **more: object) -> Row:
    """Return an operator's event that begins at a microsecond, 20 long."""
    args = {"External id": id_, "Input Dims": [[4, 4], [4, 4]], "Input type": ["float", "float"]}
    return event("cpu_op", name, f"{at}.000", "20.000", args=args, **more)


def launch(at: int, correlation: int, name: str = LAUNCH, **more: object) -> Row:
    """Return an API call's event, 3 microseconds long."""
    return event("cuda_runtime", name, f"{at}.000", "3.000",
                 args={"correlation": correlation}, **more)  # fmt: skip


def kernel(
    at: int, correlation: int, dur: int = 50, *, device: int = 0, stream: int = 7, **more: object
) -> Row:
    """Return a kernel's event; `name` and other fields may be given."""
    args = {"device": device, "stream": stream, "correlation": correlation}
    name = str(more.pop("name", f"kernel_{correlation}"))
    given: Row = {"pid": device, "tid": stream, "args": args, **more}
    return event("kernel", name, f"{at}.000", f"{dur}.000", **given)


def healthy(many: int = MANY, begin: int = 0, first: int = 1, **more: object) -> list[Row]:
    """Return operators with a kernel of 50 us each, 100 us apart: all gaps are late launches."""
    rows: list[Row] = []
    for i in range(many):
        at, number = begin + 100 * i, first + i
        rows += [op(at, number), launch(at + 5, number), kernel(at + 10, number, **more)]  # type: ignore[arg-type]
    return rows


def well(many: int = MANY, /, **codes: int | None) -> Said:
    """Return what is right for `healthy`."""
    gaps = {"launch": 50_000 * (many - 1)} if many > 1 else {}
    return Said(many, 50_000 * many, 100_000 * many - 50_000, gaps, codes)


def looked_at(folder: Path, *texts: bytes, names: Sequence[str] = ()) -> ReportInputs:
    """Import texts as files of one run and analyze it."""
    names = names or [f"t{i}.json" for i in range(len(texts))]
    files = [folder / name for name in names]
    for path, text in zip(files, texts, strict=True):
        path.write_bytes(text)
    return analyze(open_run(import_run(files, folder / "run", overwrite=True)))


def said(folder: Path, *texts: bytes, names: Sequence[str] = ()) -> Said:
    """Return the numbers of texts imported as files of one run."""
    inputs = looked_at(folder, *texts, names=names)
    devices = inputs.summary.devices
    busy, window = [d.busy_ns for d in devices], [d.window_ns for d in devices]
    gaps = [d.gaps.by_cause_ns for d in devices]
    codes: dict[str, int | None] = {
        d.code: d.count for d in inputs.summary.diagnostics if d.code not in USUAL
    }
    one = len(devices) == 1
    return Said(
        inputs.activities.height,
        busy[0] if one else busy or None,
        window[0] if one else window or None,
        gaps[0] if one else gaps or None,
        codes,
    )


def operators(inputs: ReportInputs) -> list[str | None]:
    """Return the operator behind each activity, in order of start."""
    found: list[str | None] = inputs.activities.sort(Activities.start_ns)[
        Activities.op_name
    ].to_list()
    return found


def packed(text: bytes) -> bytes:
    """Return a text as a gzip file."""
    return gzip.compress(text, mtime=0)


def broken(rows: Sequence[Row], marks: dict[bytes, bytes], **metadata: object) -> bytes:
    """Return a trace's text in which each mark, written as a JSON string, became raw bytes."""
    text = trace_text(rows, **metadata)
    for mark, raw in marks.items():
        quoted = b'"' + mark + b'"'
        assert quoted in text
        text = text.replace(quoted, raw)
    return text
