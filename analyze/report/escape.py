"""Escape what traces and people wrote, so that a page shows it and never obeys it.

Kernel names hold HTML, Markdown, pipes, backticks and control characters. Shortening them is
`whichwall.analyze.names`; here they only become harmless.
"""

import html
import json
import re
from typing import Any

from whichwall.analyze.names import printable

_MARKDOWN = re.compile(r"([\\`*\[\]|~#!])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_BACKTICKS = re.compile(r"`+")


def html_text(text: str) -> str:
    """Return text for an element or a quoted attribute of a page."""
    return html.escape(printable(text), quote=True)


def markdown_text(text: str) -> str:
    """Return text that Markdown shows as it stands, in a table cell too.

    An underscore inside of a word has no meaning on code hosts and stays readable.
    """
    escaped = _MARKDOWN.sub(lambda found: "\\" + found.group(0), printable(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def markdown_code(text: str) -> str:
    """Return a code span, fenced by more backticks than the text holds in a row.

    A pipe is escaped even there: tables are cut into cells before code is looked for.
    """
    shown = printable(text).replace("|", "\\|")
    if not shown:
        return ""
    longest = max((len(run) for run in _BACKTICKS.findall(shown)), default=0)
    fence = "`" * (longest + 1)
    space = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{space}{shown}{space}{fence}"


def script_json(value: Any) -> str:
    """Return JSON that may stand inside a script element: no `<` can end it.

    Raises:
        ValueError: a number is NaN or infinite; a chart must not hold one.
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
