"""Split a model over ranks as frameworks do: heads, inner widths and vocabulary; norms on each.

Keys and values of fewer heads than ranks are on several of them; the latent cache is on all.
"""

import msgspec

from whichwall.schemas.errors import UsageError
from whichwall.schemas.model import Model
from whichwall.schemas.prediction import Communication

# Each layer adds up partial sums twice, after attention and after the MLP; the split token
# table adds up once more.
REDUCES_PER_LAYER, REDUCES_OF_EMBEDDING = 2, 1


def share_of_rank(model: Model, ranks: int) -> Model:
    """Return the model that one of `ranks` equal ranks holds and computes.

    Raises:
        UsageError: heads or an inner width do not divide evenly.
    """
    if ranks == 1:
        return model
    return msgspec.structs.replace(
        model,
        heads=_divided(model, "attention heads", model.heads, ranks),
        kv_heads=_kv_heads(model, ranks),
        intermediate=model.intermediate
        if model.sparse_layers == model.layers
        else _divided(model, "the MLP's width", model.intermediate, ranks),
        expert_intermediate=None
        if model.expert_intermediate is None
        else _divided(model, "an expert's width", model.expert_intermediate, ranks),
        shared_intermediate=None
        if model.shared_intermediate is None
        else _divided(model, "the shared experts' width", model.shared_intermediate, ranks),
        vocab=-(-model.vocab // ranks),
    )


def communication(
    model: Model,
    ranks: int,
    rows: int,
    logits_tokens: int,
    number_bytes: int,
    link_gbps: float | None,
) -> Communication | None:
    """Return what ranks send in a pass over `rows` tokens; None for a single rank.

    `model` is the whole one; `link_gbps` is what a rank sends at, in each direction.
    """
    if ranks == 1:
        return None
    reduces = REDUCES_PER_LAYER * model.layers + REDUCES_OF_EMBEDDING
    each = rows * model.hidden * number_bytes
    gathered = logits_tokens * model.vocab * number_bytes
    sent = (2 * reduces * each + gathered) * (ranks - 1) // ranks
    return Communication(
        all_reduces=reduces,
        all_reduce_bytes=each,
        gathered_bytes=gathered,
        sent_bytes=sent,
        time_ns=None if link_gbps is None else round(sent / link_gbps),
    )


def _kv_heads(model: Model, ranks: int) -> int:
    if model.kv_heads < ranks and ranks % model.kv_heads == 0:
        return 1
    return _divided(model, "key-value heads", model.kv_heads, ranks)


def _divided(model: Model, what: str, size: int, ranks: int) -> int:
    if size % ranks:
        raise UsageError(
            f"--tensor-parallel {ranks}: {what} of {model.name} ({size}) cannot be split into "
            f"{ranks} equal parts; expected a divisor"
        )
    return size // ranks
