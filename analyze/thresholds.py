"""Limits at which a number becomes a word, each with its reason; the only place they stand."""

# A wall is named where it takes at least half of the step (design: verdict).
MAJORITY = 0.5

# Without a clean timing every traced gap is cut to a third before launches may be blamed: the
# profiler widened gaps 2 to 3 times in the engine traces measured.
TRACED_GAP_DIVISOR = 3

# Idle per node of a CUDA graph where the device's own was not measured: median gap inside
# replays on an H200 (0.416 us), assumed elsewhere and said so.
ASSUMED_NODE_IDLE_NS = 420

# p90 over p10 of the clean steps above which a median is not to be trusted alone: one host gave
# 16 and 62 ms for the same step minutes apart.
UNSTABLE_RATIO = 1.5

# The profiler's own records are said aloud where they cover more of the recording than this.
PROFILER_OVERHEAD_SHARE = 0.01
