"""When a card has rested: its clock has fallen, and holds still."""

import pytest

from whichwall.collect.rest import settled


@pytest.mark.parametrize(
    ("clocks", "expected"),
    [
        pytest.param([1980, 345, 345, 345, 345, 345], True, id="fallen and still"),
        pytest.param([1980, 1980, 1980, 1980, 1980, 1980], False, id="still but not fallen"),
        pytest.param([1980, 1200, 900, 600, 345, 345], False, id="still falling"),
        pytest.param([1980, 345, 345, 345], False, id="not still for long"),
        pytest.param([345, 1980, 1980, 1980, 1980, 1980], False, id="risen"),
        pytest.param([None] * 6, False, id="not told"),
        pytest.param([1980, 345, 345, None, 345, 345], False, id="not told all the time"),
        pytest.param([], False, id="not looked at"),
    ],
)
def test_a_card_has_rested_once_its_clock_has_fallen_and_holds_still(
    clocks: list[float | None], expected: bool
) -> None:
    assert settled(clocks) is expected
