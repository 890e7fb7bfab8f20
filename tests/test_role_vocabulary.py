import pytest

from whichwall.collect.role_vocabulary import (
    Names,
    Part,
    Place,
    between,
    call_part,
    function_part,
    part_of,
)
from whichwall.schemas import roles as r


def linear(name: str) -> Names:
    return Names(name, "Linear", has_weights=True)


def leaf(*accepted: str) -> Part:
    return Part(Place.LEAF, accepted)


@pytest.mark.parametrize(
    ("name", "inside", "role"),
    [
        *((name, Place.ATTENTION, r.QKV_PROJ) for name in (
            "q_proj", "k_proj", "v_proj", "qkv_proj", "c_attn", "query_key_value", "Wqkv", "W_pack",
            "wq", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "in_proj",
        )),
        *((name, Place.ATTENTION, r.O_PROJ) for name in (
            "o_proj", "out_proj", "c_proj", "dense", "wo",
        )),
        *((name, Place.MLP, r.GATE_UP_PROJ) for name in (
            "gate_proj", "up_proj", "gate_up_proj", "fc1", "c_fc", "fc_in", "dense_h_to_4h", "w1",
        )),
        *((name, Place.MLP, r.DOWN_PROJ) for name in (
            "down_proj", "fc2", "c_proj", "fc_out", "dense_4h_to_h", "w2",
        )),
        ("fc1", Place.LAYER, r.GATE_UP_PROJ),
        ("lm_head", Place.TOP, r.LM_HEAD),
        ("embed_out", Place.TOP, r.LM_HEAD),
    ],
)  # fmt: skip
def test_a_matrix_is_known_by_its_name_and_place(name: str, inside: Place, role: str) -> None:
    assert part_of(linear(name), inside) == leaf(role)


@pytest.mark.parametrize(
    ("names", "inside", "expected"),
    [
        (Names("embed_tokens", "Embedding", has_weights=True), Place.BODY, leaf(r.EMBEDDING)),
        (Names("wpe", "Embedding", has_weights=True), Place.BODY, leaf(r.EMBEDDING)),
        (Names("ln_1", "LayerNorm", has_weights=True), Place.LAYER, leaf(r.NORM)),
        (Names("post_attention_layernorm", "RMSNorm", has_weights=True), Place.LAYER, leaf(r.NORM)),
        (Names("q_norm", "RMSNorm", has_weights=True), Place.ATTENTION, leaf(r.NORM)),
        (Names("rotary_emb", "AnyRotaryEmbedding"), Place.BODY, leaf(r.ROPE)),
        (Names("act_fn", "SiLUActivation"), Place.MLP, leaf(r.ACTIVATION)),
        (Names("act_fn", "SiLUActivation"), Place.EXPERTS, leaf(r.ACTIVATION, r.EXPERTS)),
        (Names("act_fn", "LearnedActivation", has_weights=True), Place.MLP, leaf(r.ACTIVATION)),
        (Names("gate", "TopKRouter", has_weights=True), Place.MIXTURE, leaf(r.ROUTER)),
        (linear("gate"), Place.MLP, leaf(r.GATE_UP_PROJ)),
        (linear("up_proj"), Place.SHARED, leaf(r.GATE_UP_PROJ, r.EXPERTS)),
        (linear("shared_expert_gate"), Place.MIXTURE, leaf(r.ROUTER, r.EXPERTS)),
        (linear("w1"), Place.EXPERTS, leaf(r.EXPERTS)),
        (Names("dropout", "Dropout"), Place.LAYER, None),
        (Names("layers", "ModuleList", frozenset({"self_attn"})), Place.BODY, None),
    ],
)
def test_other_parts_are_known_wherever_they_stand(
    names: Names, inside: Place, expected: Part | None
) -> None:
    assert part_of(names, inside) == expected


@pytest.mark.parametrize(
    ("names", "inside", "place"),
    [
        (Names("model", "AnyModel", frozenset({"layers", "self_attn"})), Place.TOP, Place.BODY),
        (Names("0", "Block", frozenset({"attn"}), listed=True), Place.BODY, Place.LAYER),
        (Names("0", "Other", frozenset({"conv"}), listed=True), Place.BODY, Place.BODY),
        (Names("self_attn", "A", frozenset({"q_proj"})), Place.LAYER, Place.ATTENTION),
        (Names("mlp", "AnyMLP", frozenset({"up_proj"})), Place.LAYER, Place.MLP),
        (Names("mlp", "B", frozenset({"gate", "experts"})), Place.LAYER, Place.MIXTURE),
        (Names("experts", "AnyExperts", frozenset({"act_fn"})), Place.MIXTURE, Place.EXPERTS),
        (Names("shared_experts", "AnyMLP", frozenset({"up_proj"})), Place.MIXTURE, Place.SHARED),
    ],
)
def test_a_module_with_modules_below_it_makes_a_place(
    names: Names, inside: Place, place: Place
) -> None:
    assert part_of(names, inside) == between(place)


def test_weights_with_a_name_that_is_not_known_have_no_known_role() -> None:
    assert part_of(linear("mystery"), Place.ATTENTION) == leaf()
    assert part_of(Names("mystery", "Reshape"), Place.ATTENTION) is None
    acting = Names("act", "LinearActivation", has_weights=True, has_matrices=True)
    assert part_of(acting, Place.MLP) == leaf()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("apply_rotary_pos_emb", leaf(r.ROPE)),
        ("apply_rotary_emb", leaf(r.ROPE)),
        ("repeat_kv", leaf(r.KV_CACHE)),
        ("eager_attention_forward", between(Place.ATTENTION_FUNCTION)),
        ("create_sliding_window_causal_mask", leaf(r.MASK)),
        ("build_alibi_tensor", leaf(r.MASK)),
        ("dropout_add", leaf(r.RESIDUAL)),
        ("deepcopy", None),
    ],
)
def test_functions_are_known_by_name(name: str, part: Part | None) -> None:
    assert function_part(name) == part


def test_a_call_says_more_only_where_several_roles_are_accepted() -> None:
    assert call_part("softmax", Place.ATTENTION_FUNCTION) == leaf(r.SOFTMAX)
    assert call_part("__matmul__", Place.ATTENTION) == leaf(r.ATTENTION)
    assert call_part("_grouped_mm", Place.EXPERTS) == leaf(r.EXPERTS)
    assert call_part("softmax", Place.LEAF) is None
    assert call_part("add", Place.ATTENTION) is None


def test_a_sum_in_an_mlp_is_of_its_activation_or_of_the_stream_it_was_given() -> None:
    assert call_part("add", Place.MLP) == leaf(r.ACTIVATION, r.RESIDUAL)
