"""Write a report into a folder: the edge where charts and texts become files."""

from pathlib import Path

from whichwall.analyze.charts import theme
from whichwall.analyze.report.figures import charts
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.markdown import render_markdown
from whichwall.analyze.report.page import render_html


def write_report(inputs: ReportInputs, folder: Path) -> None:
    """Write report.md, report.html and an SVG per chart into an existing, empty folder."""
    drawn = charts(inputs)
    pictures = {name: theme.svg(chart) for name, chart in drawn.items()}
    for name, picture in pictures.items():
        (folder / f"{name}.svg").write_text(picture, encoding="utf-8")
    (folder / "report.md").write_text(render_markdown(inputs, list(drawn)), encoding="utf-8")
    page = render_html(inputs, drawn, pictures)
    (folder / "report.html").write_text(page, encoding="utf-8")
