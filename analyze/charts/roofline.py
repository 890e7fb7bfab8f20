"""Draw the roof of a card and, under it, what each role of a step reaches."""

import math
from dataclasses import dataclass

import altair as alt
import polars as pl
from altair.typing import ChartType

from whichwall.analyze.charts import theme
from whichwall.analyze.charts.palette import CALL, ROLE_COLOURS
from whichwall.analyze.quantities import percent, significant, with_unit
from whichwall.analyze.roofline import ridge, roof
from whichwall.schemas.chart import Roofline

WIDTH, HEIGHT = theme.WIDTH - 60, 400
LABEL_PX, AWAY_PX = 16, 36
# Room for words: to the right of the points, and of the roof above and left of its corner.
RIGHT_PX, LOWER, HIGHER = 270, 3.0, 4.0

_X, _Y, _LABEL_X, _LABEL_Y, _TEXT = "x", "y", "label_x", "label_y", "text"


@dataclass(frozen=True)
class Roof:
    """A card's two ceilings, and the words for each."""

    bandwidth_gbps: float
    tflops: float
    bandwidth_says: str
    tflops_says: str


@dataclass(frozen=True)
class _Frame:
    """The ends of both axes; both are logarithmic."""

    left: float
    right: float
    low: float
    high: float

    def x(self, pixels: float) -> float:
        """Return the intensity so many pixels from the left."""
        return self.left * math.exp(math.log(self.right / self.left) * pixels / WIDTH)

    def x_px(self, intensity: float) -> float:
        """Return how many pixels from the left an intensity is."""
        return WIDTH * math.log(intensity / self.left) / math.log(self.right / self.left)

    def y(self, pixels: float) -> float:
        """Return the rate so many pixels from the top."""
        return self.high * math.exp(math.log(self.low / self.high) * pixels / HEIGHT)

    def y_px(self, rate: float) -> float:
        """Return how many pixels from the top a rate is."""
        return HEIGHT * math.log(rate / self.high) / math.log(self.low / self.high)


def roofline(points: pl.DataFrame, limits: Roof, title: str, subtitle: list[str]) -> ChartType:
    """Draw `Roofline`; each point is named beside it, and names never overlap."""
    area = _frame(points, limits)
    placed = _placed(points, area)
    names = placed.get_column(Roofline.name).to_list()
    colours = [ROLE_COLOURS.get(name, CALL) for name in names]
    x, y = _axis(Roofline.intensity, area), _axis(Roofline.tflops, area)
    base = alt.Chart(placed)
    leads = base.mark_rule(style=theme.RULE).encode(
        x=x, y=y, x2=alt.X2(f"{_LABEL_X}:Q"), y2=alt.Y2(f"{_LABEL_Y}:Q")
    )
    marks = base.mark_point(filled=True, size=95, opacity=1).encode(
        x=x,
        y=y,
        color=alt.Color(
            f"{Roofline.name}:N", scale=alt.Scale(domain=names, range=colours), legend=None
        ),
        shape=alt.Shape(
            f"{Roofline.step}:N",
            scale=alt.Scale(domain=[False, True], range=["circle", "diamond"]),
            legend=None,
        ),
        tooltip=[
            alt.Tooltip(f"{Roofline.name}:N", title="what"),
            alt.Tooltip(f"{Roofline.intensity}:Q", title="FLOP/byte", format=",.3~r"),
            alt.Tooltip(f"{Roofline.tflops}:Q", title="TFLOP/s", format=",.3~r"),
            alt.Tooltip(f"{Roofline.of_roof}:Q", title="of the roof", format=".0%"),
        ],
    )
    words = base.mark_text(style=theme.LABEL, align="left", baseline="middle", dx=4).encode(
        x=_axis(_LABEL_X, area), y=_axis(_LABEL_Y, area), text=alt.Text(f"{_TEXT}:N")
    )
    chart: ChartType = alt.layer(*_roof(limits, area), leads, marks, words).properties(
        width=WIDTH, height=HEIGHT, title=alt.TitleParams(text=title, subtitle=subtitle)
    )
    return theme.themed(chart)


def _frame(points: pl.DataFrame, limits: Roof) -> _Frame:
    """Return ends of the axes with all points, the corner of the roof, and room for words."""
    at = points.get_column(Roofline.intensity).to_list()
    rates = points.get_column(Roofline.tflops).to_list()
    corner = ridge(limits.bandwidth_gbps, limits.tflops)
    left, furthest = min(*at, corner) / LOWER, max(*at, 1.0)
    # The last point has words of RIGHT_PX behind it: its place is at most that far from the end.
    share = (WIDTH - RIGHT_PX - AWAY_PX) / WIDTH
    right = max(left * (furthest / left) ** (1 / share), corner * 12)
    return _Frame(left, right, min(rates) / LOWER, limits.tflops * HIGHER)


def _axis(field: str, area: _Frame) -> alt.X | alt.Y:
    sideways = field in (Roofline.intensity, _LABEL_X, _X)
    ends = [area.left, area.right] if sideways else [area.low, area.high]
    scale = alt.Scale(type="log", domain=ends, nice=False)
    axis = alt.Axis(values=_powers(*ends), format=",~r")
    if sideways:
        title = "FLOPs per byte that has to be moved"
        return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)
    return alt.Y(f"{field}:Q", title="TFLOP/s", scale=scale, axis=axis)


def _powers(low: float, high: float) -> list[float]:
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return [10.0**power for power in powers]


def _placed(points: pl.DataFrame, area: _Frame) -> pl.DataFrame:
    """Give each point its words, in a column right of all points, none over another."""
    rows = points.sort(Roofline.tflops, descending=True, maintain_order=True)
    pixels: list[float] = []
    for rate in rows.get_column(Roofline.tflops):
        own = area.y_px(rate)
        pixels.append(max(own, pixels[-1] + LABEL_PX) if pixels else own)
    over = max(0.0, pixels[-1] - (HEIGHT - LABEL_PX / 2))
    column = area.x(max(map(area.x_px, rows.get_column(Roofline.intensity))) + AWAY_PX)
    said = [
        f"{row[Roofline.name]}  {significant(row[Roofline.tflops])} TFLOP/s, "
        f"{percent(row[Roofline.of_roof])} of the roof"
        for row in rows.iter_rows(named=True)
    ]
    return rows.with_columns(
        pl.lit(column).alias(_LABEL_X),
        pl.Series(_LABEL_Y, [area.y(px - over) for px in pixels], pl.Float64),
        pl.Series(_TEXT, said, pl.String),
    )


def _roof(limits: Roof, area: _Frame) -> list[alt.Chart]:
    """Draw the two ceilings, their words and the corner between them."""
    corner = ridge(limits.bandwidth_gbps, limits.tflops)
    low = max(area.left, area.low * 1000 / limits.bandwidth_gbps)
    line = pl.DataFrame(
        {
            _X: [low, corner, area.right],
            _Y: [
                roof(at, limits.bandwidth_gbps, limits.tflops) for at in (low, corner, area.right)
            ],
        }
    )
    # The sloping words stand where the slope has climbed two thirds of its way.
    slope = low * (corner / low) ** (2 / 3)
    along = roof(slope, limits.bandwidth_gbps, limits.tflops)
    said: list[tuple[float, float, str, int, int]] = [
        (slope, along, limits.bandwidth_says, -10, -6),
        (corner, limits.tflops, f"ridge: {with_unit(corner, 'FLOP/byte')}", -6, -12),
        (area.right, limits.tflops, limits.tflops_says, 0, -12),
    ]
    layers = [
        alt.Chart(line).mark_line(style=theme.LINE).encode(x=_axis(_X, area), y=_axis(_Y, area)),
        alt.Chart(line[1:2])
        .mark_point(filled=True, size=36, style=theme.LINE, opacity=1)
        .encode(x=_axis(_X, area), y=_axis(_Y, area)),
    ]
    for at, height, words, dx, dy in said:
        layers.append(
            alt.Chart(pl.DataFrame({_X: [at], _Y: [height]}))
            .mark_text(style=theme.NOTE, align="right", dx=dx, dy=dy, text=words)
            .encode(x=_axis(_X, area), y=_axis(_Y, area))
        )
    return layers
