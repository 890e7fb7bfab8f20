"""Write the chart of a prediction into a file, with the points that a run measured on it."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import vl_convert
from altair.typing import ChartType

from whichwall.analyze.capacity import reaches
from whichwall.analyze.charts import theme
from whichwall.analyze.charts.interactivity import COLOURS, finding, interactivity
from whichwall.analyze.floors import Basis
from whichwall.analyze.interactivity import curves, measured, served
from whichwall.analyze.measurements import read_measurements
from whichwall.analyze.predict_setting import Setting
from whichwall.analyze.quantities import with_unit
from whichwall.analyze.serving import serving
from whichwall.analyze.sweep import sweep
from whichwall.analyze.timings import timings
from whichwall.schemas.chart import Interactivity
from whichwall.schemas.engines import OPENAI
from whichwall.schemas.errors import InputError, UsageError
from whichwall.schemas.manifest import Manifest
from whichwall.schemas.prediction import Memory
from whichwall.schemas.run import frame, open_run
from whichwall.schemas.steps import Steps

SVG, PNG, HTML = ".svg", ".png", ".html"
# Curves that lie apart on most cards: a chat, a document, an agent at work.
CONTEXTS = (1024, 8192, 32768)
SCALE = 2  # of a PNG, for a screen with dense pixels


def write_chart(
    file: Path, asked: Setting, held: Memory, contexts: Sequence[int], run: Path | None
) -> None:
    """Write what each user gets against what all get, of decode at several contexts.

    Args:
        file: an .svg, .png or .html; an earlier one is replaced.
        asked: the model and the card.
        held: the memory that the prediction found.
        contexts: one curve each; none: those of the run, else usual ones.
        run: a run whose decode steps are drawn as points, solid.

    Raises:
        UsageError: another kind of file, too many contexts, or no place to write.
        InputError: the run is of another model, or has no decode step to draw.
    """
    check_chart(file, contexts)
    points, where = (frame(Interactivity, []), "") if run is None else measured_points(run, asked)
    seen = points.get_column(Interactivity.context_tokens).unique().sort().to_list()
    usual = [tokens for tokens in CONTEXTS if reaches(asked.model, tokens + 1)]
    chosen = list(contexts) or seen[: len(COLOURS)] or usual or [asked.context_tokens]
    points = points.filter(pl.col(Interactivity.context_tokens).is_in(chosen))
    rows = pl.concat([curves(asked, held, chosen), points])
    if not rows.height:
        raise UsageError(
            f"--chart: not one conversation of {asked.model.name} fits on {asked.limits.name}; "
            "give another card, --tensor-parallel or shorter --contexts"
        )
    _write(file, interactivity(rows, finding(rows), _subtitle(asked, points, where)))


def check_chart(file: Path, contexts: Sequence[int]) -> None:
    """Refuse what cannot be drawn, before anything is worked out.

    Raises:
        UsageError: the file is of another kind, or there are more contexts than colours.
    """
    if file.suffix.lower() not in (SVG, PNG, HTML):
        raise UsageError(f"--chart {file}: expected a name that ends in {SVG}, {PNG} or {HTML}")
    if len(contexts) > len(COLOURS):
        raise UsageError(f"--contexts: {len(contexts)} curves; a chart has {len(COLOURS)} at most")


def measured_points(path: Path, asked: Setting) -> tuple[pl.DataFrame, str]:
    """Return `Interactivity` of a run's clean decode steps, and on what they were taken.

    Raises:
        InputError: not a run, one of another model, or one without such steps.
    """
    run = open_run(path)
    found = run.manifest.model
    if found is not None and found.name != asked.model.name:
        raise InputError(
            f"--measured {path}: a run of {found.name}, while --model is {asked.model.name}; "
            "expected a run of the same model"
        )
    read = read_measurements(run)
    basis = Basis(
        run.manifest, found, read.points, read.ceilings, timings(read.passes), frame(Steps, [])
    )
    asked_of_a_server = served(serving(read.points, read.completions, read.tokens))
    points = measured(sweep(basis, read.passes, [])).vstack(asked_of_a_server)
    if not points.height:
        raise InputError(
            f"--measured {path}: no clean decode step with a known batch and context; expected a "
            "run of collect --mode batch or decode"
        )
    return points, _where(run.manifest)


def _where(manifest: Manifest) -> str:
    """Return on what a run was measured: its cards, or the server of which none is known."""
    cards = ", ".join(sorted({gpu.name for gpu in manifest.gpus}))
    if manifest.server is None:
        return cards or "a CPU"
    server = f"{manifest.server.model} at {manifest.server.url}"
    return f"{cards} ({server})" if cards else server


def _subtitle(asked: Setting, points: pl.DataFrame, where: str) -> list[str]:
    limits = asked.limits
    rate = "" if limits.tflops is None else f" and {with_unit(limits.tflops, 'TFLOP/s')}"
    ranks = f", tensor parallel over {asked.ranks}" if asked.ranks > 1 else ""
    lines = [
        f"{asked.model.name}, weights {asked.weights.name}, cache {asked.cache.name}{ranks}.",
        f"Dashed: the roofline at {with_unit(limits.bandwidth_gbps, 'GB/s')} "
        f"({limits.bandwidth_from}){rate}, {limits.name}; batches doubled as long as they fit.",
    ]
    if points.height:
        engines = points.get_column(Interactivity.engine).unique(maintain_order=True)
        lines.append(f"Solid: measured on {where}, {', '.join(engines)}.")
        if OPENAI in engines:
            lines.append("Of a server: 1 / TPOT of each; of all, waits for first tokens included.")
    if asked.ranks > 1 and limits.link_gbps is None:
        lines.append("Without the time of sending between ranks: no rate is known.")
    return lines


def _write(file: Path, chart: ChartType) -> None:
    kind = file.suffix.lower()
    if kind == SVG:
        data = theme.svg(chart).encode()
    elif kind == PNG:
        data = vl_convert.vegalite_to_png(chart.to_dict(), scale=SCALE)
    else:
        data = chart.to_html(inline=True).encode()  # a page that needs no network
    try:
        file.write_bytes(data)
    except OSError as error:
        raise UsageError(
            f"--chart {file}: cannot write it ({error.strerror}); give a writable file"
        ) from error
