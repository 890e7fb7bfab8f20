"""Write a document as plain text: for a terminal, a pipe or a log."""

import textwrap

from whichwall.analyze.names import printable
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

WIDTH = 100
BETWEEN = "  "


def terminal(document: Document) -> str:
    """Return the document as text; figures are left out, tables keep their width."""
    parts = [printable(document.title), *(_block(block) for block in document.blocks)]
    return "\n\n".join(part for part in parts if part)


def _text(text: Text) -> str:
    return written(text, plain=printable, code=printable, strong=printable)


def _folded(text: Text) -> str:
    return textwrap.fill(_text(text), WIDTH, break_long_words=False, break_on_hyphens=False)


def _block(block: Block) -> str:
    match block:
        case Heading(text):
            return printable(text).upper()
        case Paragraph(text):
            return _folded(text)
        case Items(items):
            return "\n".join(f"- {_text(item)}" for item in items)
        case Table():
            return _table(block)
        case Answer():
            return "\n".join(map(_folded, (*block.sentences, *block.notes)))
        case Figure():
            return ""


def _table(table: Table) -> str:
    lines = [table.head, *(tuple(map(_text, row)) for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        BETWEEN.join(
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(line, widths, table.align, strict=True)
        ).rstrip()
        for line in lines
    )
