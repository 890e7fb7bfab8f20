"""The weights of a model, tensor kind by tensor kind: parameter counts and floors rest on it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from whichwall.schemas import roles
from whichwall.schemas.errors import InputError
from whichwall.schemas.model import Model

# How a pass uses the numbers. "matmul": all, on every token; "head": all, on tokens with logits;
# "experts": those of the chosen experts; "latent": all, on every token whose cache entry is
# expanded; "lookup": one row per token; "vector": all, without arithmetic that counts.
Use = Literal["matmul", "head", "experts", "latent", "lookup", "vector"]

DTYPE_BYTES = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int8": 1,
}


@dataclass(frozen=True)
class Weight:
    """One kind of tensor: an `inputs` × `outputs` matrix, `count` times in the model."""

    name: str
    role: str
    use: Use
    inputs: int
    outputs: int
    count: int = 1
    bias: bool = False
    copies: int = 1  # experts of one layer
    tied: bool = False  # the numbers of another entry, used once more

    @property
    def numbers(self) -> int:
        """Count the numbers of one copy, its bias included."""
        return (self.inputs + self.bias) * self.outputs


def weights(model: Model) -> list[Weight]:
    """List every kind of weight, in the order in which a token meets them."""
    return [
        entry
        for part in (_embedding, _norms, _attention, _plain_mlp, _expert_mlp, _head)
        for entry in part(model)
        if entry.count and entry.inputs and entry.outputs
    ]


def parameters(model: Model) -> int:
    """Count the parameters as the real model stores them: a tied head counts once."""
    return sum(w.numbers * w.copies * w.count for w in weights(model) if not w.tied)


def active_parameters(model: Model) -> int:
    """Count the parameters that one token uses: of the experts, the chosen ones."""
    idle = (model.experts or 0) - (model.experts_per_token or 0)
    unused = sum(w.numbers * idle * w.count for w in weights(model) if w.use == "experts")
    return parameters(model) - unused


def cache_numbers(model: Model) -> int:
    """Count the numbers that one token leaves in the cache of one layer.

    Latent attention stores the compressed vector and one rotary key for all heads together.
    """
    if model.kv_lora_rank is not None:
        return model.kv_lora_rank + (model.qk_rope_dim or 0)
    return model.kv_heads * (model.head_dim + value_dim(model))


def value_dim(model: Model) -> int:
    """Return the width of one head's values."""
    return model.v_head_dim or model.head_dim


def dtype_bytes(dtype: str) -> int:
    """Return the bytes of one number of a type, as torch names it.

    Raises:
        InputError: the type is not known.
    """
    found = DTYPE_BYTES.get(dtype.removeprefix("torch."))
    if found is None:
        raise InputError(f"dtype {dtype!r} has no known width; known: {', '.join(DTYPE_BYTES)}")
    return found


def _embedding(m: Model) -> Iterator[Weight]:
    width = m.embedding or m.hidden
    yield Weight("embed_tokens", roles.EMBEDDING, "lookup", m.vocab, width)
    yield Weight("embed_positions", roles.EMBEDDING, "lookup", m.positions or 0, m.hidden)
    if m.embedding:
        yield Weight("project_in", roles.EMBEDDING, "matmul", m.embedding, m.hidden)


def _norms(m: Model) -> Iterator[Weight]:
    def norm(name: str, width: int, count: int) -> Weight:
        return Weight(name, roles.NORM, "vector", 1, width, count, bias=m.norm_bias)

    yield norm("norm", m.hidden, m.layers * m.norms_per_layer)
    yield norm("final_norm", m.hidden, int(m.final_norm))
    if m.qk_norm:
        queries, keys = (m.heads, m.kv_heads) if m.qk_norm == "full" else (1, 1)
        yield norm("q_norm", queries * m.head_dim, m.layers)
        yield norm("k_norm", keys * m.head_dim, m.layers)
    if m.kv_lora_rank is not None:
        yield norm("q_a_norm", m.q_lora_rank or 0, m.layers)
        yield norm("kv_a_norm", m.kv_lora_rank, m.layers)


def _attention(m: Model) -> Iterator[Weight]:
    queries, values = m.heads * m.head_dim, m.heads * value_dim(m)

    def project(name: str, inputs: int, outputs: int, *, bias: bool = False) -> Weight:
        return Weight(name, roles.QKV_PROJ, "matmul", inputs, outputs, m.layers, bias=bias)

    if m.kv_lora_rank is None:
        keys = m.kv_heads * m.head_dim
        yield project("q_proj", m.hidden, queries, bias=m.qkv_bias)
        yield project("k_proj", m.hidden, keys, bias=m.qkv_bias)
        yield project("v_proj", m.hidden, keys, bias=m.qkv_bias)
    else:
        down = m.kv_lora_rank + (m.qk_rope_dim or 0)
        up = m.heads * ((m.qk_nope_dim or 0) + value_dim(m))
        if m.q_lora_rank:
            yield project("q_a_proj", m.hidden, m.q_lora_rank, bias=m.qkv_bias)
        yield project("q_proj", m.q_lora_rank or m.hidden, queries)
        yield project("kv_a_proj", m.hidden, down, bias=m.qkv_bias)
        yield Weight("kv_b_proj", roles.QKV_PROJ, "latent", m.kv_lora_rank, up, m.layers)
    if m.attention_sinks:
        yield Weight("sinks", roles.SOFTMAX, "vector", 1, m.heads, m.layers)
    yield Weight("o_proj", roles.O_PROJ, "matmul", values, m.hidden, m.layers, bias=m.o_bias)


def _mlp(m: Model, prefix: str, use: Use, width: int, count: int, copies: int) -> Iterator[Weight]:
    """Yield gate (if gated), up and down of an MLP; experts are one role, whichever matrix."""
    plain = not prefix
    first, last = (roles.GATE_UP_PROJ, roles.DOWN_PROJ) if plain else (roles.EXPERTS,) * 2
    bias = m.mlp_bias if use == "matmul" else m.expert_bias
    for name in ("gate_proj", "up_proj") if m.gated_mlp else ("up_proj",):
        yield Weight(prefix + name, first, use, m.hidden, width, count, bias, copies)
    yield Weight(prefix + "down_proj", last, use, width, m.hidden, count, bias, copies)


def _plain_mlp(m: Model) -> Iterator[Weight]:
    yield from _mlp(m, "", "matmul", m.intermediate, m.layers - m.sparse_layers, 1)


def _expert_mlp(m: Model) -> Iterator[Weight]:
    count, experts = m.sparse_layers, m.experts or 0
    yield Weight("router", roles.ROUTER, "matmul", m.hidden, experts, count, bias=m.expert_bias)
    yield from _mlp(m, "expert_", "experts", m.expert_intermediate or 0, count, experts)
    yield from _mlp(m, "shared_", "matmul", m.shared_width, count, 1)
    if m.shared_gate:
        yield Weight("shared_gate", roles.EXPERTS, "matmul", m.hidden, 1, count)


def _head(m: Model) -> Iterator[Weight]:
    width = m.embedding or m.hidden
    if m.embedding:
        yield Weight("project_out", roles.LM_HEAD, "matmul", m.hidden, m.embedding)
    yield Weight("lm_head", roles.LM_HEAD, "head", width, m.vocab, bias=m.head_bias, tied=m.tied)
