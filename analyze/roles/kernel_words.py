"""Words for what operators and kernels do: the vocabulary of role rules.

Eager PyTorch names its operators plainly. Engines name fused operators after what they fuse,
and a kernel launched without an operator has only its own name, so both are read by pattern.
"""

import re

from whichwall.schemas import roles

MATMULS = frozenset({"mm", "addmm", "linear", "scaled_mm", "int_mm", "mkldnn_linear", "matmul"})
BATCHED_MATMULS = frozenset({"bmm", "baddbmm"})
LOOKUPS = frozenset({"embedding", "index_select", "gather"})
ACTIVATIONS = frozenset(
    {"silu", "gelu", "relu", "elu", "leaky_relu", "hardswish", "mish", "swiglu", "sigmoid"}
)
TURNING = frozenset({"cos", "sin", "polar"})
PICKS = frozenset({"argmax", "multinomial", "exponential", "log_softmax", "argmin"})
COMPARISONS = frozenset(
    {"le", "lt", "ge", "gt", "eq", "ne", "and", "or", "all", "any", "isneginf", "isin"}
    | {"logical_and", "logical_or", "logical_not", "logical_xor"}
    | {"bitwise_and", "bitwise_or", "bitwise_not", "bitwise_xor"}
)

# A compiled graph's only effects are at its end: what a pass keeps for the next is copied back
# into its place. A decoder's pass keeps its cache, and how full that is.
WRITE_BACK = "copy_"

ATTENTION = re.compile(
    r"attn|attention|fmha|flash|sdpa|\bmha|_mha|^fwd$|^_fwd_(grouped_)?kernel|paged_?kv"
)
EXPERT_MATMULS = re.compile(
    r"grouped_?(mm|gemm)|fused_(moe|experts)|moe_(gemm|mm|forward)|group_gemm|matmul_ogs"
)

# Fused operators and kernels of engines, by what their names say; the first that fits.
_FUSED = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"(scheduler|mla)_metadata|varlen_num_blocks", "plan"),
        (r"slot_mapping|block_table|kv_indices", "plan_cache"),
        (r"prepare_(pos|prefill|input)|combine_sampled|apply_write|compute_position", "prepare"),
        (r"future_token_ids", "prepare"),
        # Attention over a paged cache reads it; so does what joins the parts it was split into.
        (r"(prefill|decode)with(paged|ragged)?kv_?cache|merge_?states|reduce_segments", "attend"),
        (r"reshape_and_cache|kv_?cache|store_cache|concat_and_cache|append_paged", "write_cache"),
        (EXPERT_MATMULS.pattern, "grouped_mm"),
        (r"moe.*(align|permute|sort|sum|reduce|gather|scatter|combine|dispatch|count)", "dispatch"),
        (r"bitmatrix|_routing_|expt_data|finalize_matmul", "dispatch"),
        (r"topk_?(softmax|sigmoid)|(softmax|sigmoid)_?topk|grouped_topk|gating", "route"),
        (r"topk_forward|fused_gate|moe_?(softmax|top_?k)", "route"),
        (r"moe", "dispatch"),
        (r"top_?k_?top_?p|top_?p_|min_p_|gumbel|sampl|penalt|post_update", "sample"),
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
        (r"distribution_", "exponential"),
        (r"scatter_gather", "gather"),
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
        (r"cudnn::fusion|cudnn_generated", "attend"),
        (r"nvjet|gemm|gemv|cublas|splitk|cutlass::kernel|tensile|^cijk", "mm"),
    )
)


def fused_word(word: str) -> str | None:
    """Return the rule word for an engine's fused operator or kernel, or None if none fits."""
    return next((known for pattern, known in _FUSED if pattern.search(word)), None)


def kernel_word(name: str) -> str | None:
    """Return the rule word that a kernel's own name gives away, or None."""
    lowered = name.lower()
    found = fused_word(lowered) or next((w for p, w in _KERNELS if p.search(lowered)), None)
    return found or None


# A functor or copy of these types says which numbers its kernel works on.
_WHOLE_NUMBERS = re.compile(
    r"functor\w*<(int|long)\b"
    r"|_kernel\w*\(at::tensoriteratorbase&\)(::\{lambda\(\)#\d+\}::operator\(\)\(\) const)+"
    r"::\{lambda\((int|long)\b"
)


def counts_whole(name: str) -> bool:
    """Tell whether a kernel's own name says that it works on whole numbers."""
    return _WHOLE_NUMBERS.search(name.lower()) is not None


# What a fused operator does besides its own role, by further marks in its name.
_ALSO = (
    (re.compile(r"cache"), roles.KV_CACHE),
    (re.compile(r"rotary|rope"), roles.ROPE),
    (re.compile(r"norm"), roles.NORM),
    (re.compile(r"silu|gelu|swiglu"), roles.ACTIVATION),
    (re.compile(r"fused_add|add_.*norm|residual"), roles.RESIDUAL),
)


def fused_roles(word: str) -> tuple[str, ...]:
    """Return the roles that a fused operator's name gives away; empty for a plain operator."""
    found = tuple(role for mark, role in _ALSO if mark.search(word))
    return found if len(found) > 1 else ()
