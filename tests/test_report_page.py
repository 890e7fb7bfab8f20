import base64
import hashlib
import json
import re

import pytest

from tests.report_inputs import report_inputs, without_gpu
from whichwall.analyze.charts.theme import svg
from whichwall.analyze.report.figures import charts
from whichwall.analyze.report.page import render_html

OWNED = "</script><script>document.title='owned'</script>"
IMAGE = "</td><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def page() -> str:
    inputs = report_inputs(names=(OWNED, IMAGE, "a & b"))
    drawn = charts(inputs)
    return render_html(inputs, drawn, {name: svg(chart) for name, chart in drawn.items()})


def data(page: str) -> dict[str, dict[str, object]]:
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.S)
    assert found
    made: dict[str, dict[str, object]] = json.loads(found.group(1))
    return made


def test_names_are_text_in_the_page_and_in_its_data(page: str) -> None:
    assert OWNED not in page
    assert IMAGE not in page
    assert "&lt;img src=x onerror=alert(2)&gt;" in page
    assert OWNED in json.dumps(data(page)["specs"])


def test_the_page_holds_every_chart_without_a_look_of_its_own(page: str) -> None:
    specs = data(page)["specs"]

    assert list(specs) == [
        "shares", "timeline", "roles", "layers", "gaps", "clocks", "binding"
    ]  # fmt: skip
    assert all(isinstance(spec, dict) and "config" not in spec for spec in specs.values())


def test_the_page_needs_nothing_from_elsewhere(page: str) -> None:
    body = re.sub(r"<script.*?</script>", "", page, flags=re.S)

    assert not re.search(r"(?:src|href)=\"(?!data:)", body)
    assert "@import" not in body


def test_only_scripts_named_by_their_hash_may_run(page: str) -> None:
    scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy

    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    assert re.findall(r"'sha256-([^']*)'", policy.group(1)) == hashes
    assert "default-src 'none'" in policy.group(1)


def test_each_figure_has_a_picture_for_readers_without_scripts(page: str) -> None:
    pictures = re.findall(r'<img class="still" alt="[^"]+" src="data:image/svg\+xml;base64,', page)

    assert len(pictures) == 7


def test_a_page_without_charts_is_still_a_page() -> None:
    inputs = without_gpu(report_inputs())

    page = render_html(inputs, {}, {})

    assert data(page)["specs"] == {}
    assert "No verdict" in page
