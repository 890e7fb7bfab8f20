from tests.decoder import MODEL
from whichwall.analyze.roles.dims import FROM_MODEL, FROM_WEIGHTS, Dims
from whichwall.analyze.roles.measure import infer, measure
from whichwall.analyze.roles.operators import Operator, Shape
from whichwall.schemas.model import Model

HALF, LONG = "c10::Half", "long int"

OF_MODEL = Dims(
    hidden=32,
    vocab=500,
    heads=4,
    kv_heads=2,
    head_dim=8,
    inner=frozenset({80}),
    dense=True,
    inferred_from={"all": FROM_MODEL},
)


def op(word: str, *shapes: Shape, types: tuple[str, ...] = ()) -> Operator:
    return Operator(word, shapes, types or (HALF,) * len(shapes))


def counted(*operators: Operator) -> dict[Operator, int]:
    return dict.fromkeys(operators, 1)


LOOKUP = op("index_select", (500, 32), (1,), types=(HALF, LONG))
APPEND = op("cat", (1, 2, 9, 8), (1, 2, 1, 8))
TURN = op("mul", (1, 4, 1, 8), (1, 1, 1, 8))
WEIGHTS = tuple(
    op("mm", (1, inputs), (inputs, outputs))
    for inputs, outputs in ((32, 32), (32, 16), (32, 80), (80, 32), (32, 500))
)


def test_a_given_model_wins_over_what_the_shapes_say() -> None:
    assert measure(counted(op("index_select", (999, 64), (1,), types=(HALF, LONG))), MODEL) == (
        OF_MODEL
    )


def test_widths_are_inferred_each_with_what_it_was_read_from() -> None:
    assert infer(counted(LOOKUP, APPEND, TURN, *WEIGHTS)) == Dims(
        hidden=32,
        vocab=500,
        heads=4,
        kv_heads=2,
        head_dim=8,
        inner=frozenset({80}),
        inferred_from={
            "hidden, vocab": "index_select [[500, 32], [1]]",
            "kv_heads, head_dim": "cat [[1, 2, 9, 8], [1, 2, 1, 8]]",
            "heads": "mul [[1, 4, 1, 8], [1, 1, 1, 8]]",
            "inner": "weights [32, n] and [n, 32], n in [80]",
        },
        cached_keys=True,
    )


def test_nothing_is_inferred_from_nothing() -> None:
    assert infer({}) == Dims()


def test_without_a_lookup_a_head_that_stands_out_gives_hidden_and_vocabulary() -> None:
    found = infer(counted(op("mm", (1, 32), (32, 80)), op("mm", (1, 32), (32, 500))))
    assert (found.hidden, found.vocab) == (32, 500)
    assert infer(counted(op("mm", (1, 32), (32, 80)), op("mm", (1, 32), (32, 96)))) == Dims()


def test_the_first_part_of_a_cache_is_empty_in_a_prefill() -> None:
    found = infer(counted(LOOKUP, op("cat", (0,), (1, 2, 7, 8)), *WEIGHTS))
    assert (found.kv_heads, found.head_dim) == (2, 8)


def test_heads_are_read_from_queries_laid_flat_by_an_engine() -> None:
    call = op("fwd", (7, 4, 8), (90, 16, 2, 8), (90, 16, 2, 8))
    write = op("reshape_and_cache_flash", (7, 2, 8), (7, 2, 8), (90, 16, 2, 8), (90, 16, 2, 8))
    found = infer(counted(LOOKUP, call, write, op("mm", (7, 32), (32, 160))))
    assert (found.heads, found.kv_heads, found.head_dim) == (4, 2, 8)


def test_experts_are_read_from_a_stack_of_weights() -> None:
    found = infer(
        counted(
            LOOKUP,
            op("grouped_mm", (2, 32), (8, 32, 48), (8,)),
            op("sum", (1, 2, 32)),
        )
    )
    assert (found.experts, found.experts_per_token, found.inner) == (8, 2, frozenset({24, 48}))


def test_a_rank_of_a_split_model_has_a_part_of_its_widths() -> None:
    halves = [op("mm", (1, 32), (32, 8)), op("mm", (1, 16), (16, 32)), op("mm", (1, 40), (40, 32))]
    assert measure(counted(*halves), MODEL) == Dims(
        hidden=32,
        vocab=500,
        heads=2,
        kv_heads=1,
        head_dim=8,
        inner=frozenset({40}),
        shards=2,
        dense=True,
        inferred_from={"all": FROM_MODEL, "shards": FROM_WEIGHTS},
    )


def test_an_assumed_architecture_yields_to_the_heads_that_are_seen() -> None:
    assumed = Model(
        name="toy", model_type="unheard", hidden=32, intermediate=80, layers=2, heads=4,
        kv_heads=4, head_dim=8, vocab=500, assumed=True,
    )  # fmt: skip
    found = measure(counted(LOOKUP, op("cat", (1, 1, 9, 8), (1, 1, 1, 8)), *WEIGHTS), assumed)
    assert (found.heads, found.kv_heads) == (4, 1)
    assert not found.dense


def test_an_assumed_architecture_keeps_the_heads_that_one_rank_is_seen_to_have() -> None:
    assumed = Model(
        name="toy", model_type="unheard", hidden=32, intermediate=80, layers=2, heads=4,
        kv_heads=4, head_dim=8, vocab=500, assumed=True,
    )  # fmt: skip
    halves = [op("mm", (1, 32), (32, 16)), op("mm", (1, 16), (16, 32)), op("mm", (1, 40), (40, 32))]
    found = measure(counted(LOOKUP, op("cat", (1, 2, 9, 8), (1, 2, 1, 8)), *halves), assumed)
    assert (found.shards, found.heads, found.kv_heads) == (2, 2, 2)


POSITIONS = op("index_select", (64, 32), (1,), types=(HALF, LONG))


def test_a_second_table_as_wide_is_that_of_positions() -> None:
    found = infer(counted(LOOKUP, POSITIONS, APPEND, *WEIGHTS))
    assert (found.vocab, found.positions) == (500, 64)
    assert found.inferred_from["positions"] == "index_select [[64, 32], [1]]"


def test_a_position_table_as_tall_as_a_weight_is_wide_is_one_all_the_same() -> None:
    square = op("index_select", (32, 32), (1,), types=(HALF, LONG))
    assert infer(counted(LOOKUP, square, *WEIGHTS)).positions == 32


def test_rows_picked_of_the_tokens_own_are_no_position_table() -> None:
    picked = op("index_select", (7, 32), (1,), types=(HALF, LONG))
    assert infer(counted(LOOKUP, picked, op("mm", (7, 32), (32, 80)))).positions is None


def test_the_token_table_is_that_of_the_head_where_there_are_more_positions_than_tokens() -> None:
    positions = op("index_select", (900, 32), (1,), types=(HALF, LONG))
    found = infer(counted(positions, LOOKUP, *WEIGHTS))
    assert (found.vocab, found.positions) == (500, 900)


def test_a_token_table_narrower_than_hidden_is_multiplied_to_its_width() -> None:
    narrow = op("index_select", (500, 8), (1,), types=(HALF, LONG))
    found = infer(counted(narrow, POSITIONS, op("mm", (1, 8), (8, 32)), APPEND, *WEIGHTS))
    assert (found.hidden, found.vocab, found.positions) == (32, 500, 64)


def test_two_stacks_of_experts_tell_what_one_leaves_open() -> None:
    found = infer(
        counted(
            LOOKUP, op("grouped_mm", (2, 32), (8, 32, 32), (8,)),
            op("grouped_mm", (2, 16), (8, 16, 32), (8,)),
        )
    )  # fmt: skip
    assert (found.inner, found.expert_inner) == (frozenset({16}), frozenset({16}))


def test_a_sum_over_fewer_rows_than_experts_multiply_tells_no_number_of_experts() -> None:
    statistic = op("sum", (1, 1, 32))
    found = infer(counted(LOOKUP, op("grouped_mm", (2, 32), (8, 32, 48), (8,)), statistic))
    assert (found.experts, found.experts_per_token) == (8, None)


def test_query_heads_are_those_of_the_scores_where_key_heads_are_as_wide_as_an_mlp() -> None:
    keys_turned = [op("mul", (1, 2, n, 8), (1, 1, n, 8)) for n in (1, 3, 5)]
    softmax = op("softmax", (1, 4, 1, 9))
    back = op("mm", (1, 16), (16, 32))
    calls = dict.fromkeys(keys_turned, 9) | counted(LOOKUP, APPEND, TURN, softmax, back, *WEIGHTS)
    assert infer(calls).heads == 4


def test_keys_as_wide_as_the_hidden_state_are_no_mlp() -> None:
    wide = [op("mm", (1, 16), (16, n)) for n in (32, 16, 80)]
    back = [op("mm", (1, n), (n, 16)) for n in (32, 80)]
    lookup = op("index_select", (500, 16), (1,), types=(HALF, LONG))
    softmax = op("softmax", (1, 4, 1, 9))
    assert infer(counted(lookup, APPEND, TURN, softmax, *wide, *back)).inner == {80}
