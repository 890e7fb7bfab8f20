"""How far the mean of a few values can lie from the truth: Student's t at 95 %."""

# By the number of values less one. Resampling a few values would not do: drawn from three,
# intervals are hardly wider than their range, which misses the truth one time in four.
T_95 = (
    12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
    2.12, 2.11, 2.10, 2.09, 2.09,
)  # fmt: skip
T_95_OF_MANY = 2.09


def t_95(freedom: int) -> float:
    """Return how many standard errors a 95 % interval reaches to each side.

    `freedom` is the number of values less one, 1 at least.
    """
    return T_95[freedom - 1] if freedom <= len(T_95) else T_95_OF_MANY
