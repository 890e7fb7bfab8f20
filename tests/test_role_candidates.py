import json
from dataclasses import replace

import pytest

from whichwall.analyze.roles.candidates import Candidates, propose
from whichwall.analyze.roles.compiled_kernels import read_compiled
from whichwall.analyze.roles.dims import Dims
from whichwall.analyze.roles.looks import DECISIVE
from whichwall.analyze.roles.operators import Operator, read_operator
from whichwall.analyze.roles.stages import ROLE_OF, Stage
from whichwall.analyze.roles.tensor_kinds import COINCIDENCE
from whichwall.schemas import roles as r

HALF, FLOAT, LONG, BOOL, LIST = "c10::Half", "float", "long int", "bool", "TensorList"

DIMS = Dims(
    hidden=32, vocab=500, heads=4, kv_heads=2, head_dim=8, inner=frozenset({80}), positions=64
)
SPARSE = Dims(
    hidden=32, vocab=500, heads=4, kv_heads=2, head_dim=8, inner=frozenset({48}), experts=16,
    experts_per_token=3,
)  # fmt: skip

Sizes = list[int]


def best(candidates: Candidates) -> set[str]:
    """Return the roles of the cheapest stages."""
    least = min(candidates.costs.values())
    return {ROLE_OF[stage] for stage, cost in candidates.costs.items() if cost == least}


def told(dims: Dims, op: str, sizes: list[object], types: list[str]) -> set[str]:
    read = read_operator(op, json.dumps(sizes), json.dumps(types))
    return best(propose(read, "kernel", dims))


@pytest.mark.parametrize(
    ("op", "sizes", "types", "expected"),
    [
        ("aten::index_select", [[500, 32], [], [1]], [HALF, "Scalar", LONG], {r.EMBEDDING}),
        ("aten::index_select", [[64, 32], [], [1]], [HALF, "Scalar", LONG], {r.EMBEDDING}),
        ("aten::native_layer_norm", [[1, 5, 32], [], [32]], [HALF, "", HALF], {r.NORM}),
        ("aten::rsqrt", [[1, 5, 1]], [FLOAT], {r.NORM}),
        ("aten::pow", [[1, 4, 5, 8], []], [FLOAT, "Scalar"], {r.NORM}),
        ("aten::mul", [[1, 4, 5, 8], [1, 4, 5, 1]], [FLOAT, FLOAT], {r.NORM}),
        ("aten::mul", [[8], [1, 4, 5, 8]], [HALF, HALF], {r.NORM}),
        ("aten::addmm", [[64], [5, 32], [32, 64]], [HALF, HALF, HALF], {r.QKV_PROJ}),
        ("aten::linear", [[1, 5, 32], [16, 32], [16]], [HALF, HALF, HALF], {r.QKV_PROJ}),
        ("aten::mm", [[5, 32], [32, 32]], [HALF, HALF], {r.QKV_PROJ, r.O_PROJ}),
        ("aten::mm", [[5, 32], [32, 160]], [HALF, HALF], {r.GATE_UP_PROJ}),
        ("aten::mm", [[5, 80], [80, 32]], [HALF, HALF], {r.DOWN_PROJ}),
        ("aten::mm", [[5, 32], [32, 512]], [HALF, HALF], {r.LM_HEAD}),
        ("aten::mul", [[1, 4, 5, 8], [1, 1, 5, 8]], [HALF, HALF], {r.ROPE}),
        ("aten::neg", [[1, 4, 5, 4]], [HALF], {r.ROPE}),
        ("aten::cat", [[[1, 4, 5, 4], [1, 4, 5, 4]], []], [LIST, "Scalar"], {r.ROPE}),
        ("aten::cat", [[[1, 4, 5, 2], [1, 4, 5, 6]], []], [LIST, "Scalar"], {r.ROPE}),
        ("aten::cos", [[1, 5, 8]], [FLOAT], {r.ROPE}),
        ("aten::mul", [[1, 5, 1], [4]], [FLOAT, FLOAT], {r.ROPE}),
        ("aten::cat", [[[0], [1, 2, 5, 8]], []], [LIST, "Scalar"], {r.KV_CACHE}),
        ("aten::cat", [[[1, 2, 9, 8], [1, 2, 1, 8]], []], [LIST, "Scalar"], {r.KV_CACHE}),
        ("aten::index_copy_", [[1, 2, 99, 8], [], [1]], [HALF, "Scalar", LONG], {r.KV_CACHE}),
        ("aten::copy_", [[1, 2, 2, 9, 8], [1, 2, 2, 9, 8]], [HALF, HALF], {r.KV_CACHE}),
        ("_C_cache_ops::reshape_and_cache_flash", [[5, 2, 8]], [HALF], {r.KV_CACHE}),
        ("aten::_efficient_attention_forward", [[1, 5, 4, 8]], [HALF], {r.ATTENTION}),
        ("_vllm_fa3_C::fwd", [[5, 4, 8]], [HALF], {r.ATTENTION}),
        ("aten::bmm", [[4, 5, 8], [4, 8, 9]], [HALF, HALF], {r.ATTENTION}),
        ("aten::bmm", [[4, 5, 9], [4, 9, 8]], [HALF, HALF], {r.ATTENTION}),
        ("aten::bmm", [[1, 4, 1], [1, 1, 5]], [FLOAT, FLOAT], {r.ROPE}),
        ("aten::_softmax", [[1, 4, 5, 9], [], []], [FLOAT, "Scalar", "Scalar"], {r.SOFTMAX}),
        ("aten::add", [[1, 4, 5, 9], [1, 1, 5, 9], []], [HALF, HALF, "Scalar"], {r.SOFTMAX}),
        ("aten::le", [[1, 1, 1, 9], [1, 1, 5, 1]], [LONG, LONG], {r.MASK}),
        ("aten::where", [[1, 1, 5, 9], [], []], [BOOL, HALF, HALF], {r.MASK}),
        ("aten::silu", [[1, 5, 80]], [HALF], {r.ACTIVATION}),
        ("aten::mul", [[1, 5, 80], [1, 5, 80]], [HALF, HALF], {r.ACTIVATION}),
        ("_C::silu_and_mul", [[5, 80], [5, 160]], [HALF, HALF], {r.ACTIVATION}),
        ("aten::add", [[2, 5, 32], [2, 5, 32], []], [HALF, HALF, "Scalar"], {r.RESIDUAL}),
        ("aten::argmax", [[1, 500], [], []], [HALF, "Scalar", "Scalar"], {r.SAMPLING}),
        ("aten::sort", [[1, 500], [], []], [HALF, "Scalar", "Scalar"], {r.SAMPLING}),
    ],
)  # fmt: skip
def test_operators_are_placed_by_word_and_shapes(
    op: str, sizes: list[object], types: list[str], expected: set[str]
) -> None:
    assert told(DIMS, op, sizes, types) == expected


@pytest.mark.parametrize(
    ("op", "sizes", "types", "expected"),
    [
        ("aten::mm", [[5, 32], [32, 16]], [HALF, HALF], {r.QKV_PROJ, r.ROUTER}),
        ("aten::_softmax", [[5, 16], [], []], [FLOAT, "Scalar", "Scalar"], {r.ROUTER}),
        ("aten::topk", [[5, 16], [], []], [FLOAT, "Scalar", "Scalar"], {r.ROUTER}),
        ("aten::sum", [[5, 3], [], []], [FLOAT, "", ""], {r.ROUTER}),
        ("aten::sort", [[15], [], []], [LONG, "Scalar", "Scalar"], {r.EXPERTS}),
        ("aten::_grouped_mm", [[15, 32], [16, 32, 96], [16]], [HALF, HALF, "int"], {r.EXPERTS}),
        ("aten::sum", [[5, 3, 32], [], []], [FLOAT, "", ""], {r.EXPERTS}),
        ("_moe_C::topk_softmax", [[5, 3], [5, 16]], [FLOAT, HALF], {r.ROUTER}),
        ("vllm::fused_moe", [[5, 32]], [HALF], {r.EXPERTS}),
        # Experts in groups, of which some are chosen first: 16 in 4, or all in 1.
        ("aten::topk", [[5, 4], [], []], [FLOAT, "Scalar", "Scalar"], {r.ROUTER}),
        ("aten::topk", [[5, 1], [], []], [FLOAT, "Scalar", "Scalar"], {r.ROUTER}),
        ("aten::copy_", [[5, 16], [5, 16]], [BOOL, FLOAT], {r.ROUTER}),
        ("aten::bitwise_not", [[5, 16]], [BOOL], {r.ROUTER, r.EXPERTS}),
        ("aten::cat", [[[5, 1], [5, 1]], []], [LIST, "Scalar"], {r.ROUTER}),
    ],
)
def test_experts_and_their_router_are_placed_where_the_model_has_them(
    op: str, sizes: list[object], types: list[str], expected: set[str]
) -> None:
    assert told(SPARSE, op, sizes, types) == expected


@pytest.mark.parametrize(
    ("op", "sizes", "types"),
    [
        ("aten::gt", [[1, 5, 80], []], [HALF, "Scalar"]),
        ("aten::minimum", [[1, 5, 80], []], [HALF, HALF]),
        ("aten::expm1", [[1, 5, 80]], [HALF]),
        ("aten::where", [[1, 5, 80], [1, 5, 80], [1, 5, 80]], [BOOL, HALF, HALF]),
    ],
)
def test_an_activation_written_out_is_one(op: str, sizes: list[object], types: list[str]) -> None:
    assert told(replace(DIMS, dense=True), op, sizes, types) == {r.ACTIVATION}


def test_heads_are_widened_for_a_norm_rather_than_to_be_turned() -> None:
    widened = Operator("copy", ((1, 4, 5, 8), (1, 4, 5, 8)), (FLOAT, HALF))
    narrowed = Operator("copy", ((1, 4, 5, 8), (1, 4, 5, 8)), (HALF, FLOAT))
    up, down = (propose(op, "kernel", DIMS).costs for op in (widened, narrowed))
    assert 0 == up[Stage.QK_NORM] < up[Stage.ROPE] < COINCIDENCE
    assert down[Stage.QK_NORM] == down[Stage.ROPE] == 0


def test_heads_of_one_token_are_no_angles_for_as_many_tokens() -> None:
    op = Operator("copy", ((1, 1, 4, 8), (1, 1, 4, 8)), (HALF, HALF))
    costs = propose(op, "kernel", DIMS).costs
    assert costs[Stage.QK_NORM] < costs[Stage.ROPE]


def test_what_is_written_to_a_number_for_each_expert_is_as_likely_the_routers() -> None:
    sparse = replace(SPARSE, kv_heads=4)
    types = [HALF, "Scalar", LONG]
    found = told(sparse, "aten::scatter_", [[5, 16], [], [5, 1]], types)
    assert found == {r.ROUTER, r.EXPERTS}


def test_a_product_of_queries_and_keys_with_a_bias_begins_by_copying_it() -> None:
    sizes: list[object] = [[8, 5, 9], [8, 5, 9]]
    assert told(DIMS, "aten::copy_", sizes, [HALF, HALF]) == {r.ATTENTION}


def test_of_arrays_from_the_host_only_frequencies_are_a_part_of_the_model() -> None:
    def crossing(*shape: int) -> Candidates:
        op = Operator("copy", (shape, shape), (FLOAT, FLOAT))
        return propose(op, "Memcpy HtoD (Pageable -> Device)", DIMS)

    assert r.ROPE in best(crossing(1, 4, 1))
    assert crossing(1, 5, 32).costs == {}


def test_a_model_known_to_be_dense_has_no_experts() -> None:
    dense = Dims(hidden=32, inner=frozenset({80}), dense=True)
    read = read_operator("aten::silu", "[[1, 5, 80]]", f'["{HALF}"]')
    assert set(propose(read, "kernel", dense).costs) == {Stage.ACT}


def test_a_coincidence_of_sizes_leaves_both_readings_open() -> None:
    # As many tokens as a head has values: heads by tokens by values, or scores.
    op = Operator("add", ((1, 4, 8, 8), (1, 4, 8, 8)), (HALF, HALF))
    costs = propose(op, "kernel", DIMS).costs
    assert 0 == costs[Stage.ROPE] < costs[Stage.SOFTMAX] < 1


def test_without_shapes_a_matrix_multiplication_may_be_any_projection() -> None:
    found = propose(Operator("mm", (), ()), "kernel", DIMS)
    assert best(found) == {r.QKV_PROJ, r.O_PROJ, r.GATE_UP_PROJ, r.DOWN_PROJ, r.LM_HEAD}
    assert not found.by_shape


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void at::native::(anonymous namespace)::indexSelectSmallIndex<float>", r.EMBEDDING),
        ("vectorized_elementwise_kernel<4, rsqrt_kernel_cuda(at::TensorIteratorBase&)>", r.NORM),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>", r.NORM),
        ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_3", r.NORM),
        ("elementwise_kernel<128, 4, neg_kernel_cuda(at::TensorIteratorBase&)>", r.ROPE),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", r.ATTENTION),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", r.ATTENTION),
        ("vectorized_elementwise_kernel<8, silu_kernel(at::TensorIteratorBase&)>", r.ACTIVATION),
        ("reduce_kernel<512, 1, ReduceOp<c10::BFloat16, ArgMaxOps<float>>>", r.SAMPLING),
        ("fused_moe_kernel", r.EXPERTS),
        ("_compute_slot_mapping_kernel", r.KV_CACHE),
    ],
)  # fmt: skip
def test_the_name_of_a_kernel_without_an_operator_says_where_it_is_likeliest(
    name: str, expected: str
) -> None:
    found = propose(None, name, DIMS)
    assert expected in best(found)
    assert not found.by_shape


def test_a_kernel_with_a_name_that_says_nothing_has_no_place() -> None:
    assert propose(None, "mystery_kernel", DIMS) == Candidates({})


def test_a_compiled_kernel_is_read_by_what_it_writes_and_ranks_its_roles() -> None:
    name = "triton_poi_fused_add_cos_index_copy_mul_neg_sin_where_3"
    written = read_operator(name, "[[1, 16], [1, 2, 99, 8], []]", f'["{HALF}", "{HALF}", "Scalar"]')
    found = propose(written, name, DIMS)
    assert best(found) == {r.KV_CACHE}
    assert found.does == (r.KV_CACHE, r.ROPE)  # no mask: heads are written


def test_a_compiled_norm_that_adds_two_streams_names_the_residual() -> None:
    name = "triton_per_fused_add_mean_mul_pow_rsqrt_2"
    read = read_operator(
        name, "[[1, 1, 32], [1, 32], [32], [1, 1, 32], []]", json.dumps([HALF] * 4 + ["Scalar"])
    )
    assert propose(read, name, DIMS).does == (r.NORM, r.RESIDUAL)


def test_what_a_compiled_pass_copies_back_is_its_cache_as_far_as_order_allows() -> None:
    name = "triton_poi_fused_add_copy__17"
    scalars = read_operator(name, "[[], [], []]", '["long int", "long int", "Scalar"]')
    for written in (scalars, None):
        costs = propose(written, name, DIMS).costs
        least = min(costs.values())
        assert {ROLE_OF[s] for s in costs if costs[s] == least} == {r.KV_CACHE}
        assert costs[Stage.MASK] < least + DECISIVE  # also optimizers copy what they keep


def test_a_choice_that_a_compiled_pass_copies_back_is_sampling() -> None:
    assert best(propose(None, "triton_red_fused_argmax_copy__3", DIMS)) == {r.SAMPLING}


@pytest.mark.parametrize("words", ["_to_copy__unsafe_view_add", "add_copy", "_to_copy_mul"])
def test_a_cast_and_a_plain_copy_are_not_copied_back(words: str) -> None:
    found = read_compiled(f"triton_poi_fused_{words}_17", None, DIMS)
    assert found is not None
    assert "copy" in found.words
    assert found.roles == ()


def test_an_operand_of_attention_tells_the_role_among_those_that_shapes_allow() -> None:
    name = "triton_poi_fused__scaled_dot_product_flash_attention_cat_clone_cos_where_6"
    mask = read_operator(name, "[[], [1, 1, 1, 99], []]", f'["{LONG}", "{HALF}", "Scalar"]')
    assert propose(None, name, DIMS, r.KV_CACHE).does == (r.KV_CACHE,)
    assert best(propose(None, name, DIMS, r.KV_CACHE)) == {r.KV_CACHE}
    assert r.KV_CACHE not in propose(mask, name, DIMS, r.KV_CACHE).does


@pytest.mark.parametrize("text", ["", "null", "not json", "{}", "[1, null]"])
def test_sizes_that_cannot_be_read_count_as_none(text: str) -> None:
    assert read_operator("aten::mm", text, None) == Operator("mm", (), ())


def test_lists_of_tensors_are_laid_flat_and_numbers_left_out() -> None:
    read = read_operator(
        "aten::_index_put_impl_",
        "[[[3, 2], [3, 1]], [], [], [7]]",
        f'["{LIST}", "Scalar", "{FLOAT}", "{LONG}"]',
    )
    assert read == Operator("index_put_impl", ((3, 2), (3, 1), (), (7,)), ("", "", FLOAT, LONG))
