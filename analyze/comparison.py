"""From two runs to their comparison: reads both, compares, and writes the folder."""

from pathlib import Path

import msgspec

from whichwall.analyze.analysis import analyze
from whichwall.analyze.charts import theme
from whichwall.analyze.compare import compare
from whichwall.analyze.comparison_words import slower_by_more_than
from whichwall.analyze.report.comparison import document
from whichwall.analyze.report.comparison_figures import figures
from whichwall.analyze.report.markdown import markdown
from whichwall.analyze.report.page import page
from whichwall.schemas.comparison import Comparison
from whichwall.schemas.destination import (
    COMPARISON_FILES,
    plain,
    put_in_place,
    strangers_of_comparison,
)
from whichwall.schemas.errors import UsageError
from whichwall.schemas.partial import partial_folder
from whichwall.schemas.run import open_run

JSON_FILE, MARKDOWN_FILE, PAGE_FILE = COMPARISON_FILES


def compare_runs(a: Path, b: Path, *, fail_above: float | None = None) -> Comparison:
    """Read and compare two runs; with a limit in percent, check B's steps against it.

    Raises:
        InputError: not a run, or a damaged one.
        UsageError: there is a limit, and no step to hold against it.
    """
    found = compare(analyze(open_run(a)), analyze(open_run(b)))
    if fail_above is None:
        return found
    check = slower_by_more_than(fail_above, found)
    if check.above is None:
        raise UsageError(
            f"{a} and {b}: --fail-above cannot tell: {check.says}; collect both anew, with the "
            "same options"
        )
    return msgspec.structs.replace(found, check=check)


def write_comparison(found: Comparison, out: Path) -> Path:
    """Write compare.json, compare.md, compare.html and charts into a folder, replaced whole.

    Raises:
        UsageError: the folder is something else than an earlier comparison, or cannot be written.
    """
    out = plain(out)
    if out.is_symlink() or (out.exists() and not _is_comparison(out)):
        raise UsageError(
            f"{out}: exists and is no comparison (no {JSON_FILE} in it); give another --out"
        )
    if strangers := strangers_of_comparison(out):
        raise UsageError(
            f"{out}: holds {strangers[0]}, which is no part of a comparison, and a comparison is "
            "replaced whole; move that away, or give another --out"
        )
    try:
        with partial_folder(out) as partial:
            _write(found, partial)
            put_in_place(partial, out)
    except OSError as error:
        raise UsageError(
            f"{out}: cannot write the comparison ({error.strerror or error}); give a writable --out"
        ) from error
    return out


def _write(found: Comparison, folder: Path) -> None:
    charts = figures(found)
    pictures = {name: theme.svg(chart) for name, chart in charts.items()}
    for name, picture in pictures.items():
        (folder / f"{name}.svg").write_text(picture, encoding="utf-8")
    whole = document(found, charts)
    (folder / JSON_FILE).write_bytes(found.encode())
    (folder / MARKDOWN_FILE).write_text(markdown(whole), encoding="utf-8")
    (folder / PAGE_FILE).write_text(page(whole, charts, pictures), encoding="utf-8")


def _is_comparison(out: Path) -> bool:
    return out.is_dir() and ((out / JSON_FILE).is_file() or not any(out.iterdir()))
