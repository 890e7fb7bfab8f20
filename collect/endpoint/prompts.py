"""Prompts of a stated length that no cache knows: random token ids, or words where no ids go.

A server may have kept what it was asked before, so no two runs ask the same.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

# Each is one token of every large vocabulary when a space stands before it.
_NOUNS = (
    "time year people way day man thing woman life child world school state family student group "
    "country problem hand part place case week company system program question work government "
    "number night point home water room mother area money story fact month lot right study book "
    "eye job word business issue side kind head house service friend father power hour game line "
    "end member law car city community name president team minute idea body information back "
    "parent face others level office door health person art war history party result change "
    "morning reason research girl guy moment air teacher force education"
)
WORDS = tuple(_NOUNS.split())
# Ids that are ordinary tokens in nearly every vocabulary: below a thousand some have only special
# ones, and a server without a tokenizer may not survive an id beyond its vocabulary. The second is
# for vocabularies of bytes.
ID_RANGES = (range(1_000, 2_000), range(3, 250))
# A text is lengthened or shortened so often until it has the tokens that it should have.
FITS = 4

Prompt = list[int] | str
Counter = Callable[[str], Awaitable[int | None]]


@dataclass
class Prompter:
    """Makes prompts: of ids from a range, or of words where there is none."""

    seed: int
    ids: range | None = ID_RANGES[0]
    # Of texts, by the number of tokens wanted: how many words have so many, as far as is known.
    words: dict[int, int] = field(default_factory=dict)
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        """Begin where no other run does."""
        self._random = random.Random(self.seed)  # noqa: S311 - a prompt is no secret

    def prompt(self, tokens: int, prefix: Prompt | None = None) -> Prompt:
        """Return a prompt of so many tokens that begins with the prefix and ends like no other."""
        if self.ids is not None:
            known = [] if prefix is None else prefix
            assert isinstance(known, list)
            return known + self._random.choices(self.ids, k=tokens - len(known))
        known_words = [] if prefix is None else str(prefix).split()
        wanted = max(1, self.words.get(tokens, tokens) - len(known_words))
        return " ".join([*known_words, *self._random.choices(WORDS, k=wanted)])

    async def fit(self, tokens: int, count: Counter) -> int | None:
        """Find out how many words have so many tokens; return how many tokens they then have.

        Null where the server does not count.
        """
        best: tuple[int, int] | None = None
        words = tokens
        for _ in range(FITS):
            self.words[tokens] = words
            found = await count(str(self.prompt(tokens)))
            if not found:
                break
            if best is None or abs(found - tokens) < abs(best[1] - tokens):
                best = words, found
            if found == tokens:
                break
            words = max(1, round(words * tokens / found))
        self.words[tokens] = tokens if best is None else best[0]
        return None if best is None else best[1]
