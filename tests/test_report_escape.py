import json

import pytest

from whichwall.analyze.report.escape import html_text, markdown_code, markdown_text, script_json


def test_html_keeps_no_markup_of_a_name() -> None:
    assert html_text("</td><img src=x onerror=\"a('b')\">\n&") == (
        "&lt;/td&gt;&lt;img src=x onerror=&quot;a(&#x27;b&#x27;)&quot;&gt; &amp;"
    )


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("gate_up_proj", "gate_up_proj"),
        ("_init_", "\\_init\\_"),
        ("a | b *c* `d`", "a \\| b \\*c\\* \\`d\\`"),
        ("[text](javascript:alert(3))", "\\[text\\](javascript:alert(3))"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("two\nlines", "two lines"),
    ],
)
def test_markdown_shows_text_as_it_stands(text: str, escaped: str) -> None:
    assert markdown_text(text) == escaped


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("a | b", "`a \\| b`"),
        ("tick `code` tick", "``tick `code` tick``"),
        ("`", "`` ` ``"),
        ("a ``` b", "````a ``` b````"),
        ("two\nlines", "`two lines`"),
        ("\n", ""),
    ],
)
def test_a_code_span_holds_any_name_and_leaves_its_cell_whole(text: str, span: str) -> None:
    assert markdown_code(text) == span


def test_json_in_a_page_cannot_end_its_script() -> None:
    value = {"name": "</script><script>document.title='owned'</script><!--"}

    written = script_json(value)

    assert "<" not in written
    assert json.loads(written) == value


def test_json_refuses_what_is_not_a_number() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json([float("nan")])
