import polars as pl
from polars.testing import assert_frame_equal

from tests.decoder import (
    ATTEND,
    CALLS,
    EXPECTED,
    FLOAT,
    GATE,
    HALF,
    MODEL,
    NORM,
    NUMBER,
    SUM,
    Call,
    recording,
    row,
    told,
)
from whichwall.analyze.roles.attribute import attribute
from whichwall.schemas import roles as r
from whichwall.schemas.activities import Activities
from whichwall.schemas.kernels import MEMCPY, MEMSET
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import frame


def test_a_pass_gets_the_role_and_layer_of_every_kernel() -> None:
    assert told(attribute(recording(CALLS), MODEL)) == EXPECTED


def test_without_a_model_the_shapes_alone_give_the_same_roles() -> None:
    assert told(attribute(recording(CALLS), None)) == EXPECTED


def test_several_passes_in_one_step_count_layers_from_0_in_each() -> None:
    assert told(attribute(recording(CALLS + CALLS), MODEL)) == EXPECTED + EXPECTED


def test_equal_shapes_are_told_apart_by_order_and_others_by_shape() -> None:
    found = attribute(recording(CALLS), MODEL)
    projections = found.filter(pl.col(Roles.layer) == 0).filter(
        pl.col(Roles.role).is_in([r.QKV_PROJ, r.O_PROJ, r.LM_HEAD])
    )
    assert projections.select(Roles.role, Roles.method).rows() == [
        (r.QKV_PROJ, r.BY_ORDER),
        (r.QKV_PROJ, r.BY_SHAPE),
        (r.QKV_PROJ, r.BY_SHAPE),
        (r.O_PROJ, r.BY_ORDER),
    ]
    assert projections.select((pl.col(Roles.confidence) > 0.9).all()).item()


def test_rows_stay_beside_their_activities_whatever_the_order_of_launch() -> None:
    # Two streams: the GPU ran the second half of the pass before the first.
    half = len(CALLS) // 2
    rows = [
        row(i, call, start_ns=5000 + i, stream=7) if i < half else row(i, call, stream=9)
        for i, call in enumerate(CALLS)
    ]
    activities = frame(Activities, rows[half:] + rows[:half])

    found = attribute(activities, MODEL)

    assert told(found) == EXPECTED[half:] + EXPECTED[:half]
    columns = [c for c in Roles.COLUMNS if c in Activities.COLUMNS]
    assert_frame_equal(found.select(columns), activities.select(columns))


def test_devices_and_steps_are_walked_each_on_its_own() -> None:
    lanes = [(0, 0), (1, 0), (0, 1)]
    rows = [
        row(i, call, device=device, step=step)
        for i, call in enumerate(CALLS)
        for device, step in lanes
    ]
    assert told(attribute(frame(Activities, rows), MODEL)) == [t for t in EXPECTED for _ in lanes]


def test_an_activity_without_a_launch_follows_its_stream() -> None:
    rows = [row(i, call, launch_start_ns=None if i % 3 else 10 * i) for i, call in enumerate(CALLS)]
    assert told(attribute(frame(Activities, rows), MODEL)) == EXPECTED


def test_a_collective_is_communication_and_does_not_disturb_the_pass() -> None:
    at = CALLS.index(SUM)  # behind the output projection
    rows = [row(i, call) for i, call in enumerate(CALLS[:at])]
    rows += [row(at, ("aten::add", [[1, 1, 32]], [HALF]), name="ncclKernel", communication=True)]
    rows += [row(at + 1 + i, call) for i, call in enumerate(CALLS[at:])]

    found = attribute(frame(Activities, rows), MODEL)

    assert told(found) == [*EXPECTED[:at], (r.COMMUNICATION, 0), *EXPECTED[at:]]
    assert found.row(at, named=True)[Roles.confidence] == 1.0


def test_what_nothing_explains_is_memory_or_other_and_does_not_disturb_the_pass() -> None:
    at = CALLS.index(GATE)
    copy = {Activities.kind: MEMCPY, Activities.name: "Memcpy DtoD (Device -> Device)"}
    rows = [row(i, call) for i, call in enumerate(CALLS[:at])]
    rows += [row(at, None, **copy), row(at + 1, None, name="mystery")]
    rows += [row(at + 2 + i, call) for i, call in enumerate(CALLS[at:])]

    found = attribute(frame(Activities, rows), MODEL)

    assert told(found) == [*EXPECTED[:at], (r.MEMORY, 0), (r.OTHER, 0), *EXPECTED[at:]]
    assert found[at : at + 2].select(Roles.method, Roles.confidence).rows() == [
        (r.BY_NAME, 0.5),
        (r.BY_NOTHING, 0.0),
    ]


def test_an_array_copied_from_the_host_is_memory_whatever_its_shape() -> None:
    rows = [
        row(
            0,
            ("aten::copy_", [[1, 1, 32], [1, 1, 32], []], [HALF, HALF, NUMBER]),
            kind=MEMCPY,
            name="Memcpy HtoD (Pinned -> Device)",
        )
    ]
    assert told(attribute(frame(Activities, rows), MODEL)) == [(r.MEMORY, None)]


def test_a_memory_set_inside_an_operator_works_for_it() -> None:
    head = CALLS[-2]
    rows = [row(i, call) for i, call in enumerate(CALLS[:-2])]
    at = len(rows)
    rows += [row(at, head, kind=MEMSET, name="Memset (Device)"), row(at + 1, head)]
    assert told(attribute(frame(Activities, rows), MODEL))[-2:] == [(r.LM_HEAD, None)] * 2


def test_heads_split_over_ranks_are_found_from_the_weights() -> None:
    halves: list[Call] = [
        ("aten::mm", [[1, 32], [32, 16]], [HALF, HALF]),
        ("aten::mm", [[1, 32], [32, 8]], [HALF, HALF]),
        ("aten::mm", [[1, 32], [32, 8]], [HALF, HALF]),
        ("aten::_flash_attention_forward", [[1, 2, 1, 8], [1, 1, 10, 8]], [HALF, HALF]),
        ("aten::mm", [[1, 16], [16, 32]], [HALF, HALF]),
        ("aten::mm", [[1, 32], [32, 40]], [HALF, HALF]),
        ("aten::silu", [[1, 1, 40]], [HALF]),
        ("aten::mm", [[1, 40], [40, 32]], [HALF, HALF]),
    ]  # fmt: skip
    found = attribute(recording([*halves, *halves]), MODEL)
    qkv, gate = [r.QKV_PROJ] * 3, [r.GATE_UP_PROJ, r.ACTIVATION, r.DOWN_PROJ]
    assert found[Roles.role].to_list() == [*qkv, r.ATTENTION, r.O_PROJ, *gate] * 2
    assert set(found[Roles.method]) == {r.BY_SHAPE}


def test_a_fused_kernel_has_one_role_and_names_the_rest() -> None:
    at = CALLS.index(SUM)
    fused: Call = ("_C::fused_add_rms_norm", [[1, 32], [1, 32], [32], []], [HALF, HALF, HALF, ""])
    calls = [*CALLS[:at], fused, *CALLS[at + 1 + len(NORM) :]]
    found = attribute(recording(calls), MODEL)
    assert found.row(at, named=True)[Roles.role] == r.NORM
    assert found.row(at, named=True)[Roles.fused] == r.RESIDUAL
    assert found[Roles.fused].null_count() == found.height - 1


def test_kernels_without_operators_are_told_by_name_and_order() -> None:
    layer = [
        ("nvjet_sm90_tst_16x64_64x16_4x1_v_bz_bias_TNN", r.QKV_PROJ, r.BY_ORDER),
        ("void vllm::rotary_embedding_kernel<c10::BFloat16>", r.ROPE, r.BY_NAME),
        ("void vllm::reshape_and_cache_flash_kernel<bf16>", r.KV_CACHE, r.BY_NAME),
        ("flash_fwd_splitkv_kernel", r.ATTENTION, r.BY_NAME),
        ("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN", r.O_PROJ, r.BY_ORDER),
        ("triton_red_fused_fused_add_rms_norm_1", r.NORM, r.BY_NAME),
        ("nvjet_sm90_tst_128x8_64x12_4x1_v_bz_TNT", r.GATE_UP_PROJ, r.BY_ORDER),
        ("void vllm::act_and_mul_kernel<silu>", r.ACTIVATION, r.BY_ORDER),
        ("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_TNT", r.DOWN_PROJ, r.BY_ORDER),
        ("void cublasLt::splitKreduce_kernel<32, 16>", r.DOWN_PROJ, r.BY_ORDER),
    ]
    norm = ("triton_red_fused_fused_add_rms_norm_2", r.NORM, r.BY_NAME)
    replay = [norm, *layer, norm, *layer]
    rows = [
        row(i, None, name=name, launch_start_ns=0, graph_replay=True)
        for i, (name, _, _) in enumerate(replay)
    ]

    found = attribute(frame(Activities, rows), None)

    assert found.select(Roles.role, Roles.method).rows() == [told[1:] for told in replay]
    assert found[Roles.layer].to_list() == [0] * 11 + [1] * 11


def test_a_mask_built_between_cache_and_attention_is_told_by_name_and_order() -> None:
    layer = [
        ("nvjet_sm90_tst_16x64_64x16_4x1_v_bz_bias_TNN", r.QKV_PROJ),
        ("elementwise_kernel<neg_kernel_cuda(at::TensorIteratorBase&)>", r.ROPE),
        ("index_elementwise_kernel<128, 4, index_copy_kernel_impl<OpaqueType<2>>>", r.KV_CACHE),
        ("elementwise_kernel<128, 4, direct_copy_kernel_cuda>", r.KV_CACHE),
        ("vectorized_elementwise_kernel<8, FillFunctor<c10::BFloat16>>", r.MASK),
        ("elementwise_kernel<128, 4, where_kernel_impl>", r.MASK),
        ("cudnn_generated_fort_native_sdpa_sm80_flash_fprop", r.ATTENTION),
        ("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN", r.O_PROJ),
        ("triton_red_fused_fused_add_rms_norm_1", r.NORM),
        ("nvjet_sm90_tst_128x8_64x12_4x1_v_bz_TNT", r.GATE_UP_PROJ),
        ("vectorized_elementwise_kernel<8, silu_kernel>", r.ACTIVATION),
        ("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_TNT", r.DOWN_PROJ),
        ("triton_red_fused_fused_add_rms_norm_2", r.NORM),
    ]
    rows = [
        row(i, None, name=name, launch_start_ns=0, graph_replay=True)
        for i, (name, _) in enumerate(layer * 2)
    ]
    found = attribute(frame(Activities, rows), None)
    assert found[Roles.role].to_list() == [role for _, role in layer * 2]


def test_an_empty_recording_has_no_roles() -> None:
    found = attribute(frame(Activities, []), None)
    assert_frame_equal(found, frame(Roles, []))


def test_what_is_no_decoder_has_no_roles_but_what_is_certain_without_order() -> None:
    calls: list[Call] = [
        ("aten::cudnn_convolution", [[8, 3, 64, 64], [16, 3, 7, 7]], [FLOAT, FLOAT]),
        ("aten::cudnn_batch_norm_backward", [[8, 16, 32, 32]], [FLOAT]),
        ("aten::max_pool2d_with_indices", [[8, 16, 32, 32]], [FLOAT]),
        ("aten::threshold_backward", [[8, 16, 32, 32]], [FLOAT]),
        ("aten::mm", [[8, 16], [16, 10]], [FLOAT, FLOAT]),
    ]
    found = attribute(recording([*calls * 3, ATTEND]), None)
    assert told(found) == [(r.OTHER, None)] * 15 + [(r.ATTENTION, None)]
