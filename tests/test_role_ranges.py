"""Ranges around the parts of small models of many architectures, recorded on the CPU."""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, cache_utils

from whichwall.analyze.containment import innermost
from whichwall.analyze.role_check import role_ranges
from whichwall.collect.device import choose_device
from whichwall.collect.importer import import_run
from whichwall.collect.role_check import record_roles
from whichwall.collect.role_ranges import RoleRanges
from whichwall.collect.workload import random_prompt
from whichwall.schemas import roles as r
from whichwall.schemas.ops import Ops
from whichwall.schemas.ranges import Ranges
from whichwall.schemas.role_ranges import read_range
from whichwall.schemas.run import open_run

HIDDEN, INNER, EXPERT, LATENT, VOCAB = 48, 88, 40, 24, 104
HEADS, KV_HEADS, HEAD, LAYERS, EXPERTS = 4, 2, 16, 2, 4
QUERIES, KEYS = HEADS * HEAD, KV_HEADS * HEAD

# Widths that differ wherever the architecture lets them, so that a weight's sizes name its role.
SHARED: dict[str, Any] = {
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD,
    "num_hidden_layers": LAYERS,
    "vocab_size": VOCAB,
    "max_position_embeddings": 64,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
# Heads as wide as the hidden state.
SQUARE = {
    key: value for key, value in SHARED.items() if key not in ("head_dim", "intermediate_size")
}
SQUARE |= {"num_attention_heads": 3, "num_key_value_heads": 3}
CHOSEN = {"num_experts_per_tok": 2, "moe_intermediate_size": EXPERT}
MODELS: dict[str, dict[str, Any]] = {
    "llama": SHARED,
    "qwen2": SHARED,
    "phi3": SHARED,
    "gemma2": SHARED,
    "mixtral": {**SHARED, "num_local_experts": EXPERTS, "num_experts_per_tok": 2},
    "qwen3_moe": {**SHARED, **CHOSEN, "num_experts": EXPERTS, "mlp_only_layers": [0]},
    "deepseek_v2": {
        **SHARED, **CHOSEN, "num_key_value_heads": HEADS, "n_routed_experts": EXPERTS,
        "n_shared_experts": 1, "kv_lora_rank": LATENT, "q_lora_rank": None, "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 8, "v_head_dim": HEAD, "head_dim": 8, "first_k_dense_replace": 1,
        "topk_method": "greedy", "n_group": 1, "topk_group": 1,
    },
    "gpt2": {**SQUARE, "n_inner": INNER},
    "opt": {**SQUARE, "ffn_dim": INNER, "word_embed_proj_dim": HIDDEN},
    "gpt_neox": {**SQUARE, "intermediate_size": INNER},
    "falcon": {**SQUARE, "ffn_hidden_size": INNER, "multi_query": True, "alibi": False},
}  # fmt: skip
CASES = [(name, "eager" if name == "gemma2" else "sdpa") for name in MODELS]
CASES += [("llama", "eager"), ("falcon", "eager")]

SHARED_EXPERT = (f"{r.GATE_UP_PROJ}|{r.EXPERTS}", f"{r.DOWN_PROJ}|{r.EXPERTS}")
# Inputs and outputs of a weight, and the roles that are right for it in any of the models.
OF_WEIGHT = {
    (HIDDEN, VOCAB): {r.LM_HEAD},
    (HIDDEN, QUERIES): {r.QKV_PROJ},
    (HIDDEN, KEYS): {r.QKV_PROJ},
    (HIDDEN, QUERIES + 2 * KEYS): {r.QKV_PROJ},
    (HIDDEN, 3 * HIDDEN): {r.QKV_PROJ},
    (HIDDEN, HIDDEN + 2 * HEAD): {r.QKV_PROJ},  # one head of keys and values
    (HIDDEN, LATENT + 8): {r.QKV_PROJ},
    (LATENT, HEADS * (8 + HEAD)): {r.QKV_PROJ},
    (QUERIES, HIDDEN): {r.O_PROJ},
    (HIDDEN, INNER): {r.GATE_UP_PROJ},
    (HIDDEN, 2 * INNER): {r.GATE_UP_PROJ},
    (INNER, HIDDEN): {r.DOWN_PROJ},
    (HIDDEN, EXPERTS): {r.ROUTER},
    (HIDDEN, EXPERT): {SHARED_EXPERT[0]},
    (EXPERT, HIDDEN): {SHARED_EXPERT[1]},
}
# A square weight is the output's, or any of four where queries are as wide.
SQUARES = ({r.O_PROJ}, {r.O_PROJ, r.QKV_PROJ})

# One call that may run scores, mask and softmax one by one.
UNFUSED = f"{r.ATTENTION}|{r.SOFTMAX}|{r.MASK}"
ACTIVATIONS = {r.ACTIVATION, f"{r.ACTIVATION}|{r.EXPERTS}"}
# Operators that work for one part only, whatever the model.
OF_OPERATOR = {
    "aten::embedding": {r.EMBEDDING},
    "aten::rsqrt": {r.NORM},
    "aten::native_layer_norm": {r.NORM},
    "aten::cos": {r.ROPE},
    "aten::polar": {r.ROPE},
    "aten::neg": {r.ROPE},
    "aten::scaled_dot_product_attention": {UNFUSED},
    # Some releases multiply positions and frequencies so.
    "aten::bmm": {r.ATTENTION, UNFUSED, r.ROPE},
    "aten::silu": ACTIVATIONS,
    "aten::gelu": ACTIVATIONS,
    "aten::relu": ACTIVATIONS,
    "aten::topk": {r.ROUTER},
    "aten::_grouped_mm": {r.EXPERTS},
    "aten::argmax": {r.SAMPLING},
}

INSIDE = "inside"

Found = dict[Any, set[str]]


def built(name: str, attention: str) -> Any:
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **MODELS[name])
    make: Any = AutoModelForCausalLM.from_config
    return make(config, attn_implementation=attention).eval()


def recorded(model: Any, out: Path, new_tokens: int = 4) -> pl.DataFrame:
    """Return the operators with the name of the innermost range each ran in."""
    prompt = random_prompt(1, 8, VOCAB, torch.device("cpu"))
    with torch.no_grad():
        record_roles(model, choose_device("cpu"), prompt, new_tokens, out / "trace.json")
    run = open_run(import_run([out / "trace.json"], out / "run"))
    ops, ranges = run.ops.collect(), role_ranges(run.ranges.collect())
    return ops.with_columns(ranges[Ranges.name].gather(innermost(ops, ranges)).alias(INSIDE))


def accepted(range_name: str) -> str:
    read = read_range(range_name)
    assert read is not None
    return "|".join(read[0])


def weights(ops: pl.DataFrame) -> Found:
    found: Found = defaultdict(set)
    for name, dims, inside in ops.select(Ops.name, Ops.input_dims, INSIDE).iter_rows():
        if name == "aten::linear":
            outputs, inputs = json.loads(dims)[1]
            found[inputs, outputs].add(accepted(inside))
        elif name == "aten::addmm":
            found[tuple(json.loads(dims)[2])].add(accepted(inside))
    return dict(found)


@pytest.mark.parametrize(("name", "attention"), CASES)
def test_every_part_runs_in_a_range_of_its_role(name: str, attention: str, tmp_path: Path) -> None:
    ops = recorded(built(name, attention), tmp_path)

    found = weights(ops)
    square = found.pop((HIDDEN, HIDDEN), {r.O_PROJ})
    assert found == {weight: OF_WEIGHT[weight] for weight in found}
    assert square in SQUARES
    inside: Found = defaultdict(set)
    for operator, where in ops.select(Ops.name, INSIDE).iter_rows():
        if operator in OF_OPERATOR:
            inside[operator].add(accepted(where))
    assert {"aten::embedding", "aten::argmax"} < set(inside)
    assert {op: roles - OF_OPERATOR[op] for op, roles in inside.items()} == {
        op: set() for op in inside
    }


@pytest.mark.parametrize(("name", "attention"), CASES)
def test_layers_are_counted_from_the_first(name: str, attention: str, tmp_path: Path) -> None:
    ops = recorded(built(name, attention), tmp_path, 1)
    read = [read_range(where) for where in ops[INSIDE].drop_nulls().unique()]

    by_role: Found = defaultdict(set)
    for said in read:
        assert said is not None
        by_role["|".join(said[0])].add(str(said[1]))
    inside = {r.QKV_PROJ, r.KV_CACHE, r.O_PROJ, r.RESIDUAL}
    outside = {r.EMBEDDING, r.LM_HEAD, r.SAMPLING}
    assert {role: by_role[role] for role in inside} == {key: {"0", "1"} for key in inside}
    assert {role: by_role[role] for role in outside} == {key: {"None"} for key in outside}


def test_unfused_attention_tells_scores_from_their_softmax(tmp_path: Path) -> None:
    ops = recorded(built("llama", "eager"), tmp_path)

    softmax = ops.filter(pl.col(Ops.name) == "aten::_softmax")[INSIDE]
    assert {accepted(name) for name in softmax} == {r.SOFTMAX}
    repeated = ops.filter(
        (pl.col(Ops.name) == "aten::clone") & pl.col(Ops.input_dims).str.contains(r"^\[\[1, 2, 2,")
    )[INSIDE]
    assert {accepted(name) for name in repeated} == {r.KV_CACHE}


def fail_under_ranges(model: Any) -> None:
    with RoleRanges(model):
        assert all("forward" in vars(layer) for layer in model.model.layers)
        raise ZeroDivisionError


def test_leaving_restores_the_model_and_the_library() -> None:
    model = built("llama", "sdpa")
    file = sys.modules[type(model).__module__]
    table, rope, update = file.ALL_ATTENTION_FUNCTIONS, file.apply_rotary_pos_emb, "update"
    before = dict(table), vars(cache_utils.Cache)[update]

    with pytest.raises(ZeroDivisionError):
        fail_under_ranges(model)

    assert file.apply_rotary_pos_emb is rope
    assert (dict(table), vars(cache_utils.Cache)[update]) == before
    assert all("forward" not in vars(module) for module in model.modules())


def test_ranges_change_nothing_of_what_is_computed() -> None:
    model, tokens = built("qwen3_moe", "sdpa"), random_prompt(2, 8, VOCAB, torch.device("cpu"))

    with torch.no_grad():
        plain = model(tokens).logits
        with RoleRanges(model):
            ranged = model(tokens).logits

    assert torch.equal(plain, ranged)
