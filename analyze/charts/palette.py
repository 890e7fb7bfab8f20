"""One colour per role, cause, stage and wall, the same in every chart, table and legend.

Roles come in families: attention in blues, the MLP in oranges, experts in purples, the ends of
the model in greens, norm and residual in yellows. Inside a family and along `ROLES`, neighbours
differ in lightness, which every kind of colour vision sees; a test measures that.
"""

from whichwall.analyze.walls import ARITHMETIC, BYTES, KERNELS, LAUNCHES
from whichwall.schemas import gaps, passes, roles

ROLE_COLOURS: dict[str, str] = {
    roles.EMBEDDING: "#768b7f",
    roles.NORM: "#795c00",
    roles.QKV_PROJ: "#306fb6",
    roles.ROPE: "#80e1ff",
    roles.KV_CACHE: "#00b9b1",
    roles.ATTENTION: "#015085",
    roles.SOFTMAX: "#4395c9",
    roles.MASK: "#63686d",
    roles.O_PROJ: "#8879ff",
    roles.GATE_UP_PROJ: "#fb8100",
    roles.ACTIVATION: "#ffca75",
    roles.DOWN_PROJ: "#b07156",
    roles.RESIDUAL: "#cbc32b",
    roles.ROUTER: "#6b3667",
    roles.EXPERTS: "#e495ff",
    roles.LM_HEAD: "#a2e9a4",
    roles.SAMPLING: "#7bb04d",
    roles.COMMUNICATION: "#940049",
    roles.MEMORY: "#b59a89",
    roles.OTHER: "#cecbcc",
}

CAUSE_COLOURS: dict[str, str] = {
    gaps.PROFILER: "#8d8d8d",
    gaps.UNKNOWN: "#c9c4bb",
    gaps.GRAPH: "#7a5bb5",
    gaps.SYNC: "#e9b93c",
    gaps.LAUNCH: "#c9472f",
    gaps.DEVICE: "#4b9bd8",
}

STAGE_COLOURS: dict[str, str] = {
    passes.WARMUP: "#d9a441",
    passes.CLEAN: "#2f8f5b",
    passes.PROFILED: "#9a6cc2",
    passes.AFTER: "#a9cfee",
}

WALL_COLOURS: dict[str, str] = {
    LAUNCHES: CAUSE_COLOURS[gaps.LAUNCH],
    KERNELS: "#e0a63a",
    BYTES: "#2f6fb5",
    ARITHMETIC: "#7a5bb5",
}

PHASE_COLOURS: dict[str, str] = {
    passes.DECODE: ROLE_COLOURS[roles.QKV_PROJ],
    passes.PREFILL: ROLE_COLOURS[roles.GATE_UP_PROJ],
}

# Lines and groups of bars that stand for no role, cause or stage, in this order.
SERIES_COLOURS = ("#306fb6", "#fb8100", "#6b3667")

# From little to much, in one hue: lightness falls all the way.
HEAT = ("#e3ecf6", "#9dc3e6", "#306fb6", "#0b2b52")

# Text on a mark is dark where at least this share of white's light comes back (about where dark
# and white text have the same contrast).
BRIGHT = 0.19


def is_bright(colour: str) -> bool:
    """Tell whether dark text reads better than white on a colour (relative luminance, WCAG)."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue >= BRIGHT


# Stages of a request; where nothing stops in between, the model's work is one.
REQUEST_COLOURS: dict[str, str] = {
    "tokenize": "#63686d",
    "prefill": PHASE_COLOURS[passes.PREFILL],
    "step": PHASE_COLOURS[passes.DECODE],
    "model, not divided": "#9dc3e6",
    "detokenize": "#6b3667",
}

# The host's side of a timeline, and what is neither role nor cause.
HOST, CALL = "#9aa3ad", "#5f6b78"
WARNING = "#c9472f"
