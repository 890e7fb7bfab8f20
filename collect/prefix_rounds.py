"""Rounds of prompts of which some share their beginning: what is asked, in which order, how often.

In a round a prefix that no other had comes first once and then several times, with prompts of their
own in between, so that whatever drifts meets both alike.
"""

from collections.abc import Iterator

from whichwall.schemas.points import FIRST, LATER, UNIQUE

# The end of each prompt that shares its beginning: short, and its own.
SUFFIX_TOKENS = 16
# Of each round: as many later prompts, and as many of their own.
FOLLOWING = 4
# The kinds of prompt, in the order of their points.
KINDS = (UNIQUE, FIRST, LATER)


def round_of(number: int) -> Iterator[str]:
    """Yield what is asked in a round: odd ones begin with a unique prompt, even ones end with one.

    So the first prompt with a prefix is no more often at the beginning than in the middle.
    """
    between = [LATER, UNIQUE] * FOLLOWING
    yield from [UNIQUE, FIRST, *between[:-1]] if number % 2 else [FIRST, *between]
