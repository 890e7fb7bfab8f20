"""Documents as plain text."""

from whichwall.analyze.report.document import Answer, Code, Document, Figure, Heading, Table
from whichwall.analyze.report.terminal import terminal


def test_a_table_stands_in_columns_and_a_figure_is_left_out() -> None:
    table = Table(("role", "time"), ((Code("norm"), "12 µs"), (Code("rope"), "3 µs")), "lr")
    answer = Answer(None, (("B is ", Code("faster")),), (), notes=("A note.",))

    text = terminal(Document("title", (answer, Heading("Roles"), Figure("roles", "x"), table)))

    assert text == (
        "title\n\nB is faster\nA note.\n\nROLES\n\nrole   time\nnorm  12 µs\nrope   3 µs"
    )


def test_a_name_cannot_move_the_cursor() -> None:
    assert "\x1b" not in terminal(Document("a\x1b[2Jb", ()))
