"""What fusing neighbouring elementwise kernels would spare, and nodes of graphs, per step."""

from tests.frames import Row, table
from whichwall.analyze.step_work import StepWork, step_work
from whichwall.schemas.activities import Activities
from whichwall.schemas.roles import Roles

# role, duration; two steps of the same kernels.
STEP = (("norm", 5), ("norm", 3), ("qkv_proj", 20), ("rope", 4), ("kv_cache", 6), ("rope", 2),
        ("residual", 1), ("norm", 7))  # fmt: skip


def work(*kernels: tuple[str, int], steps: int = 2, replayed: bool = False) -> StepWork:
    activities: list[Row] = []
    roles: list[Row] = []
    for step in range(steps):
        for place, (role, dur) in enumerate(kernels):
            at = step * 1000 + place * 50
            shared: Row = {"rank": 0, "device": 0, "start_ns": at, "dur_ns": dur, "name": "k"}
            activities.append(
                shared
                | {"point": 0, "kind": "kernel", "end_ns": at + dur, "step": step,
                   "communication": False, "graph_replay": replayed}
            )  # fmt: skip
            roles.append(shared | {"role": role, "method": "shape", "confidence": 1.0})
    return step_work(table(Activities, *activities), table(Roles, *roles), steps)


def test_each_run_of_elementwise_kernels_becomes_its_longest() -> None:
    # norm 5 + 3 -> 5; rope, and rope + residual + norm behind the cache: 2 + 1 + 7 -> 7.
    assert work(*STEP) == StepWork(nodes=0, spared_ns=6, spared_kernels=3)


def test_a_run_ends_with_its_step() -> None:
    assert work(("norm", 5), ("norm", 5)) == StepWork(nodes=0, spared_ns=5, spared_kernels=1)


def test_nodes_are_counted_per_step() -> None:
    assert work(*STEP, replayed=True).nodes == len(STEP)


def test_without_elementwise_kernels_nothing_is_spared() -> None:
    assert work(("qkv_proj", 5), ("lm_head", 5)) == StepWork(0, 0, 0)
