"""Tell apart the kernels that a compiler generated for one attention's operands, by their order.

Where attention is a library's kernel, each operand that must be made ready has a kernel, and all
are named after everything that feeds the attention: their names differ in their numbers alone.
They run in the order of the operands: queries, keys, values, mask. One that runs twice in a row
makes ready keys and values alike.
"""

import polars as pl

from whichwall.schemas import roles

# Named after the fused attention that they feed; the number at the end is the kernel's own.
FEEDS_ATTENTION = r"^(triton_poi_fused_\w*scaled_dot_product_\w*?)_?\d*$"

# What must be among the words for the operand to have the role.
ROTATES = r"_(cat|neg|cos|sin)(_|$)"
REPEATS_HEADS = r"_clone(_|$)"  # keys and values are laid out anew for groups of queries
CHOOSES = r"_(where|masked_fill|le|tril|triu)(_|$)"

_FED, _RUN, _ROLE = "fed", "run", "role"


def operand_roles(names: pl.Series) -> pl.Series:
    """Return for each kernel, in the order in which they ran, its role if its operand tells it.

    Null for kernels that feed no attention, or alone: of one operand nothing is known.
    """
    name, fed = pl.col(names.name), pl.col(_FED)
    several = pl.len() > 1
    is_last = pl.int_range(pl.len()) == pl.len() - 1
    queries = name == name.first()  # keys, too, where they are rotated alike
    mask = is_last & (name != name.shift(1))
    role = (
        pl.when(queries & several & fed.str.contains(ROTATES)).then(pl.lit(roles.ROPE))
        .when(~queries & mask & fed.str.contains(CHOOSES)).then(pl.lit(roles.MASK))
        .when(~queries & fed.str.contains(REPEATS_HEADS)).then(pl.lit(roles.KV_CACHE))
    )  # fmt: skip
    return (
        names.to_frame()
        .with_columns(name.str.extract(FEEDS_ATTENTION).alias(_FED))
        .with_columns(fed.rle_id().alias(_RUN))
        .select(role.over(_RUN).cast(pl.String).alias(_ROLE))
        .to_series()
    )
