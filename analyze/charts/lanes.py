"""Lay out lanes: which height each has, its name at the left and the line it stands on."""

from dataclasses import dataclass

import altair as alt
import polars as pl

from whichwall.analyze.charts import theme
from whichwall.schemas.chart import Spans

# Between a lane and the one above it, as a share of its height.
GAP = 0.14

_Y = "y"


@dataclass(frozen=True)
class Lanes:
    """Lanes from top to bottom with their heights in pixels."""

    heights: dict[str, int]
    titles: dict[str, str]

    @property
    def height(self) -> int:
        """Height of all lanes together."""
        return sum(self.heights.values())

    def tops(self) -> dict[str, float]:
        """Return the upper edge of each lane."""
        sizes = list(self.heights.values())
        return {name: float(sum(sizes[:place])) for place, name in enumerate(self.heights)}

    def floor(self, lane: pl.Expr) -> pl.Expr:
        """Return the pixel of the line that a lane stands on."""
        tops = self.tops()
        lines = {name: tops[name] + size for name, size in self.heights.items()}
        return lane.replace_strict(lines, return_dtype=pl.Float64)

    def full(self, lane: pl.Expr) -> pl.Expr:
        """Return the pixels of a lane's whole height, without the gap above it."""
        tall = {name: size * (1 - GAP) for name, size in self.heights.items()}
        return lane.replace_strict(tall, return_dtype=pl.Float64)

    def y(self, field: str) -> alt.Y:
        """Return the channel that reads pixels from the top as they are."""
        scale = alt.Scale(domain=[0, self.height], range=[0, self.height], nice=False, zero=False)
        return alt.Y(f"{field}:Q", axis=None, scale=scale)

    def lines(self) -> alt.Chart:
        """Draw the line that each lane stands on."""
        tops = self.tops()
        rows = pl.DataFrame(
            {_Y: [tops[name] + size for name, size in self.heights.items()]},
            schema={_Y: pl.Float64},
        )
        drawn: alt.Chart = (
            alt.Chart(rows)
            .mark_rule(style=theme.RULE)
            .encode(x=alt.value(0), x2=alt.value(theme.WIDTH), y=self.y(_Y))
        )
        return drawn

    def names(self) -> alt.Chart:
        """Write each lane's name at its left."""
        tops = self.tops()
        rows = pl.DataFrame(
            {
                Spans.lane: [self.titles.get(name, name) for name in self.heights],
                _Y: [tops[n] + size * (1 + GAP) / 2 for n, size in self.heights.items()],
            },
            schema={Spans.lane: pl.String, _Y: pl.Float64},
        )
        written: alt.Chart = (
            alt.Chart(rows)
            .mark_text(style=theme.LABEL, align="right", baseline="middle", dx=-10)
            .encode(x=alt.value(0), y=self.y(_Y), text=alt.Text(f"{Spans.lane}:N"))
        )
        return written
