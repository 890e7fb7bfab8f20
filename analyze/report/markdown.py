"""Write a report as Markdown that code hosts show, its charts beside it as SVG files."""

from collections.abc import Collection, Iterable

from whichwall.analyze.report.contents import contents
from whichwall.analyze.report.document import (
    Answer,
    Block,
    Document,
    Figure,
    Heading,
    Items,
    Paragraph,
    Strong,
    Table,
    Text,
    written,
)
from whichwall.analyze.report.escape import markdown_code, markdown_text
from whichwall.analyze.report.inputs import ReportInputs

_RULES = {"l": ":--", "r": "--:"}


def render_markdown(inputs: ReportInputs, figures: Collection[str]) -> str:
    """Return report.md; `figures` names the charts whose SVG files lie beside it."""
    return markdown(contents(inputs, figures))


def markdown(document: Document) -> str:
    """Return any document as Markdown."""
    blocks = [f"# {markdown_text(document.title)}"]
    blocks += [_block(block) for block in document.blocks]
    return "\n\n".join(blocks) + "\n"


def _text(text: Text) -> str:
    return written(text, plain=markdown_text, code=markdown_code, strong=_strong)


def _strong(words: str) -> str:
    return f"**{markdown_text(words)}**"


def _block(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {markdown_text(text)}"
        case Paragraph(text):
            return _text(text)
        case Items(items):
            return "\n".join(f"- {_text(item)}" for item in items)
        case Table():
            return _table(block)
        case Figure(name, says):
            return f"![{markdown_text(says)}]({name}.svg)\n\n*{markdown_text(says)}*"
        case Answer():
            return _answer(block)


def _table(table: Table) -> str:
    lines = [
        _line(markdown_text(name) for name in table.head),
        _line(_RULES[letter] for letter in table.align),
    ]
    lines += [_line(_text(cell) for cell in row) for row in table.rows]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _answer(block: Answer) -> str:
    paragraphs = [" ".join(_text(sentence) for sentence in block.sentences)]
    paragraphs += [_text(note) for note in block.notes]
    if block.figures:
        names = tuple(name for name, _ in block.figures)
        values: tuple[Text, ...] = tuple(Strong(value) for _, value in block.figures)
        paragraphs.append(_table(Table(head=names, rows=(values,), align="r" * len(names))))
    return "\n\n".join(paragraphs)
