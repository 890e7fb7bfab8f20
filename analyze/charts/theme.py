"""How every chart looks: one configuration for pictures, one for each scheme of a page.

Charts name styles (`note`, `strong`, …) and never ink: the same chart then reads on white and
on dark. Only marks that carry data have colours of their own, from the palette.
"""

from dataclasses import dataclass, replace
from typing import Any

import vl_convert
from altair.typing import ChartType

# Metric-compatible faces come first, so that a label measured here fits elsewhere.
FONT = "Arial, Helvetica, sans-serif"
WIDTH = 820  # of the plot; with labels and legend a chart is about 1,000 pixels wide
TEXT_PX, SMALL_PX, TITLE_PX = 12, 11, 15


@dataclass(frozen=True)
class Scheme:
    """The inks of one scheme."""

    background: str | None
    text: str
    muted: str
    line: str
    rule: str
    padding: tuple[int, int, int, int]  # left, top, right, bottom


# A page sets its own margins; the descenders of the lowest line still need room.
_FLUSH = (0, 6, 0, 8)

LIGHT = Scheme(
    background="#ffffff",
    text="#1d2127",
    muted="#5b646e",
    line="#e3e6ea",
    rule="#aab2bb",
    padding=(10, 10, 10, 10),
)
PAGE_LIGHT = replace(LIGHT, background=None, padding=_FLUSH)
PAGE_DARK = Scheme(
    background=None,
    text="#e8eaed",
    muted="#a3abb5",
    line="#333a42",
    rule="#5d6671",
    padding=_FLUSH,
)

NOTE, STRONG, LABEL, ON_BRIGHT, ON_DARK, MARKER, RULE, SHADE, LINE = (
    "note", "strong", "label", "on_bright", "on_dark", "marker", "ledge", "shade", "curve",
)  # fmt: skip


def config(scheme: Scheme) -> dict[str, Any]:
    """Return the Vega-Lite configuration of a scheme."""
    text = {"font": FONT, "fontSize": TEXT_PX, "color": scheme.text}
    return {
        "aria": False,
        "background": scheme.background or "transparent",
        "font": FONT,
        "padding": dict(zip(("left", "top", "right", "bottom"), scheme.padding, strict=True)),
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "frame": "bounds",
            "color": scheme.text,
            "fontSize": TITLE_PX,
            "fontWeight": "bold",
            "subtitleColor": scheme.muted,
            "subtitleFontSize": TEXT_PX,
            "subtitlePadding": 5,
            "offset": 14,
        },
        "axis": {
            "labelColor": scheme.muted,
            "titleColor": scheme.muted,
            "titleFontWeight": "normal",
            "labelFontSize": SMALL_PX,
            "titleFontSize": TEXT_PX,
            "gridColor": scheme.line,
            "domainColor": scheme.line,
            "tickColor": scheme.line,
            "labelPadding": 4,
            "titlePadding": 8,
        },
        "legend": {
            "labelColor": scheme.text,
            "titleColor": scheme.muted,
            "titleFontWeight": "normal",
            "labelFontSize": SMALL_PX,
            "titleFontSize": SMALL_PX,
            "symbolType": "square",
            "symbolSize": 110,
            "rowPadding": 3,
            "columnPadding": 14,
        },
        "style": {
            NOTE: {**text, "color": scheme.muted, "fontSize": SMALL_PX},
            STRONG: {**text, "fontWeight": "bold"},
            LABEL: text,
            # Text on a mark: the mark's colour is the same in both schemes.
            ON_BRIGHT: {**text, "color": "#15181c", "fontSize": SMALL_PX},
            ON_DARK: {**text, "color": "#ffffff", "fontSize": SMALL_PX},
            MARKER: {"color": scheme.muted, "strokeDash": [4, 3]},
            RULE: {"color": scheme.rule, "strokeWidth": 1},
            LINE: {"color": scheme.text, "strokeWidth": 1.6},
            SHADE: {"color": scheme.text, "fillOpacity": 0.07},
        },
    }


def themed(chart: ChartType) -> ChartType:
    """Give a finished chart the look of pictures."""
    dressed: ChartType = chart.configure(**config(LIGHT))
    return dressed


def spec(chart: ChartType) -> dict[str, Any]:
    """Return a chart's specification without its look, which a page chooses by scheme."""
    bare: dict[str, Any] = chart.to_dict()
    bare.pop("config", None)
    return bare


def svg(chart: ChartType) -> str:
    """Render a chart as SVG text; names in it arrive escaped."""
    picture: str = vl_convert.vegalite_to_svg(chart.to_dict())
    return picture
