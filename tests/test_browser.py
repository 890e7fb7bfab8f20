"""Open a report in a real browser: charts are drawn, and names from a trace do nothing."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.report_inputs import report_inputs
from whichwall.analyze.report.write import write_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OWNED = "</script><script>document.title='owned'</script>"
IMAGE = "</td><img src=x onerror=\"document.title='owned'\">"
START_S = 90


@pytest.fixture
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no chromium on the path: scripts/chromium.sh installs Debian's")
    return found


def dump(browser: str, page: Path, profile: Path) -> str:
    """Return the page as the browser has it after its scripts ran."""
    done = subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
            "--virtual-time-budget=20000", "--dump-dom", page.as_uri(),
        ],
        capture_output=True,
        timeout=START_S,
        check=True,
    )  # fmt: skip
    return done.stdout.decode()


def test_a_browser_draws_the_charts_and_runs_no_name(browser: str, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    folder.mkdir()
    write_report(report_inputs(names=(OWNED, IMAGE, "down_kernel")), folder)
    # The page alone: nothing beside it may be needed.
    page = tmp_path / "page.html"
    page.write_bytes((folder / "report.html").read_bytes())

    dom = dump(browser, page, tmp_path / "profile")

    assert "<title>run42</title>" in dom
    for name in ("shares", "timeline", "roles", "layers", "gaps", "clocks"):
        assert f'<figure id="chart-{name}" class="drawn">' in dom
    assert dom.count('<svg xmlns="http://www.w3.org/2000/svg"') >= 5
    assert '<img src="x"' not in dom
