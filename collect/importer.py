"""Make a run from files that other tools wrote: profiler traces, and nvidia-smi's CSV beside."""

import os
import re
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from whichwall import __version__
from whichwall.collect.kineto.metadata import Metadata, peek_rank
from whichwall.collect.kineto.trace import TraceFacts, read_trace
from whichwall.collect.smi import read_samples
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import UsageError
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.manifest import VERSION, Environment, Gpu, Manifest, SamplerFacts
from whichwall.schemas.model import read_model
from whichwall.schemas.samples import Samples

RANK_IN_NAME = re.compile(r"rank[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)
MODE = "import"
TRACES = Path("traces")


def default_out(file: Path) -> Path:
    """Return where a trace's run goes when nothing is said: traces/, by the file's name."""
    return TRACES / (file.name.split(".json")[0].strip(". ") or "trace")


def import_run(
    files: Sequence[Path],
    out: Path,
    *,
    model: Path | None = None,
    samples: Path | None = None,
    sample_fields: Sequence[str] | None = None,
    overwrite: bool = False,
) -> Path:
    """Import traces of one run, a rank a file, and return the run's folder.

    Args:
        files: Kineto JSON, plain or gz.
        out: the run's folder.
        model: a transformers config.json, or a folder with one.
        samples: nvidia-smi's CSV, with or without header and units, plain or gz.
        sample_fields: its columns as they were queried, for a file without a header.
        overwrite: replace an earlier run at `out`.

    Raises:
        InputError: a file is not what was expected.
        UsageError: two files of one rank, a file twice, fields without samples, or `out` cannot be
            written.
    """
    _refuse_twice(files)
    if sample_fields is not None and samples is None:
        raise UsageError("--sample-fields names the columns of --samples; give that file too")
    described = read_model(model) if model else None
    ranks, diagnostics = _ranks(files)
    with RunWriter(out, overwrite=overwrite) as writer:
        traces = [
            read_trace(path, writer, rank=rank, numbered=len(files) > 1)
            for path, rank in zip(files, ranks, strict=True)
        ]
        stated = traces[0].metadata.rank
        if len(files) == 1 and stated not in (None, ranks[0]):
            writer.start_again()
            traces = [read_trace(files[0], writer, rank=stated)]
        for trace in traces:
            diagnostics += trace.diagnostics
        sampler = None
        if samples is not None:
            sampler = _add_samples(writer, samples, sample_fields, diagnostics)
        return writer.finish(
            Manifest(
                schema_version=VERSION,
                id="",
                name="",
                created_ns=time.time_ns(),
                tool_version=__version__,
                command=_command(files, model, samples),
                mode=MODE,
                model=described,
                ranks=[trace.rank for trace in sorted(traces, key=lambda t: t.rank.rank)],
                gpus=_gpus(traces),
                environment=_environment(traces[0].metadata),
                sampler=sampler,
                diagnostics=diagnostics,
            )
        )


def _refuse_twice(files: Sequence[Path]) -> None:
    """Refuse a file given twice, under whatever names: it would count as two ranks."""
    seen: dict[Path, Path] = {}
    for path in files:
        real = Path(os.path.realpath(path))
        if real in seen:
            raise UsageError(
                f"{path}: is the same file as {seen[real]}; give each rank's file once"
            )
        seen[real] = path


def _ranks(files: Sequence[Path]) -> tuple[list[int], list[Diagnostic]]:
    """Return a rank per file: as the file states it, else as its name does, else in order.

    What a single gzip file states behind its events is seen once it has been read.
    """
    stated = [_stated_rank(path, inflate=len(files) > 1) for path in files]
    named = [rank for rank in stated if rank is not None]
    twice = sorted({rank for rank in named if named.count(rank) > 1})
    if twice:
        both = ", ".join(p.name for p, r in zip(files, stated, strict=True) if r == twice[0])
        raise UsageError(
            f"{both}: all say rank {twice[0]}; import traces of one run, a rank a file"
        )
    free = iter(n for n in range(len(files) + len(named)) if n not in named)
    ranks = [next(free) if rank is None else rank for rank in stated]
    unsaid = stated.count(None)
    if len(files) > 1 and unsaid:
        message = "files say no rank; they are numbered in the order given"
        return ranks, [Diagnostic("missing_rank", "warning", unsaid, message)]
    return ranks, []


def _stated_rank(path: Path, *, inflate: bool) -> int | None:
    rank = peek_rank(path, inflate=inflate)
    if rank is None and (match := RANK_IN_NAME.search(path.name)):
        rank = int(match.group(1))
    return rank


def _add_samples(
    writer: RunWriter, path: Path, fields: Sequence[str] | None, diagnostics: list[Diagnostic]
) -> SamplerFacts:
    capture = read_samples(path, fields)
    writer.write(Samples, capture.rows)
    diagnostics += capture.diagnostics
    return capture.facts


def _gpus(traces: Sequence[TraceFacts]) -> list[Gpu]:
    """Return the GPUs that the files list, each once."""
    found: list[Gpu] = []
    for trace in traces:
        found += [gpu for gpu in trace.metadata.gpus if gpu not in found]
    return found


def _environment(metadata: Metadata) -> Environment:
    return Environment(
        cuda_runtime=_dotted(metadata.cuda_runtime),
        cuda_driver=_dotted(metadata.cuda_driver),
        cupti=metadata.cupti,
    )


def _dotted(version: str | None) -> str | None:
    """Return CUDA's 13010 as 13.1; any other spelling as it is."""
    if version is None or not version.isdecimal():
        return version
    major, rest = divmod(int(version), 1000)
    return f"{major}.{rest // 10}"


def _command(files: Sequence[Path], model: Path | None, samples: Path | None) -> str:
    """Return the command without folders: a home path is nobody else's business."""
    words = ["whichwall", MODE, *(path.name for path in files)]
    words += ["--model", model.name] if model else []
    words += ["--samples", samples.name] if samples else []
    return shlex.join(words)
