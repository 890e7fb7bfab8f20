import polars as pl
from polars.testing import assert_frame_equal

from whichwall.analyze.roles.attribute import totals
from whichwall.schemas import roles as r
from whichwall.schemas.activities import Activities
from whichwall.schemas.kernels import KERNEL
from whichwall.schemas.role_totals import RoleTotals
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import frame


def recording(*spans: tuple[int, int, int, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return activities of (device, start, end, role), and their roles."""
    activities = frame(
        Activities,
        [
            {
                Activities.point: 0,
                Activities.rank: 0,
                Activities.device: device,
                Activities.kind: KERNEL,
                Activities.name: "kernel",
                Activities.start_ns: start,
                Activities.end_ns: end,
                Activities.dur_ns: end - start,
            }
            for device, start, end, _ in spans
        ],
    )
    return activities, activities.with_columns(
        pl.Series(Roles.role, [role for *_, role in spans], dtype=pl.String)
    )


def expected(*rows: tuple[int, str, int, float | None, int]) -> pl.DataFrame:
    names = (
        RoleTotals.device,
        RoleTotals.role,
        RoleTotals.busy_ns,
        RoleTotals.share,
        RoleTotals.kernels,
    )
    return frame(
        RoleTotals, [{RoleTotals.rank: 0, **dict(zip(names, row, strict=True))} for row in rows]
    )


def test_what_overlaps_counts_once_and_shares_add_up() -> None:
    activities, found = recording(
        (0, 0, 10, r.NORM),
        (0, 5, 15, r.NORM),
        (0, 6, 8, r.NORM),
        (0, 10, 25, r.ATTENTION),
        (1, 0, 5, r.OTHER),
    )
    assert_frame_equal(
        totals(activities, found),
        expected(
            (0, r.NORM, 15, 0.5, 3),
            (0, r.ATTENTION, 15, 0.5, 1),
            (1, r.OTHER, 5, 1.0, 1),
        ),
    )


def test_the_order_of_activities_does_not_matter() -> None:
    activities, found = recording((0, 6, 8, r.NORM), (0, 0, 10, r.NORM), (0, 5, 15, r.NORM))
    assert_frame_equal(totals(activities, found), expected((0, r.NORM, 15, 1.0, 3)))


def test_a_share_of_no_time_is_unknown() -> None:
    activities, found = recording((0, 5, 5, r.NORM))
    assert_frame_equal(totals(activities, found), expected((0, r.NORM, 0, None, 1)))


def test_no_activities_have_no_totals() -> None:
    assert_frame_equal(totals(*recording()), expected())
