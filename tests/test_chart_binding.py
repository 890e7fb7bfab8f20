"""What a map of batch and context shows: which floor binds, what fits, what was measured."""

import polars as pl

from tests.golden import MODEL
from whichwall.analyze.binding import BATCHES, CONTEXTS, binding
from whichwall.analyze.charts.binding import binding as drawn
from whichwall.analyze.charts.theme import svg
from whichwall.analyze.floor import floor
from whichwall.analyze.operations import operations
from whichwall.schemas.chart import Binding


def cells(memory_bytes: int | None = None, wall: str | None = None) -> pl.DataFrame:
    places = {(3, 512): wall} if wall else {}
    return binding(MODEL, 4.0, 0.1, 2, memory_bytes, places)


def at(found: pl.DataFrame, batch: int, context: int) -> dict[str, object]:
    (row,) = found.filter(batch=batch, context_tokens=context).iter_rows(named=True)
    return dict(row)


def test_each_cell_has_the_floor_that_predict_has() -> None:
    found = cells().filter(batch=16, context_tokens=1024)
    expected = floor(operations(MODEL, 16, 1, 1024, 2, 2), 4.0, 0.1).floor_ns

    assert [round(ms * 1e6) for ms in found[Binding.floor_ms]] == [expected]


def test_arithmetic_takes_over_with_the_batch() -> None:
    found = cells()
    shares = [at(found, batch, 512)[Binding.arithmetic_share] for batch in BATCHES]

    assert shares[0] == 0
    assert shares == sorted(shares, key=lambda share: float(str(share)))
    assert float(str(shares[-1])) > 0


def test_a_batch_that_was_measured_has_its_row_and_its_wall() -> None:
    found = cells(wall="launches")

    assert at(found, 3, 512)[Binding.measured] == "launches"
    assert found.filter(pl.col(Binding.measured).is_not_null()).height == 1
    assert found.height == (len(BATCHES) + 1) * len(CONTEXTS)


def test_what_does_not_fit_is_said_and_unknown_memory_is_not_known() -> None:
    assert cells()[Binding.fits].null_count() == cells().height
    found = cells(10**7)
    assert at(found, 1, 512)[Binding.fits] is True
    assert at(found, BATCHES[-1], CONTEXTS[-1])[Binding.fits] is False


def test_the_measured_wall_stands_in_its_cell() -> None:
    picture = svg(drawn(cells(wall="kernels"), "the title", []))

    assert picture.count(">kernels<") == 1
