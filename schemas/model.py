"""The model's dimensions: what floors, roles and presets need to know of a decoder.

Read from a transformers `config.json` by named fields only; nothing else of it is kept.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from whichwall.schemas.config_fields import Fields
from whichwall.schemas.errors import InputError, require_regular
from whichwall.schemas.families import FAMILIES, LLAMA, Family

CONFIG_FILE = "config.json"
ATTENTION_LAYERS = ("full_attention", "sliding_attention", "chunked_attention")


class Model(msgspec.Struct, frozen=True, omit_defaults=True):
    """Dimensions of one decoder-only model."""

    name: str
    model_type: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool = False
    gated_mlp: bool = True
    norm: str = "rms"  # "rms" or "layer"
    dtype: str | None = None
    sliding_window: int | None = None
    sliding_layers: int = 0
    positions: int | None = None  # rows of the learned position table, else null
    experts: int | None = None
    experts_per_token: int | None = None
    expert_intermediate: int | None = None
    shared_experts: int = 0
    dense_layers: int = 0  # leading layers with a plain MLP in a mixture of experts
    kv_lora_rank: int | None = None  # latent attention
    q_lora_rank: int | None = None
    qk_nope_dim: int | None = None
    qk_rope_dim: int | None = None
    v_head_dim: int | None = None
    parameters: int | None = None  # counted on the real model, where there was one
    weight_bytes: int | None = None  # likewise; floors count bytes from the dimensions
    assumed: bool = False  # model_type is not known here: taken for a Llama of these dimensions
    quantization: str | None = None  # method; bytes per weight then do not follow from dtype
    embedding: int | None = None  # width of the token table, where it is projected to hidden
    qkv_bias: bool = False  # in latent attention: of the down-projections
    o_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    expert_bias: bool = False  # of experts and router
    qk_norm: str | None = None  # "head": over head_dim; "full": over all heads together
    norm_bias: bool = False
    norms_per_layer: int = 2
    final_norm: bool = True
    attention_sinks: bool = False  # one learned number per head
    shared_intermediate: int | None = None  # all shared experts together, where stated
    shared_gate: bool = False  # a gate on the shared expert
    sparse_step: int = 1  # every n-th layer has experts
    mlp_only: tuple[int, ...] = ()  # further layers with a plain MLP, by index

    def is_sparse(self, layer: int) -> bool:
        """Tell whether a layer, counted from 0, has experts in place of a plain MLP."""
        return (
            self.experts is not None
            and layer >= self.dense_layers
            and layer not in self.mlp_only
            and (layer + 1) % self.sparse_step == 0
        )

    @property
    def sparse_layers(self) -> int:
        """Count the layers that have experts."""
        return sum(self.is_sparse(layer) for layer in range(self.layers))

    @property
    def shared_width(self) -> int:
        """Return the inner width of all shared experts together; 0 without any."""
        return self.shared_intermediate or self.shared_experts * (self.expert_intermediate or 0)


def model_from_config(config: Mapping[str, object], name: str, where: str = CONFIG_FILE) -> Model:
    """Return the dimensions that a transformers config states, by named fields only.

    `where` names the file in messages. A `model_type` that is not known is read as a Llama of
    these dimensions and marked `assumed`.

    Raises:
        InputError: a field is missing or no number, or the model is no plain decoder.
    """
    inner = config.get("text_config")
    if isinstance(inner, Mapping):
        carried = ("model_type", "tie_word_embeddings", "dtype", "torch_dtype")
        outer = {key: config[key] for key in carried if key in config}
        config = {**outer, "quantization_config": config.get("quantization_config"), **inner}
    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        raise InputError(
            f"{where}: field model_type is missing; expected the config.json of a decoder"
        )
    _refuse_other_kinds(config, where)
    family = FAMILIES.get(model_type, LLAMA)
    fields = Fields({**family.defaults, **config}, where)
    hidden = fields.need("hidden_size", "n_embd", "d_model")
    facts = {
        "name": name,
        "model_type": model_type,
        "assumed": model_type not in FAMILIES,
        "hidden": hidden,
        "layers": fields.need("num_hidden_layers", "n_layer"),
        "vocab": fields.need("vocab_size"),
        "tied": bool(fields.maybe("tie_word_embeddings")),
        "dtype": _dtype(fields),
        "quantization": _quantization(fields),
        "embedding": _embedding(fields, hidden),
        "positions": _positions(fields, family),
        **family.facts,
        **_attention(fields, hidden),
        **_window(fields),
        **_mlp(fields, hidden),
        **_switched(fields, family),
    }
    try:
        return msgspec.convert(facts, Model)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}; expected the config.json of a decoder") from error


def read_model(path: Path) -> Model:
    """Read the dimensions from a config.json, or from a folder that holds one.

    Raises:
        InputError: no such file, no JSON object, or not the config of a plain decoder.
    """
    file = path / CONFIG_FILE if path.is_dir() else path
    require_regular(file, f"model's {CONFIG_FILE}")
    try:
        config = json.loads(file.read_bytes())
    except OSError as error:
        raise InputError(
            f"{file}: {error.strerror}; expected a model's {CONFIG_FILE} or a folder with one"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: not JSON ({error}); expected a model's {CONFIG_FILE}") from error
    if not isinstance(config, dict):
        raise InputError(f"{file}: holds no JSON object; expected a model's {CONFIG_FILE}")
    # A bare config.json says nothing by its place: the working folder is no name for a model.
    place = file.parent.name or str(config.get("model_type", file.name))
    name = place if file.name == CONFIG_FILE else file.name
    return model_from_config(config, name.removesuffix(".json").removesuffix(".config"), str(file))


def _refuse_other_kinds(config: Mapping[str, object], where: str) -> None:
    """Raise InputError for encoder-decoders and for layers without attention."""
    if config.get("is_encoder_decoder"):
        raise InputError(f"{where}: an encoder-decoder model; expected a decoder")
    kinds = config.get("layer_types")
    if not isinstance(kinds, list):
        return
    other = sorted({str(kind) for kind in kinds if kind not in ATTENTION_LAYERS})
    if other:
        raise InputError(
            f"{where}: layers of type {', '.join(other)}; expected attention in every layer"
        )


def _dtype(fields: Fields) -> str | None:
    found = fields.maybe("dtype", "torch_dtype")
    return found.removeprefix("torch.") if isinstance(found, str) and found != "auto" else None


def _quantization(fields: Fields) -> str | None:
    found = fields.maybe("quantization_config")
    return str(found.get("quant_method", "unknown")) if isinstance(found, Mapping) else None


def _embedding(fields: Fields, hidden: int) -> int | None:
    width = fields.count("word_embed_proj_dim")
    return None if width == hidden else width


def _positions(fields: Fields, family: Family) -> int | None:
    if family.positions is None:
        return None
    name, extra = family.positions
    return fields.need(name) + extra


def _attention(fields: Fields, hidden: int) -> dict[str, object]:
    heads = fields.need("num_attention_heads", "n_head")
    latent = fields.count("kv_lora_rank")
    if latent is None:
        return {
            "heads": heads,
            "kv_heads": fields.count("num_key_value_heads") or heads,
            "head_dim": fields.count("head_dim") or hidden // heads,
        }
    nope, rope = fields.need("qk_nope_head_dim"), fields.need("qk_rope_head_dim")
    return {
        "heads": heads,
        "kv_heads": heads,  # expanded: each head has its own keys and values
        "head_dim": nope + rope,
        "kv_lora_rank": latent,
        "q_lora_rank": fields.count("q_lora_rank"),
        "qk_nope_dim": nope,
        "qk_rope_dim": rope,
        "v_head_dim": fields.need("v_head_dim"),
    }


def _window(fields: Fields) -> dict[str, object]:
    """Return the sliding window and how many layers have it, as the config classes decide it."""
    window = fields.count("sliding_window")
    if not window or fields.maybe("use_sliding_window") is False:
        return {}
    layers = fields.need("num_hidden_layers", "n_layer")
    kinds = fields.maybe("layer_types")
    pattern = fields.count("sliding_window_pattern", "_sliding_window_pattern")
    first = fields.count("max_window_layers") or 0
    if isinstance(kinds, list):
        sliding = sum(kind != "full_attention" for kind in kinds)
    elif pattern:
        sliding = layers - layers // pattern
    else:
        sliding = max(layers - first, 0)
    return {"sliding_window": window, "sliding_layers": sliding} if sliding else {}


def _mlp(fields: Fields, hidden: int) -> dict[str, object]:
    experts = fields.count("num_experts", "num_local_experts", "n_routed_experts") or None
    inner = fields.count("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size")
    if inner is None and "n_embd" in fields.config:
        inner = 4 * hidden  # GPT-2's own rule for an n_inner of null
    if experts is None:
        return {"intermediate": inner or fields.need("intermediate_size", "ffn_dim", "n_inner")}
    width = fields.count("moe_intermediate_size") or inner
    return {
        "intermediate": inner or width or fields.need("intermediate_size"),
        "experts": experts,
        "experts_per_token": fields.need("num_experts_per_tok", "num_experts_per_token"),
        "expert_intermediate": width or fields.need("moe_intermediate_size"),
        "shared_experts": fields.count("n_shared_experts", "num_shared_experts") or 0,
        "shared_intermediate": fields.count("shared_expert_intermediate_size") or None,
        "dense_layers": fields.count("first_k_dense_replace") or 0,
        "sparse_step": fields.count("decoder_sparse_step") or 1,
        "mlp_only": fields.maybe("mlp_only_layers") or (),
    }


def _switched(fields: Fields, family: Family) -> dict[str, object]:
    facts: dict[str, object] = {}
    for name, turned_on in family.switches.items():
        if fields.maybe(name):
            facts.update(turned_on)
    return facts
