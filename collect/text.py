"""Text for a model's own tokenizer: a prompt of so many tokens, and answers back as text."""

import math
from typing import Any

import torch

from whichwall.collect.models import UNLOADABLE, Source

# Said over and over; any prose would do, since only its length counts.
PROSE = "A language model answers a question one token at a time. "


class Text:
    """A prompt as text, long enough for the number of tokens asked for."""

    def __init__(self, tokenizer: Any, batch: int, length: int) -> None:
        """Repeat the prose until it has as many tokens."""
        self._tokenizer = tokenizer
        self._batch, self._length = batch, length
        self._text = PROSE * math.ceil(length / len(tokenizer(PROSE).input_ids))
        while len(tokenizer(self._text).input_ids) < length:
            self._text += PROSE

    def encode(self) -> torch.Tensor:
        """Return token ids of shape (batch, length), every sequence the same."""
        ids = self._tokenizer([self._text] * self._batch, return_tensors="pt").input_ids
        cut: torch.Tensor = ids[:, : self._length]
        return cut

    def decode(self, ids: torch.Tensor) -> list[str]:
        """Return a text for each sequence of ids."""
        texts: list[str] = self._tokenizer.batch_decode(ids.tolist())
        return texts


def load_text(source: Source, batch: int, length: int, vocab: int) -> Text | None:
    """Return a prompt for the tokenizer that came with a model; None if none that fits it did."""
    from transformers import AutoTokenizer

    if source.pretrained is None:
        return None
    load: Any = AutoTokenizer.from_pretrained
    try:
        tokenizer = load(source.pretrained, trust_remote_code=False)
    except UNLOADABLE:
        return None
    # Without its files, the class that a config names is made all the same, and knows no word:
    # of any text it makes no token, or only those that begin one.
    once, twice = (tokenizer(PROSE * times).input_ids for times in (1, 2))
    # That of another model may have tokens which this one lacks.
    fits = len(twice) > len(once) and max(twice) < vocab
    return Text(tokenizer, batch, length) if fits else None
