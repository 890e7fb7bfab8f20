"""What a report is made of: a few kinds of block, said once and written as Markdown and as HTML."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Code:
    """A name taken from a trace or typed by a person, shown letter by letter."""

    text: str


@dataclass(frozen=True)
class Strong:
    """Words that carry the answer."""

    text: str


Inline = str | Code | Strong
Text = Inline | tuple[Inline, ...]
Write = Callable[[str], str]


@dataclass(frozen=True)
class Heading:
    """The title of a section."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    text: Text


@dataclass(frozen=True)
class Items:
    """A list of short texts."""

    items: tuple[Text, ...]


@dataclass(frozen=True)
class Table:
    """A table; `align` has a letter per column, `l` or `r` for numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]
    align: str


@dataclass(frozen=True)
class Figure:
    """A chart by its name, with the sentence that says what it shows."""

    name: str
    says: str


@dataclass(frozen=True)
class Answer:
    """The verdict in two sentences, with the figures that stand behind it."""

    wall: str | None
    sentences: tuple[Text, ...]
    figures: tuple[tuple[str, str], ...]
    notes: tuple[Text, ...] = ()


Block = Heading | Paragraph | Items | Table | Figure | Answer


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    blocks: tuple[Block, ...] = field(default=())


def parts(text: Text) -> tuple[Inline, ...]:
    """Return the pieces of a text, of which it may be a single one."""
    return text if isinstance(text, tuple) else (text,)


def written(text: Text, *, plain: Write, code: Write, strong: Write) -> str:
    """Write a text, each kind of piece in its own way."""
    pieces = []
    for part in parts(text):
        if isinstance(part, Code):
            pieces.append(code(part.text))
        elif isinstance(part, Strong):
            pieces.append(strong(part.text))
        else:
            pieces.append(_joined(part, plain))
    return "".join(pieces)


def _joined(part: str, plain: Write) -> str:
    """Write a plain piece; spaces at its ends stay, since they join it to its neighbours."""
    lead = " " if part[:1] == " " else ""
    tail = " " if part[-1:] == " " and part.strip() else ""
    return f"{lead}{plain(part)}{tail}"
