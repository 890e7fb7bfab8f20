"""What the parts of a decoder are called: from the name and class of a module to its roles.

Libraries name the same parts alike across architectures: `q_proj`, `query_key_value` and `c_attn`
all make queries, and `c_proj` is the last matrix of attention or of the MLP, depending on where it
stands. The vocabulary below lists these names by the place they stand in; no architecture is named.
A part with weights that it does not list has no known role, and is not judged.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum, auto

from whichwall.schemas import roles


class Place(StrEnum):
    """Where in a decoder code runs."""

    OUTSIDE = auto()  # around the model: choosing the next token
    TOP = auto()  # the whole model with its head
    BODY = auto()  # around the layers
    LAYER = auto()
    ATTENTION = auto()
    ATTENTION_FUNCTION = auto()
    MLP = auto()
    MIXTURE = auto()  # router and experts
    EXPERTS = auto()
    SHARED = auto()  # experts that see every token
    LEAF = auto()  # one part with one role


# What runs between the named parts of a place. Several are accepted where code between parts may
# serve any of them: a copy inside attention can belong to the cache as well as to the scores.
BETWEEN: dict[Place, tuple[str, ...]] = {
    Place.OUTSIDE: (roles.SAMPLING,),
    Place.TOP: (roles.LM_HEAD, roles.SAMPLING, roles.OTHER),
    Place.BODY: (
        roles.EMBEDDING, roles.ROPE, roles.KV_CACHE, roles.MASK, roles.RESIDUAL, roles.OTHER,
    ),
    Place.LAYER: (roles.RESIDUAL,),
    Place.ATTENTION: (
        roles.ROPE, roles.KV_CACHE, roles.ATTENTION, roles.SOFTMAX, roles.MASK,
    ),
    Place.ATTENTION_FUNCTION: (roles.ATTENTION, roles.SOFTMAX),
    Place.MLP: (roles.ACTIVATION,),
    Place.MIXTURE: (roles.RESIDUAL, roles.ROUTER, roles.EXPERTS),
    Place.EXPERTS: (roles.ROUTER, roles.EXPERTS),
    Place.SHARED: (roles.ACTIVATION, roles.EXPERTS),
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """Where a module's own code stands, and the roles that are right for it; none: not known."""

    place: Place
    accepted: tuple[str, ...]


@dataclass(frozen=True)
class Names:
    """What is read of a module."""

    name: str  # the last word of its path
    kind: str  # its class
    children: frozenset[str] = frozenset()  # names of all modules below it
    has_weights: bool = False  # of its own
    has_matrices: bool = False  # among those weights; an activation may learn numbers
    listed: bool = False  # an element of a list of modules


def between(place: Place) -> Part:
    """Return the part that code directly in a place is."""
    return Part(place, BETWEEN[place])


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"^(?:{pattern})$", re.IGNORECASE)


_WITHOUT_KERNELS = re.compile("dropout|identity|droppath|modulelist|moduledict", re.IGNORECASE)
_NORM = re.compile(r"norm|^ln(_|\d|$)|_ln$", re.IGNORECASE)
_ROPE = re.compile(r"rotary|(^|_)rope", re.IGNORECASE)
_EMBEDDING = re.compile(r"embed|^wte$|^wpe$|^project_in$", re.IGNORECASE)
_ACTIVATION = re.compile(r"^act|activation|^(silu|gelu|relu)", re.IGNORECASE)
_ACTIVATION_CLASS = re.compile(r"activation|silu|gelu|relu|^tanh$|^sigmoid$", re.IGNORECASE)
_ATTENTION = re.compile("attn|attention", re.IGNORECASE)
_MLP = re.compile(r"mlp|ffn|^ff$|feed_?forward", re.IGNORECASE)
_EXPERTS = re.compile("experts?$", re.IGNORECASE)
_ROUTER = re.compile("router|^gate$|^wg$|topk", re.IGNORECASE)
_SHARED = re.compile("shared", re.IGNORECASE)
_HEAD = _words("lm_head|embed_out|output|head|project_out")

_QKV = _words(
    r"[qkv]{1,3}|w_?[qkv]{1,3}|w_pack|c_attn|in_proj|query.*|key|value|(key|value)_proj"
    r"|[qkv]{1,3}(_[ab])?_proj(_.*)?"
)
_O = _words(r"o|w_?o|o(ut|utput)?_proj|c_proj|dense|proj|out(put)?|attn_out")
_GATE_UP = _words(
    r"gate|up|(gate|up|gate_up|in)_proj|c_fc|fc1|fc_in|w1|w3|wi(_\d)?|lin(ear)?_?1"
    r"|input_linear|dense_h_to_4h"
)
_DOWN = _words(r"down|(down|c|out)_proj|fc2|fc_out|w2|wo|lin(ear)?_?2|output_linear|dense_4h_to_h")

_MATRICES: dict[Place, tuple[tuple[re.Pattern[str], str], ...]] = {
    Place.TOP: ((_HEAD, roles.LM_HEAD),),
    Place.BODY: ((_HEAD, roles.LM_HEAD),),
    Place.LAYER: ((_GATE_UP, roles.GATE_UP_PROJ), (_DOWN, roles.DOWN_PROJ)),
    Place.MLP: ((_GATE_UP, roles.GATE_UP_PROJ), (_DOWN, roles.DOWN_PROJ)),
    Place.SHARED: ((_GATE_UP, roles.GATE_UP_PROJ), (_DOWN, roles.DOWN_PROJ)),
    Place.ATTENTION: ((_QKV, roles.QKV_PROJ), (_O, roles.O_PROJ)),
}
_AROUND_LAYERS = frozenset({Place.TOP, Place.BODY})


def part_of(names: Names, inside: Place) -> Part | None:
    """Return what a module is, from its names and the place it stands in.

    None for a module whose forward adds nothing of its own: what it runs belongs around it.
    """
    if _WITHOUT_KERNELS.search(names.kind):
        return None
    role = _plain_role(names, inside)
    if role is not None:
        return _leaf(role, inside)
    if inside == Place.EXPERTS:
        return between(Place.EXPERTS) if names.children else _leaf(roles.EXPERTS, inside)
    if inside in (Place.MIXTURE, Place.LAYER, Place.SHARED) or names.children:
        mixed = _of_mixture(names, inside)
        if mixed is not None:
            return mixed
    if names.children:
        return between(_container(names, inside))
    return _matrix(names, inside)


def place_below(names: Names, inside: Place) -> Place:
    """Return where the modules below one stand that is no part itself: experts may be a list."""
    return Place.EXPERTS if names.children and _EXPERTS.search(names.name) else inside


def _plain_role(names: Names, inside: Place) -> str | None:
    """Return the role of a part that is called the same wherever it stands."""
    is_leaf = not names.children
    can_embed = inside in _AROUND_LAYERS and is_leaf and not _HEAD.match(names.name)
    if _called(_NORM, names):
        return roles.NORM
    if _called(_ROPE, names):
        return roles.ROPE
    if can_embed and _called(_EMBEDDING, names):
        return roles.EMBEDDING
    acts = _ACTIVATION.search(names.name) or _ACTIVATION_CLASS.search(names.kind)
    return roles.ACTIVATION if acts and is_leaf and not names.has_matrices else None


def _called(pattern: re.Pattern[str], names: Names) -> bool:
    return bool(pattern.search(names.name) or pattern.search(names.kind))


def _of_mixture(names: Names, inside: Place) -> Part | None:
    """Return the parts that a mixture of experts adds to a layer."""
    if _SHARED.search(names.name):
        return (
            between(Place.SHARED)
            if names.children
            else Part(Place.LEAF, (roles.ROUTER, roles.EXPERTS))
        )
    if _called(_EXPERTS, names):
        return between(Place.EXPERTS)
    if inside == Place.MIXTURE and _called(_ROUTER, names):
        return Part(Place.LEAF, (roles.ROUTER,))
    return None


def _container(names: Names, inside: Place) -> Place:
    """Return the place that a module with modules below it makes."""
    if inside in _AROUND_LAYERS:
        is_layer = names.listed and any(map(_ATTENTION.search, names.children))
        return Place.LAYER if is_layer else Place.BODY
    if inside == Place.LAYER and _called(_ATTENTION, names):
        return Place.ATTENTION
    if inside == Place.LAYER and _mixes(names.children):
        return Place.MIXTURE
    if inside == Place.LAYER and _called(_MLP, names):
        return Place.MLP
    return inside


def _mixes(children: Iterable[str]) -> bool:
    return any(_EXPERTS.search(child) or child == "router" for child in children)


def _matrix(names: Names, inside: Place) -> Part | None:
    for pattern, role in _MATRICES.get(inside, ()):
        if pattern.match(names.name):
            return _leaf(role, inside)
    return Part(Place.LEAF, ()) if names.has_weights else None


def _leaf(role: str, inside: Place) -> Part:
    """Return a part with one role; inside experts, the experts' own is right as well."""
    both = inside in (Place.EXPERTS, Place.SHARED) and role != roles.EXPERTS
    return Part(Place.LEAF, (role, roles.EXPERTS) if both else (role,))


_APPLIES_ROPE = re.compile(r"^_?apply_.*rot|^_?apply_rope|^rotate_half$")
_REPEATS_HEADS = re.compile(r"^_?repeat_kv")
_ATTENDS = re.compile(r"attention_forward$")
_ADDS_TO_STREAM = re.compile(r"dropout_add")
_MASKS = re.compile(r"^_?(create|build|make|prepare|update|get|expand|invert)_.*(mask|alibi)")


def function_part(name: str) -> Part | None:
    """Return what a function that models call by this name is, or None."""
    if _APPLIES_ROPE.search(name):
        return Part(Place.LEAF, (roles.ROPE,))
    if _REPEATS_HEADS.search(name):
        return Part(Place.LEAF, (roles.KV_CACHE,))
    if _ATTENDS.search(name):
        return between(Place.ATTENTION_FUNCTION)
    if _ADDS_TO_STREAM.search(name):
        return Part(Place.LEAF, (roles.RESIDUAL,))
    return Part(Place.LEAF, (roles.MASK,)) if _MASKS.search(name) else None


_PRODUCTS = frozenset({"matmul", "__matmul__", "__rmatmul__", "bmm", "baddbmm", "einsum"})
_GROUPED = frozenset({"linear", "mm", "addmm", "grouped_mm", "_grouped_mm"})
_SUMS = frozenset({"add", "__add__", "__radd__", "__iadd__", "add_"})
_ACTIVATIONS = frozenset({"silu", "gelu", "relu", "sigmoid", "tanh"})
_ATTENTION_CALLS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_PRODUCTS, (roles.ATTENTION,)),
    # One kernel, or scores, mask and softmax one by one.
    "scaled_dot_product_attention": (roles.ATTENTION, roles.SOFTMAX, roles.MASK),
    "softmax": (roles.SOFTMAX,),
}
_CALLS: dict[Place, dict[str, tuple[str, ...]]] = {
    Place.ATTENTION: _ATTENTION_CALLS,
    Place.ATTENTION_FUNCTION: _ATTENTION_CALLS,
    # Some MLPs are given the stream and add to it themselves.
    Place.MLP: dict.fromkeys(_SUMS, (roles.ACTIVATION, roles.RESIDUAL)),
    Place.EXPERTS: {
        **dict.fromkeys(_PRODUCTS | _GROUPED, (roles.EXPERTS,)),
        **dict.fromkeys(_ACTIVATIONS, (roles.ACTIVATION, roles.EXPERTS)),
    },
}


def call_part(name: str, inside: Place) -> Part | None:
    """Return what a call of torch in a place is, where that is more than the place itself says."""
    accepted = _CALLS.get(inside, {}).get(name)
    return None if accepted is None else Part(Place.LEAF, accepted)
