"""Limits on which verdicts turn, each with its reason."""

# A wall is named where it takes at least half of the step (design: verdict).
MAJORITY = 0.5

# No step is faster than its bytes and FLOPs allow. Measured limits are medians, so that a step may
# come in some percent below; shorter than this part of its floor, its timing or its size is wrong.
LEAST_OF_FLOOR = 0.8

# Without a clean timing every traced gap is cut to a third before launches may be blamed: the
# profiler widened gaps 2 to 3 times in the engine traces measured.
TRACED_GAP_DIVISOR = 3

# Kernels run a few percent longer in a trace; busy time beyond the clean step by more than this
# shows that trace and stopwatch saw different work.
BUSY_TOLERANCE = 0.05

# A clock moves in steps of under a percent; a card that holds itself back loses more.
CLOCK_FELL = 0.98

# Loops of a request that differ by less are said to cost the same: a step alone varies by as much.
LOOPS_ALIKE = 0.05

# A percentile that one value in a hundred exceeds is not seen in fewer values.
FEWEST_FOR_P99 = 100

# A prediction that comes this close to what was measured is said to be confirmed: steps of one
# model and engine differ by as much from visit to visit on a shared host.
CONFIRMED_WITHIN = 0.15

# Idle per node of a CUDA graph where the device's own was not measured: median gap inside
# replays on an H200 (0.416 us), assumed elsewhere and said so.
ASSUMED_NODE_IDLE_NS = 420
