"""Medians as plain numbers: null where there is nothing to take one of."""

import polars as pl


def median(values: pl.Series) -> float | None:
    """Return the median of the values that are not null."""
    found = values.median()
    return found if isinstance(found, float) else None


def median_ns(values: pl.Series) -> int | None:
    """Return the median of whole numbers, rounded to one."""
    found = median(values)
    return None if found is None else round(found)
