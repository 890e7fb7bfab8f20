"""Write a report as one page that needs nothing else: no network, no file beside it.

Names from traces are text wherever they stand: escaped in the page, and inside the data of the
charts no `<` is left to end a script. A content policy admits two scripts by their hash, so that
even a slip would run nothing.
"""

import base64
import hashlib
from collections.abc import Mapping

import vl_convert
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import CAUSE_COLOURS, ROLE_COLOURS, WALL_COLOURS
from whichwall.analyze.report.contents import contents
from whichwall.analyze.report.document import (
    Answer,
    Block,
    Document,
    Figure,
    Heading,
    Items,
    Paragraph,
    Table,
    Text,
    written,
)
from whichwall.analyze.report.escape import html_text, script_json
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.style import SCRIPT, STYLE

_SWATCHES = {**ROLE_COLOURS, **CAUSE_COLOURS}


def render_html(
    inputs: ReportInputs,
    charts: Mapping[str, ChartType],
    pictures: Mapping[str, str],
) -> str:
    """Return report.html with its charts drawn by the page itself.

    `pictures` holds the same charts as SVG text: shown until a chart is drawn, and where scripts
    are off.
    """
    return page(contents(inputs, charts), charts, pictures)


def page(document: Document, charts: Mapping[str, ChartType], pictures: Mapping[str, str]) -> str:
    """Return any document as a page of its own, its charts as in `render_html`."""
    title = html_text(document.title)
    body = "\n".join(_block(block, pictures) for block in document.blocks)
    # Its stub asks for a snippet; only without one is the bundle kept for the next page.
    library: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    data = {
        "specs": {name: theme.spec(chart) for name, chart in charts.items()},
        "light": theme.config(theme.PAGE_LIGHT),
        "dark": theme.config(theme.PAGE_DARK),
    }
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(library, SCRIPT)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>",
            f"<h1>{title}</h1>",
            body,
            "</main>",
            f'<script type="application/json" id="charts">{script_json(data)}</script>',
            f"<script>{library}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        )
    )


def _policy(*scripts: str) -> str:
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    ]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _text(text: Text) -> str:
    return written(text, plain=html_text, code=_code, strong=_strong)


def _strong(words: str) -> str:
    return f"<strong>{html_text(words)}</strong>"


def _code(name: str) -> str:
    colour = _SWATCHES.get(name)
    code = f"<code>{html_text(name)}</code>"
    if colour is None:
        return code
    return f'<span class="key"><i style="background:{colour}"></i>{code}</span>'


def _block(block: Block, pictures: Mapping[str, str]) -> str:
    match block:
        case Heading(text):
            return f"<h2>{html_text(text)}</h2>"
        case Paragraph(text):
            return f"<p>{_text(text)}</p>"
        case Items(items):
            return f"<ul>{''.join(f'<li>{_text(item)}</li>' for item in items)}</ul>"
        case Table():
            return _table(block)
        case Figure():
            return _figure(block, pictures)
        case Answer():
            return _answer(block)


def _table(table: Table) -> str:
    classes = ['class="r"' if letter == "r" else "" for letter in table.align]
    head = "".join(
        f"<th {c}>{html_text(name)}</th>" for name, c in zip(table.head, classes, strict=True)
    )
    rows = "\n".join(
        "<tr>"
        + "".join(f"<td {c}>{_text(cell)}</td>" for cell, c in zip(row, classes, strict=True))
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def _figure(figure: Figure, pictures: Mapping[str, str]) -> str:
    name, says = html_text(figure.name), html_text(figure.says)
    picture = base64.b64encode(pictures[figure.name].encode()).decode()
    return (
        f'<figure id="chart-{name}">\n<div class="live"></div>\n'
        f'<img class="still" alt="{says}" src="data:image/svg+xml;base64,{picture}">\n'
        f"<figcaption>{says}</figcaption>\n</figure>"
    )


def _answer(block: Answer) -> str:
    colour = WALL_COLOURS.get(block.wall or "")
    style = f' style="--wall:{colour}"' if colour else ""
    said = [f"<p>{_text(sentence)}</p>" for sentence in block.sentences]
    said += [f'<p class="note">{_text(note)}</p>' for note in block.notes]
    cards = "".join(
        f"<div><dt>{html_text(name)}</dt><dd>{html_text(value)}</dd></div>"
        for name, value in block.figures
    )
    figures = f'\n<dl class="cards">{cards}</dl>' if cards else ""
    return f'<div class="answer"{style}>{"".join(said)}</div>{figures}'
