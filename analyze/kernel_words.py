"""Words for what operators and kernels do: the vocabulary of role rules.

Eager PyTorch names its operators plainly. Engines name fused operators after what they fuse,
and a kernel launched without an operator has only its own name, so both are read by pattern.
A compiler's kernel lists the operators it fuses; it is read as all of them.
"""

import re

MATMULS = frozenset({"mm", "addmm", "linear", "scaled_mm", "int_mm", "mkldnn_linear", "matmul"})
BATCHED_MATMULS = frozenset({"bmm", "baddbmm"})
LOOKUPS = frozenset({"embedding", "index_select", "gather"})
ACTIVATIONS = frozenset(
    {"silu", "gelu", "relu", "elu", "leaky_relu", "hardswish", "mish", "swiglu", "sigmoid"}
)
PICKS = frozenset({"argmax", "multinomial", "exponential", "log_softmax", "argmin"})
COMPARISONS = frozenset(
    {"le", "lt", "ge", "gt", "eq", "ne", "and", "or", "all", "any", "isneginf", "isin"}
    | {"logical_and", "logical_or", "logical_not", "logical_xor"}
    | {"bitwise_and", "bitwise_or", "bitwise_not", "bitwise_xor"}
)
# Operators that only look at memory differently: on a GPU they launch nothing.
VIEWS = frozenset(
    {"view", "reshape", "transpose", "permute", "expand", "slice", "select", "unsqueeze", "t"}
    | {"squeeze", "as_strided", "detach", "alias", "split", "chunk", "narrow", "unbind", "flatten"}
    | {"unsafe_view", "reshape_alias", "split_with_sizes", "expand_as", "movedim", "diagonal"}
    | {"empty", "empty_strided", "empty_like", "new_empty", "resize", "result_type", "view_as"}
    | {"to", "contiguous", "item", "is_nonzero", "numpy_t", "lift_fresh", "unflatten", "set"}
)

ATTENTION = re.compile(r"attn|attention|fmha|flash|sdpa|\bmha|_mha|^fwd$|paged_?kv")
EXPERT_MATMULS = re.compile(r"grouped_?(mm|gemm)|fused_(moe|experts)|moe_(gemm|mm|forward)|group_gemm")

# Fused operators and kernels of engines, by what their names say; the first that fits.
_FUSED = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|nccl|rccl", "communicate"),
        (r"reshape_and_cache|kv_?cache|concat_and_cache|append_paged", "write_cache"),
        (EXPERT_MATMULS.pattern, "grouped_mm"),
        (r"moe.*(align|permute|sort|sum|reduce|gather|scatter|combine|dispatch|count)", "dispatch"),
        (r"topk_?(softmax|sigmoid)|(softmax|sigmoid)_?topk|grouped_topk|gating", "route"),
        (r"moe", "dispatch"),
        (r"(topk|topp|top_k|top_p|min_p|gumbel).*|sampl|penalt", "sample"),
        (ATTENTION.pattern, "attend"),
        (r"rotary|rope", "rotate"),
        (r"(rms|layer|group)_?norm", "norm"),
        (r"(silu|gelu|relu|act|swiglu)(oai)?_?and_?mul|swiglu|act_and_mul", "gate"),
    )
)

# Kernels of eager PyTorch and of the libraries below it, by the operator that launches them.
_KERNELS = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"memcpy|memset", ""),
        (r"indexselect|vectorized_gather", "index_select"),
        (r"index_copy", "index_copy"),
        (r"index_put", "index_put"),
        (r"index_elementwise|gpu_index_kernel", "index"),
        (r"catarray", "cat"),
        (r"layer_?norm|rms_?norm", "norm"),
        (r"softmax", "softmax"),
        (r"argmax", "argmax"),
        (r"meanops", "mean"),
        (r"topk", "topk"),
        (r"sort", "sort"),
        (r"arange|elementwise_kernel_with_index", "arange"),
        (r"direct_copy|bfloat16_copy|float16_copy|copy_kernel", "copy"),
        (r"fillfunctor|fill_kernel", "fill"),
        (r"where_kernel", "where"),
        (r"masked_fill", "masked_fill"),
        (r"triu|tril", "triu"),
        (r"compare|logical_|bitwise_", "eq"),
        (r"functor(onself)?_add|addfunctor", "add"),
        (r"mulfunctor|mul_kernel", "mul"),
        (r"divfunctor|div_\w*kernel", "div"),
        (r"rsqrt_kernel", "rsqrt"),
        (r"pow_tensor", "pow"),
        (r"neg_kernel", "neg"),
        (r"cos_kernel", "cos"),
        (r"sin_kernel", "sin"),
        (r"tanh_kernel", "tanh"),
        (r"sigmoid_kernel", "sigmoid"),
        (r"silu", "silu"),
        (r"gelu", "gelu"),
        (r"nvjet|gemm|gemv|cublas|splitk|cutlass::kernel|tensile|^cijk", "mm"),
    )
)

_COMPILED = re.compile(r"^triton_(poi|per|red|tem|for|mm|bmm)_fused_(?P<words>\w+?)(_\d+)?$")
# Longest first, so that index_copy is not read as a copy.
_COMPILED_WORDS = sorted(
    {"index_copy", "index_put", "index", "embedding", "rsqrt", "mean", "pow", "mul", "add", "sub"}
    | {"silu", "gelu", "relu", "sigmoid", "tanh", "cos", "sin", "neg", "cat", "where", "copy", "to_copy"}
    | {"clone", "expand", "softmax", "argmax", "arange", "le", "lt", "ge", "gt", "eq", "div", "topk"}
    | {"scalar_tensor", "full", "bitwise_and", "logical_and", "var_mean", "native_layer_norm", "sum"},
    key=len,
    reverse=True,
)  # fmt: skip
_COMPILED_WORD = re.compile(rf"(?<![a-z])({'|'.join(_COMPILED_WORDS)})(?![a-z])")


def fused_word(word: str) -> str | None:
    """Return the rule word for an engine's fused operator or kernel, or None if none fits."""
    return next((known for pattern, known in _FUSED if pattern.search(word)), None)


def kernel_word(name: str) -> str | None:
    """Return the rule word that a kernel's own name gives away, or None."""
    lowered = name.lower()
    found = fused_word(lowered) or next((w for p, w in _KERNELS if p.search(lowered)), None)
    return found or None


def compiled_words(name: str) -> frozenset[str]:
    """Return the operators that a compiler says it fused into a kernel; empty if it is none.

    Operators that feed the kernel or that it feeds may be among them; matrix work is left out,
    since a generated pointwise or reduction kernel does none.
    """
    found = _COMPILED.match(name)
    return frozenset(_COMPILED_WORD.findall(found["words"])) if found else frozenset()
