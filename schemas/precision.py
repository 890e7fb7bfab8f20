"""Numeric types in which weights and caches are kept: their width, and what computes with them.

A quantized type is that of the matrices inside layers only: engines keep embeddings, norms,
biases, routers and the head in 16 bits.
"""

import difflib
from dataclasses import dataclass

from whichwall.schemas import roles
from whichwall.schemas.errors import UsageError

FLOAT8 = "float8_e4m3fn"


@dataclass(frozen=True)
class Precision:
    """One type, as torch names it where torch has it."""

    name: str
    bits: int
    quantized: bool = False
    computes: bool = True  # its own products are fast; else weights are widened to 16 bits first


PRECISIONS = (
    Precision("bfloat16", 16),
    Precision("float16", 16),
    Precision("float32", 32),
    Precision(FLOAT8, 8, quantized=True),
    Precision("int8", 8, quantized=True, computes=False),
    Precision("int4", 4, quantized=True, computes=False),
    Precision("float4", 4, quantized=True, computes=False),
)
_BY_NAME = {one.name: one for one in PRECISIONS}
_ALIASES = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "half": "float16",
    "fp32": "float32",
    "float": "float32",
    "fp8": FLOAT8,
    "float8": FLOAT8,
    "float8_e5m2": FLOAT8,
    "fp4": "float4",
    "nvfp4": "float4",
    "mxfp4": "float4",
}

# Whose matrices a quantized type is of.
QUANTIZED_ROLES = (
    roles.QKV_PROJ, roles.O_PROJ, roles.GATE_UP_PROJ, roles.DOWN_PROJ, roles.EXPERTS,
)  # fmt: skip


def precision(name: str, option: str = "--dtype") -> Precision:
    """Return a type by its name or a usual short one.

    Raises:
        UsageError: no such type; the message names the option and close ones.
    """
    plain = name.lower().removeprefix("torch.")
    found = _BY_NAME.get(_ALIASES.get(plain, plain))
    if found is None:
        known = [*_BY_NAME, *_ALIASES]
        close = difflib.get_close_matches(plain, known, n=3)
        hint = f"did you mean {', '.join(close)}?" if close else f"known: {', '.join(known)}"
        raise UsageError(f"{option} {name}: no type known here; {hint}")
    return found
