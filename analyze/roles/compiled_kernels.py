"""Read kernels that a compiler generated: what they fuse, by their names and their arguments.

A generated kernel is named after the operators it fuses, and after some that feed it or that it
feeds; a pointwise or reducing one does no matrix work, whatever its name says. The last tensor
among its arguments is what it writes, so that tensor is read against the rules of all its words,
and of several roles the one that comes first in `PRECEDENCE` is its own.
"""

import re
from typing import NamedTuple

from whichwall.analyze.roles.dims import Dims
from whichwall.analyze.roles.kernel_words import WRITE_BACK
from whichwall.analyze.roles.operators import Operator, Shape
from whichwall.schemas import roles

_NAME = re.compile(r"^triton_(?P<form>[a-z]+)_fused_(?P<words>\w*?)_?\d*$")
POINTWISE, REDUCING = frozenset({"poi", "for"}), frozenset({"per", "red"})

# Words that give a role away, in the order in which one kernel's several roles are ranked.
PRECEDENCE: tuple[tuple[str, frozenset[str]], ...] = (
    (roles.SAMPLING, frozenset({"argmax"})),
    (roles.KV_CACHE, frozenset({"index_copy", "index_put", WRITE_BACK})),
    (roles.ROPE, frozenset({"cos", "sin", "neg"})),
    (roles.NORM, frozenset({"rsqrt", "mean", "rms_norm", "native_layer_norm", "var_mean"})),
    (roles.ACTIVATION, frozenset({"silu", "gelu", "relu", "sigmoid"})),
    (roles.SOFTMAX, frozenset({"softmax"})),
    (roles.MASK, frozenset({"where", "le", "triu", "tril"})),
    (roles.EMBEDDING, frozenset({"embedding"})),
)

_SIGNS = frozenset().union(*(signs for _, signs in PRECEDENCE))

_PLAIN = frozenset({"mul", "add", "sub", "pow", "div", "cat", "copy", "arange", "index", "clone"})
_WORD = re.compile(
    r"(?<![a-z])(" + "|".join(sorted(_PLAIN | _SIGNS, key=len, reverse=True)) + r")(?![a-z])"
)
_CAST = re.compile("_to_copy_?")  # its underscore is no part of the next word
# What a kernel is taken to do whose name lists nothing.
_POINTWISE_WORDS, _REDUCING_WORDS = frozenset({"mul", "add", "copy"}), frozenset({"mean"})


class Compiled(NamedTuple):
    """A generated kernel, as far as its name and arguments tell."""

    words: frozenset[str]
    written: Operator  # the operator's last tensor alone; without shapes if none were recorded
    roles: tuple[str, ...]  # that its words give away, its own first
    only_writes_back: bool  # no word but that gives a role away; what is kept may be anything


def read_compiled(name: str, op: Operator | None, dims: Dims) -> Compiled | None:
    """Return what a generated kernel fuses, or None if the name is of no such kernel."""
    found = _NAME.match(name)
    if found is None or found["form"] not in POINTWISE | REDUCING:
        return None
    words = frozenset(_WORD.findall(_CAST.sub("_copy ", found["words"])))
    known = tuple(role for role, signs in PRECEDENCE if words & signs)
    if "add" in words and op and _sums_streams(op, dims):
        known = (*known, roles.RESIDUAL)
    shapes = op.shapes[-1:] if op else ()
    types = op.types[-1:] if op else ()
    silent = _REDUCING_WORDS if found["form"] in REDUCING else _POINTWISE_WORDS
    only_writes_back = words & _SIGNS == {WRITE_BACK}
    return Compiled(words or silent, Operator("", shapes, types), known, only_writes_back)


def _sums_streams(op: Operator, dims: Dims) -> bool:
    """Tell whether a kernel reads two tensors of the residual stream beside what it writes."""
    streams: list[Shape] = [
        s for s in op.shapes if len(s) > 1 and s[-1] == dims.hidden and s[0] != dims.vocab
    ]
    return len(streams) > 2 or len(set(streams)) > 1
