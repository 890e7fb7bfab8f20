import polars as pl

from tests.decoder import row
from whichwall.analyze.charts.layers import finding, layers
from whichwall.analyze.charts.theme import svg
from whichwall.analyze.layer_times import by_layer, layer_times
from whichwall.schemas import roles as r
from whichwall.schemas.activities import Activities
from whichwall.schemas.chart import LayerTimes
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import frame

# Start and end in ns, role and layer of activities; the second and third overlap by 200 ns.
WORK = [
    (0, 1_000, r.EMBEDDING, None),
    (1_000, 2_000, r.NORM, 0),
    (1_800, 3_000, r.NORM, 0),
    (3_000, 4_000, r.QKV_PROJ, 0),
    (4_000, 6_000, r.NORM, 1),
    (6_000, 9_000, r.NORM, 1),
]
ALL = pl.Series([True] * len(WORK))


def frames() -> tuple[pl.DataFrame, pl.DataFrame]:
    activities = [
        row(0, None, start_ns=start, end_ns=end, dur_ns=end - start) for start, end, *_ in WORK
    ]
    roles: list[dict[str, object]] = [
        {Roles.role: role, Roles.layer: layer} for *_, role, layer in WORK
    ]
    return frame(Activities, activities), frame(Roles, roles)


def test_busy_time_is_the_union_by_layer_and_role_per_step() -> None:
    activities, roles = frames()
    found = layer_times(activities, roles, ALL, steps=2)
    assert found.rows() == [(0, r.NORM, 1.0, 1.0), (0, r.QKV_PROJ, 0.5, 0.5), (1, r.NORM, 2.5, 1.0)]
    assert by_layer(found).rows() == [(0, 1.5), (1, 2.5)]


def test_only_what_is_asked_for_counts() -> None:
    activities, roles = frames()
    mine = pl.Series([False] * 5 + [True])
    assert layer_times(activities, roles, mine, steps=1).rows() == [(1, r.NORM, 3.0, 1.0)]


def times(*totals: float) -> pl.DataFrame:
    rows: list[dict[str, object]] = [
        {LayerTimes.layer: i, LayerTimes.role: r.NORM, LayerTimes.time_us: t, LayerTimes.kernels: 1}
        for i, t in enumerate(totals)
    ]
    return frame(LayerTimes, rows)


def test_the_title_says_whether_one_layer_stands_out() -> None:
    assert finding(times(40.0, 41.0, 43.9)) == (
        "All 3 layers take about the same: 41.0 µs of GPU time each"
    )
    assert finding(times(40.0, 90.0, 41.0)) == (
        "Layer 1 takes 90.0 µs of GPU time, the median layer 41.0 µs"
    )


def test_the_picture_names_roles_and_layers() -> None:
    picture = svg(layers(times(1.0, 2.0, 3.0), "µs per step", ["the subtitle"]))
    for text in (r.NORM, "layer", "µs per step", "the subtitle", "2"):
        assert f">{text}<" in picture
