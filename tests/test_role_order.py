from itertools import pairwise, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from whichwall.analyze.roles.order import ROLE_OF_STAGE, STRANGER, walk, walk_all
from whichwall.analyze.roles.stages import Costs, Stage, moves

# Few stages keep the search through all walks short; the others are forbidden to every kernel.
FEW = (Stage.QKV, Stage.ATTEND, Stage.OUT, Stage.NORM_MLP, Stage.GATE_UP)


def only(*stages: Stage | None) -> Costs:
    """Return costs of kernels that can each be at one stage alone; None: at none."""
    costs = np.full((len(stages), len(Stage)), np.inf)
    for i, stage in enumerate(stages):
        if stage is not None:
            costs[i, stage] = 0.0
    return costs


def layers(*stages: Stage | None) -> list[int]:
    return [int(layer) for layer in walk(only(*stages)).layer]


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.lists(st.integers(0, 6), min_size=len(FEW), max_size=len(FEW)), min_size=1, max_size=4
    )
)
def test_no_walk_is_cheaper_and_no_margin_exceeds_what_another_role_costs(
    levels: list[list[int]],
) -> None:
    # A tiny, different weight for each choice leaves no two walks equal.
    nudges = np.arange(len(levels) * len(FEW)).reshape(len(levels), -1) / 997
    costs = np.full((len(levels), len(Stage)), np.inf)
    costs[:, list(FEW)] = np.array(levels, float) + nudges
    known = np.minimum(costs, STRANGER)
    move, cut = moves().cost, moves().cut_cost

    def price(stages: tuple[Stage, ...]) -> float:
        inside = sum(move[a, b] for a, b in pairwise(stages))
        at = sum(known[i, stage] for i, stage in enumerate(stages))
        return float(cut[stages[0]] + cut[stages[-1]] + inside + at)

    prices = {stages: price(stages) for stages in product(FEW, repeat=len(levels))}
    best = min(prices, key=lambda stages: prices[stages])

    found = walk(costs)

    assert price(tuple(Stage(s) for s in found.stage)) <= prices[best] + 1e-9
    for i, stage in enumerate(found.stage):
        own = ROLE_OF_STAGE[stage]
        other = min(p for s, p in prices.items() if ROLE_OF_STAGE[s[i]] != own)
        if found.belongs[i] and found.stage.tolist() == list(best):
            assert found.margin[i] <= other - prices[best] + 1e-9


LAYER = (
    Stage.NORM_IN, Stage.QKV, Stage.ATTEND, Stage.OUT, Stage.ADD_OUT, Stage.NORM_MLP,
    Stage.GATE_UP, Stage.ACT, Stage.DOWN, Stage.ADD_DOWN,
)  # fmt: skip
PASS = (Stage.EMBED, *LAYER, *LAYER, Stage.NORM_LAST, Stage.HEAD, Stage.SAMPLE)
LAYERS = [-1, *[0] * len(LAYER), *[1] * len(LAYER), -1, -1, -1]


def test_layers_are_counted_from_0_and_not_outside() -> None:
    assert layers(*PASS) == LAYERS


def test_a_new_pass_counts_its_layers_anew() -> None:
    assert layers(*PASS, *PASS) == LAYERS + LAYERS


def test_what_is_kept_at_the_end_of_a_pass_is_outside_its_layers() -> None:
    kept = (*PASS[:-1], Stage.KEEP, Stage.KEEP)
    expected = [*LAYERS[:-1], -1, -1]
    assert layers(*kept) == expected
    bare = kept[1:]  # a compiled pass looks up and norms at once
    assert layers(*kept, *bare) == expected + expected[1:]


def test_what_is_kept_after_a_token_was_chosen_begins_no_new_pass() -> None:
    stages = (*PASS[:-1], Stage.SAMPLE, Stage.KEEP, Stage.SAMPLE)

    found = walk(only(*stages))

    assert found.stage.tolist() == list(stages)


def test_a_norm_of_what_was_looked_up_is_before_the_layers() -> None:
    normed = (Stage.EMBED, Stage.NORM_EMBED, Stage.MASK, *LAYER)
    assert layers(*normed) == [-1, -1, -1, *[0] * len(LAYER)]
    assert moves().cost[Stage.EMBED, Stage.NORM_EMBED] < STRANGER


def test_a_layer_without_its_norm_is_a_layer() -> None:
    bare = LAYER[1:]
    assert layers(Stage.EMBED, *bare, *bare) == [-1, *[0] * len(bare), *[1] * len(bare)]


def test_a_step_back_inside_attention_is_no_new_layer() -> None:
    assert layers(Stage.QKV, Stage.ROPE, Stage.QKV, Stage.CACHE, Stage.ROPE) == [0] * 5


def test_a_stranger_stands_with_the_kernel_before_it() -> None:
    found = walk(only(Stage.DOWN, None, Stage.ADD_DOWN, None, Stage.NORM_IN))
    assert found.stage.tolist() == [
        Stage.DOWN, Stage.DOWN, Stage.ADD_DOWN, Stage.ADD_DOWN, Stage.NORM_IN,
    ]  # fmt: skip
    assert found.belongs.tolist() == [True, False, True, False, True]
    assert found.layer.tolist() == [0, 0, 0, 0, 1]


def test_what_can_be_in_two_places_equally_has_no_margin() -> None:
    costs = only(Stage.POSITION)
    costs[0, Stage.PLAN] = 0.0
    assert walk(costs).margin.tolist() == [0.0]


def test_a_kernel_that_can_be_in_one_place_has_the_margin_of_a_stranger() -> None:
    assert walk(only(Stage.EMBED)).margin.tolist() == [STRANGER]


def test_recordings_are_walked_sequence_by_sequence_and_put_back_in_their_rows() -> None:
    costs = only(Stage.EMBED, Stage.NORM_IN, Stage.QKV)
    kind = np.array([0, 0, 1, 1, 2, 2])
    found = walk_all(kind, costs, [np.array([0, 2, 4]), np.array([1, 3])])
    assert found.stage.tolist() == [
        Stage.EMBED, Stage.EMBED, Stage.NORM_IN, Stage.NORM_IN, Stage.QKV, 0,
    ]  # fmt: skip
    assert found.layer.tolist() == [-1, -1, 0, 0, 0, -1]
    assert found.belongs.tolist() == [True] * 5 + [False]


def test_every_stage_can_be_reached_and_leaving_out_a_matrix_costs_more_than_a_norm() -> None:
    cost = moves().cost
    assert np.isfinite(cost).all()
    assert cost[Stage.ADD_DOWN, Stage.QKV] < cost[Stage.ROPE, Stage.OUT]
    assert cost[Stage.QKV, Stage.QKV] == 0
