"""How properties are tried here: the same cases at each run, and no clock on any of them."""

from hypothesis import settings

PROPERTY = settings(deadline=None, derandomize=True)
SHORT_PROPERTY = settings(PROPERTY, max_examples=40)
