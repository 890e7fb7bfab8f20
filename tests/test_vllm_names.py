"""What serving engines call their kernels, and what is read where no sizes are on record."""

import json

import pytest

from tests.test_role_candidates import DIMS, SPARSE, best
from whichwall.analyze.roles.attribute import attribute
from whichwall.analyze.roles.candidates import Candidates, propose
from whichwall.analyze.roles.kernel_words import counts_whole
from whichwall.analyze.roles.looks import look
from whichwall.analyze.roles.operators import read_operator
from whichwall.analyze.roles.rules import RARE
from whichwall.analyze.roles.stages import ROLE_OF, Stage
from whichwall.schemas import roles as r
from whichwall.schemas.activities import Activities
from whichwall.schemas.kernels import KERNEL, MEMCPY
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import frame

HALF, FLOAT, INT = "c10::BFloat16", "float", "int"
PINNED, PAGEABLE, WITHIN = (
    f"Memcpy {how}"
    for how in ("HtoD (Pinned -> Device)", "HtoD (Pageable -> Device)", "DtoD (Device -> Device)")
)
COPY = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda"
COPY_OF = (
    COPY + "(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#4}"
    "::operator()() const::{lambda(%s)#1}, std::array<char*, 2ul>, 4>"
)


def called(op: str, sizes: list[object], types: list[str], kernel: str = "kernel") -> Candidates:
    return propose(read_operator(op, json.dumps(sizes), json.dumps(types)), kernel, DIMS)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kernel_unified_attention_2d", r.ATTENTION),
        ("reduce_segments", r.ATTENTION),
        ("void flash::prepare_varlen_num_blocks_kernel<1, false>(int, int)", r.ATTENTION),
        ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0>",
         r.ATTENTION),
        ("void flashinfer::BatchPrefillWithRaggedKVCacheKernel<1>", r.ATTENTION),
        ("void flashinfer::PersistentVariableLengthMergeStatesKernel<8u>", r.ATTENTION),
        ("_ZN7ck_tile6kentryINS_38FmhaBatchPrefillWithPagedKVCacheKernel", r.ATTENTION),
        ("_fwd_grouped_kernel_stage1", r.ATTENTION),
        ("_fwd_kernel_stage2", r.ATTENTION),
        ("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>", r.KV_CACHE),
        ("void (anonymous namespace)::store_kvcache<2048l, 4, false, long>", r.KV_CACHE),
        ("_gather_block_tables_kernel", r.KV_CACHE),
        ("create_flashinfer_kv_indices_triton", r.KV_CACHE),
        ("void vllm::moe::topkGating<8, 32, 4, 16, 32, int>", r.ROUTER),
        ("void vllm::moe::moeSoftmax<256>(float const*)", r.ROUTER),
        ("_topk_forward", r.ROUTER),
        ("_sum_bitmatrix_rows", r.EXPERTS),
        ("_combined_routing_compute", r.EXPERTS),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", r.EXPERTS),
        ("_finalize_matmul_scatter_bf16", r.EXPERTS),
        ("void vllm::moe::moe_align_block_size_kernel<int>", r.EXPERTS),
        ("_topk_topp_kernel", r.SAMPLING),
        ("_gumbel_sample_kernel", r.SAMPLING),
        ("_post_update_kernel", r.SAMPLING),
        ("void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel",
         r.SAMPLING),
        ("_prepare_pos_seq_lens_kernel", r.OTHER),
        ("_prepare_prefill_inputs_kernel", r.OTHER),
        ("_combine_sampled_and_draft_tokens_kernel", r.OTHER),
        ("_apply_write_kernel", r.OTHER),
    ],
)  # fmt: skip
def test_the_kernels_of_an_engine_are_known_by_name(name: str, expected: str) -> None:
    assert best(propose(None, name, SPARSE)) == {expected}


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array>", True),
        ("vectorized_elementwise_kernel<2, at::native::CUDAFunctor_add<long>, std::array>", True),
        (COPY_OF % "long", True),
        ("vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array>", False),
        ("vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>", False),
        (COPY_OF % "c10::BFloat16", False),
        # An offset counts too, whatever lies there.
        ("index_elementwise_kernel<128, 4, gpu_index_kernel<OpaqueType<4>>::{lambda(int)#1}>",
         False),
    ],
)  # fmt: skip
def test_a_kernel_may_say_itself_that_it_works_on_whole_numbers(name: str, whole: bool) -> None:
    assert counts_whole(name) is whole


def test_whole_numbers_without_sizes_are_neither_hidden_states_nor_angles() -> None:
    of_whole = propose(read_operator("aten::copy_", None, None), COPY_OF % "long", DIMS)
    of_any = propose(read_operator("aten::copy_", None, None), COPY_OF % "c10::BFloat16", DIMS)
    assert ROLE_OF[min(of_whole.costs, key=lambda stage: of_whole.costs[stage])] == r.OTHER
    assert Stage.NORM_IN in of_any.costs
    assert Stage.NORM_IN not in of_whole.costs


def test_a_number_from_pinned_memory_is_input_and_one_from_elsewhere_a_constant() -> None:
    assert called("aten::copy_", [[1], [1], []], [INT, INT, "Scalar"], PINNED).costs == {}
    assert called("aten::copy_", [[1], [1], []], [INT, INT, "Scalar"], PAGEABLE).costs


@pytest.mark.parametrize("kernel", [PINNED, PAGEABLE, WITHIN])
def test_a_copy_of_which_no_sizes_are_known_belongs_to_nothing(kernel: str) -> None:
    assert propose(read_operator("aten::copy_", None, None), kernel, DIMS).costs == {}


def test_hidden_states_copied_as_they_are_are_not_on_their_way_into_a_norm() -> None:
    types = [HALF, HALF, "Scalar"]
    assert best(called("aten::copy_", [[5, 32], [5, 32], []], types)).isdisjoint({r.NORM})
    assert r.NORM in best(called("aten::copy_", [[5, 32], [5, 32], []], [FLOAT, HALF, "Scalar"]))


def test_a_norm_of_rows_as_wide_as_a_head_is_of_queries_and_keys() -> None:
    found = called("aiter::rmsnorm", [[20, 8], [20, 8], [8], []], [HALF, HALF, HALF, "Scalar"])
    assert set(found.costs) == {Stage.QK_NORM}


def test_logits_divided_by_a_number_a_sequence_are_being_sampled() -> None:
    assert best(called("aten::div_", [[8, 500], [8, 1]], [FLOAT, FLOAT])) == {r.SAMPLING}


def test_cos_and_sin_are_seldom_built_where_no_kernel_of_the_recording_builds_them() -> None:
    def cost(*others: str) -> float:
        names = ["vectorized_elementwise_kernel<4, MulFunctor<float>>", *others]
        rows = frame(Activities, [activity(KERNEL, name) for name in names])
        return float(look(rows, None).costs[0, Stage.TURN])

    builds = "elementwise_kernel<cos_kernel_cuda(at::TensorIteratorBase&)>"
    assert cost("gemm") == cost(builds) + RARE
    assert cost("triton_poi_fused_cos_mul_sin_0") == cost(builds)


def activity(kind: str, name: str) -> dict[str, object]:
    return {
        "point": 0, "rank": 0, Activities.kind: kind, Activities.name: name,
        Activities.device: 0, Activities.stream: 7, Activities.start_ns: 5, Activities.dur_ns: 2,
        Activities.end_ns: 7, Activities.graph_replay: True, Activities.communication: False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"), [(KERNEL, "memcpy32_post"), (MEMCPY, "Memcpy DtoD (Device -> Device)")]
)
def test_a_copy_in_a_graph_is_one_also_where_it_is_a_kernel_of_the_driver(
    kind: str, name: str
) -> None:
    found = attribute(frame(Activities, [activity(kind, name)]), None)
    assert found.select(Roles.role, Roles.method).rows() == [(r.MEMORY, r.BY_NAME)]
