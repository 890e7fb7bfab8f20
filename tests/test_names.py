import pytest

from whichwall.analyze.names import DEFAULT_WIDTH, elided, printable, short_name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, "
            "std::array<char*, 3ul> >(int, at::native::AddFunctor<float>, std::array<char*, 3ul>)",
            "vectorized_elementwise_kernel<AddFunctor<float>>",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::rsqrt_kernel_cuda("
            "at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(float)#1}, "
            "std::array<char*, 2ul> >(int, std::array<char*, 2ul>)",
            "vectorized_elementwise_kernel<rsqrt_kernel_cuda>",
        ),
        (
            "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float, false>(int)",
            "kernel<int, float, false>",
        ),
        (
            "void at::native::(anonymous namespace)::indexSelectLargeIndex<long, -2>(long, int)",
            "indexSelectLargeIndex<long, -2>",
        ),
        ("void vllm::reshape<bf16, (vllm::Fp8)0>(int)", "reshape<bf16, 0>"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
         "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bEEvPT0_", "add_rmsnorm_quant_kernel<…>"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("two\nlines\x1b[31m\u202e", "two lines [31m"),
        ("void f(", "f"),
        ("(((((", "((((("),
        ("", ""),
    ],
)  # fmt: skip
def test_a_name_is_shortened_to_what_tells_it_apart(name: str, short: str) -> None:
    assert short_name(name) == short


@pytest.mark.parametrize(
    "name",
    ["x" * 60_000, "void " + "a<" * 30_000, "::" * 30_000, "void f" + "(" * 60_000, "_Z9" * 20_000],
)
def test_a_name_of_60_kilobytes_is_short_too(name: str) -> None:
    assert len(short_name(name)) <= DEFAULT_WIDTH


def test_both_ends_of_a_long_text_are_kept() -> None:
    assert elided("abcdefghijklmnopqrstuvwxyz", 12) == "abcdefg…wxyz"


def test_what_cannot_be_seen_becomes_a_space() -> None:
    assert printable("a\u0000b\tc\u200bd\n\n e") == "a b c d e"
