"""What part of the model each GPU activity works for; written by analyze."""

from whichwall.schemas.table import FLOAT64, INT32, INT64, TEXT, Column, Table

EMBEDDING, NORM, QKV_PROJ, ROPE, KV_CACHE = "embedding", "norm", "qkv_proj", "rope", "kv_cache"
ATTENTION, SOFTMAX, MASK, O_PROJ = "attention", "softmax", "mask", "o_proj"
GATE_UP_PROJ, ACTIVATION, DOWN_PROJ, RESIDUAL = (
    "gate_up_proj", "activation", "down_proj", "residual",
)  # fmt: skip
ROUTER, EXPERTS, LM_HEAD, SAMPLING = "router", "experts", "lm_head", "sampling"
COMMUNICATION, MEMORY, OTHER = "communication", "memory", "other"

# In the order in which a token meets them; every legend and table uses this order.
ROLES = (
    EMBEDDING, NORM, QKV_PROJ, ROPE, KV_CACHE, ATTENTION, SOFTMAX, MASK, O_PROJ, GATE_UP_PROJ,
    ACTIVATION, DOWN_PROJ, RESIDUAL, ROUTER, EXPERTS, LM_HEAD, SAMPLING, COMMUNICATION, MEMORY,
    OTHER,
)  # fmt: skip

BY_SHAPE, BY_ORDER, BY_REFERENCE, BY_NAME, BY_NOTHING = (
    "shape", "order", "reference", "name", "none",
)  # fmt: skip


class Roles(Table):
    """A row per valid GPU activity with the part of the model it works for."""

    NAME = "roles"

    rank = Column(INT32, "Rank whose trace holds the activity.", required=True)
    device = Column(INT32, "Device ordinal within the process.")
    stream = Column(INT64, "Stream the activity ran on.")
    start_ns = Column(INT64, "Start, Unix epoch.", "ns", required=True)
    dur_ns = Column(INT64, "Duration.", "ns", required=True)
    correlation = Column(INT64, "Id shared with the API call that launched it.")
    name = Column(TEXT, "Name as recorded.", required=True)
    role = Column(TEXT, "Part of the model; `other` is an honest answer.", required=True)
    fused = Column(TEXT, "Further roles done by the same kernel, comma-separated; null if none.")
    layer = Column(INT32, "Layer index from 0; null outside layers.")
    method = Column(TEXT, "How it was told: shape, order, reference, name, none.", required=True)
    confidence = Column(FLOAT64, "From 0 (a guess) to 1 (no other role fits).", required=True)
