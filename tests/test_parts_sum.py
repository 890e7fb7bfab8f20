"""Parts timed alone, added up to a pass and compared with the clean one."""

from tests.experiment_runs import BEGIN_NS, Clock
from tests.frames import Row, table
from whichwall.analyze.parts_sum import parts_sums
from whichwall.analyze.timings import timings
from whichwall.schemas.experiments import PartsSum, PartTime
from whichwall.schemas.parts import ATTENTION, EMBEDDING, Parts
from whichwall.schemas.passes import DECODE, Passes


def part(name: str, calls: int, wall_ns: int, gpu_ns: int | None, **more: object) -> Row:
    return {
        Parts.point: 0,
        Parts.rank: 0,
        Parts.phase: DECODE,
        Parts.part: name,
        Parts.calls: calls,
        Parts.repeats: 10,
        Parts.start_ns: BEGIN_NS,
        Parts.wall_ns: wall_ns,
        Parts.gpu_ns: gpu_ns,
        **more,
    }


def summed(passes: list[Row], *parts: Row) -> list[PartsSum]:
    return parts_sums(table(Parts, *parts), timings(table(Passes, *passes)))


def test_calls_times_time_adds_up_and_the_rest_of_the_clean_pass_is_shown() -> None:
    passes = Clock().passes(0, [100], gpu_ns=80)

    found = summed(passes, part(ATTENTION, 4, 15, 10), part(EMBEDDING, 1, 20, 5))

    assert found == [
        PartsSum(
            point=0,
            phase=DECODE,
            parts=[PartTime(EMBEDDING, 1, 20, 5, None), PartTime(ATTENTION, 4, 15, 10, None)],
            sum_wall_ns=80,
            sum_gpu_ns=45,
            step_ns=100,
            step_gpu_ns=80,
            rest_wall_ns=20,
            rest_gpu_ns=35,
        )
    ]


def test_without_a_gpu_there_is_no_sum_of_gpu_time() -> None:
    (found,) = summed(Clock().passes(0, [100]), part(EMBEDDING, 1, 20, None))

    assert (found.sum_wall_ns, found.sum_gpu_ns, found.rest_gpu_ns) == (20, None, None)


def test_without_a_clean_pass_there_is_no_remainder() -> None:
    (found,) = summed([], part(EMBEDDING, 1, 20, 5))

    assert (found.sum_gpu_ns, found.step_ns, found.rest_wall_ns) == (5, None, None)


def test_parts_that_take_longer_alone_leave_less_than_nothing() -> None:
    (found,) = summed(Clock().passes(0, [100]), part(ATTENTION, 4, 30, None))

    assert found.rest_wall_ns == -20
