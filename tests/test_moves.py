"""Each change by its rule, and no number where its inputs lack."""

from dataclasses import replace

from whichwall.analyze.moves import (
    ALREADY,
    FUSED,
    NARROW,
    NO_CLEAN,
    NO_FLOOR,
    NOTHING_TO_FUSE,
    Changes,
    Stepped,
    moves,
)
from whichwall.analyze.thresholds import ASSUMED_NODE_IDLE_NS

US = 1000
# Of 1,000 µs the GPU works 200, in 100 kernels of which 40 can be fused away.
EAGER = Stepped(
    busy_ns=200 * US, kernels=100.0, step_ns=1000 * US, spared_ns=50 * US, spared_kernels=40
)
WORKING = replace(EAGER, step_ns=210 * US)
GRAPH = replace(WORKING, graph_nodes=100)
CHANGES = Changes(
    node_idle_ns=500.0, floor_ns=40 * US, floor_half_ns=25 * US,
    floors_by_batch={2: 41 * US, 4: 1200 * US},
)  # fmt: skip


def predicted(
    own: Stepped, static: Stepped | None = None, changes: Changes = CHANGES
) -> dict[tuple[str, int | None], int | None]:
    return {(m.name, m.batch): m.predicted_ns for m in moves(own, static, changes)}


def why(own: Stepped, changes: Changes = CHANGES) -> dict[str, str]:
    return {m.name: m.assumption for m in moves(own, None, changes)}


def test_where_the_host_sets_the_pace_only_fewer_launches_shorten_the_step() -> None:
    assert predicted(EAGER) == {
        ("graph", None): 250 * US,
        ("fused_attention", None): None,
        ("fused_elementwise", None): 600 * US,
        ("fused_elementwise_graph", None): 180 * US,
        ("half_weights", None): 1000 * US,
        ("batch", 2): 1000 * US,
        ("batch", 4): 1360 * US,
    }


def test_where_the_gpu_sets_the_pace_kernels_that_shrink_shorten_the_step() -> None:
    assert predicted(WORKING) == {
        ("graph", None): 250 * US,
        ("fused_attention", None): None,
        ("fused_elementwise", None): 160 * US,
        ("fused_elementwise_graph", None): 180 * US,
        ("half_weights", None): 195 * US,
        ("batch", 2): 211 * US,
        ("batch", 4): 1370 * US,
    }


def test_in_a_graph_the_idle_time_of_nodes_goes_with_them() -> None:
    found = predicted(GRAPH)

    assert found["fused_elementwise", None] == (210 - 50 - 20) * US
    assert found["graph", None] is found["fused_elementwise_graph", None] is None
    assert why(GRAPH)["graph"] == ALREADY


def test_a_graph_is_predicted_from_the_step_on_a_static_cache_where_there_is_one() -> None:
    static = Stepped(busy_ns=300 * US, kernels=120.0, step_ns=1200 * US)
    found = predicted(EAGER, static)

    assert found["graph", None] == 360 * US
    assert found["half_weights", None] == 1000 * US
    assert found["fused_elementwise", None] is None


def test_a_graph_step_is_changed_from_itself_but_told_from_the_same_kernels_one_by_one() -> None:
    static = Stepped(busy_ns=300 * US, kernels=120.0, step_ns=1200 * US)

    beside, alone = predicted(GRAPH, static), predicted(GRAPH)
    assert (beside.pop(("graph", None)), alone.pop(("graph", None))) == (360 * US, None)
    assert beside == alone


def test_fusing_attention_takes_its_softmax_away() -> None:
    unfused = replace(WORKING, softmax_ns=30 * US, softmax_kernels=20)

    assert predicted(unfused)["fused_attention", None] == 180 * US
    assert why(WORKING)["fused_attention"] == FUSED


def test_without_a_clean_step_only_a_graph_is_predicted() -> None:
    found = predicted(replace(EAGER, step_ns=None))

    assert {name for (name, _), ns in found.items() if ns is not None} == {
        "graph",
        "fused_elementwise_graph",
    }
    assert why(replace(EAGER, step_ns=None))["half_weights"] == NO_CLEAN


def test_without_a_floor_weights_and_batches_have_no_prediction() -> None:
    bare = Changes(node_idle_ns=500.0)

    assert predicted(EAGER, changes=bare)["half_weights", None] is None
    assert why(EAGER, bare)["half_weights"] == NO_FLOOR
    assert why(EAGER, replace(CHANGES, floor_half_ns=None))["half_weights"] == NARROW


def test_nothing_to_fuse_is_said() -> None:
    assert why(replace(EAGER, spared_kernels=0))["fused_elementwise"] == NOTHING_TO_FUSE


def test_an_idle_time_that_was_not_measured_is_assumed_and_that_is_said() -> None:
    bare = replace(CHANGES, node_idle_ns=None)

    assert predicted(EAGER, changes=bare)["graph", None] == 200 * US + 100 * ASSUMED_NODE_IDLE_NS
    assert "assumed, as measured on an H200" in why(EAGER, bare)["graph"]
