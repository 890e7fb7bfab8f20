"""Limits at which a number becomes a word, each with its reason; the only place they stand."""

# A wall is named where it takes at least half of the step (design: verdict).
MAJORITY = 0.5

# Without a clean timing every traced gap is cut to a third before launches may be blamed: the
# profiler widened gaps 2 to 3 times in the engine traces measured.
TRACED_GAP_DIVISOR = 3

# Idle per node of a CUDA graph where the device's own was not measured: median gap inside
# replays on an H200 (0.416 us), assumed elsewhere and said so.
ASSUMED_NODE_IDLE_NS = 420
