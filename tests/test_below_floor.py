"""A clean step that is shorter than its bytes and FLOPs allow is not believed in silence."""

from dataclasses import replace

import msgspec
import pytest

from tests.step_groups import a_group
from tests.test_walls import a_floor
from whichwall.analyze.floors import Grounds
from whichwall.analyze.step_groups import Judged, is_below_floor

FLOOR = a_floor(1000)


def judged(step_ns: int | None) -> Judged:
    return Judged(a_group(clean_step_ns_median=step_ns), Grounds(FLOOR, None))


@pytest.mark.parametrize(
    ("step_ns", "below"), [(None, False), (799, True), (801, False), (5000, False)]
)
def test_a_step_is_below_its_floor_from_a_fifth_less_on(step_ns: int | None, below: bool) -> None:
    assert is_below_floor(judged(step_ns)) is below


def test_without_a_floor_or_with_weights_in_a_cache_nothing_is_below_it() -> None:
    cached = msgspec.structs.replace(FLOOR, cached_weights=True)
    assert not is_below_floor(replace(judged(1), grounds=Grounds(None, "unknown")))
    assert not is_below_floor(replace(judged(1), grounds=Grounds(cached, None)))
