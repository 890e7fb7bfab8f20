import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tests.frames import Row, call, kernel, linked
from tests.properties import PROPERTY
from whichwall.analyze.busy import busy, busy_without_communication
from whichwall.schemas.activities import Activities
from whichwall.schemas.busy import Busy
from whichwall.schemas.kernels import MEMSET

kernels = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 12), st.integers(0, 1), st.integers(7, 8)),
    min_size=1, max_size=20,
)  # fmt: skip


@PROPERTY
@given(kernels)
def test_busy_is_the_number_of_nanoseconds_in_which_anything_ran(
    written: list[tuple[int, int, int, int]],
) -> None:
    rows = [
        kernel(start, start + dur, device=device, stream=stream)
        for start, dur, device, stream in written
    ]
    found = busy(linked(rows))
    for row in found.iter_rows(named=True):
        mine = [(s, s + d) for s, d, device, _ in written if device == row[Activities.device]]
        assert row[Busy.busy_ns] == len({at for s, e in mine for at in range(s, e)})
        assert row[Busy.window_ns] == max(e for _, e in mine) - min(s for s, _ in mine)
        assert row[Busy.duration_sum_ns] == sum(e - s for s, e in mine)
        assert row[Busy.activities] == len(mine)
    assert found[Activities.device].to_list() == sorted({device for _, _, device, _ in written})


def test_a_device_is_summed_up_whole() -> None:
    activities = linked(
        [
            kernel(100, 110, 1),
            kernel(105, 125, 1),
            kernel(140, 144, 2, kind=MEMSET),
            kernel(150, 151, device=3),
        ],
        [call(90, 95, 1), call(120, 130, 2)],
    )
    expected: list[Row] = [
        {
            "rank": 0, "device": 0, Busy.window_ns: 44, Busy.busy_ns: 29,
            Busy.duration_sum_ns: 34, Busy.activities: 3, Busy.kernels: 2,
            Busy.kernel_median_ns: 15.0,
        },
        {
            "rank": 0, "device": 3, Busy.window_ns: 1, Busy.busy_ns: 1,
            Busy.duration_sum_ns: 1, Busy.activities: 1, Busy.kernels: 1,
            Busy.kernel_median_ns: 1.0,
        },
    ]  # fmt: skip
    assert_frame_equal(busy(activities), pl.DataFrame(expected), check_dtypes=False)


def test_a_collective_that_waits_is_no_work() -> None:
    collective = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    activities = linked(
        [kernel(0, 10), kernel(5, 100, name=collective), kernel(90, 120), kernel(200, 210, device=1,
                                                                                 name=collective)]
    )  # fmt: skip
    found = busy_without_communication(activities)
    assert found.to_dicts() == [{"rank": 0, "device": 0, Busy.busy_without_communication_ns: 40}]


def test_no_kernel_at_all_leaves_their_median_unknown() -> None:
    found = busy(linked([kernel(0, 10, kind=MEMSET)]))
    assert found[Busy.kernel_median_ns].to_list() == [None]
