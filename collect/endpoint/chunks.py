"""What one event of a completion's stream says: tokens, an end, a count, or an error."""

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

from whichwall.collect.endpoint.events import shown
from whichwall.schemas.errors import InputError

END = b"[DONE]"
MOST_TOKENS = 1 << 31
LONGEST_REASON, DEEPEST_REASON = 200, 4
REASONS = ("message", "detail", "error", "reason")


@dataclass
class Counts:
    """What a server counts of a request; null: it has not said."""

    prompt: int | None = None
    cached: int | None = None
    new: int | None = None

    def update(self, other: "Counts") -> None:
        """Take over what another says."""
        self.prompt = self.prompt if other.prompt is None else other.prompt
        self.cached = self.cached if other.cached is None else other.cached
        self.new = self.new if other.new is None else other.new


@dataclass(frozen=True)
class Chunk:
    """One event."""

    has_choice: bool = False
    has_text: bool = False
    tokens: int | None = None  # by their ids, where these are sent
    finish: str | None = None
    counts: Counts = field(default_factory=Counts)
    error: str | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    token_ids: list[int] | None = None
    finish_reason: str | None = None


class _Message(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    timings: Any = None  # of llama.cpp
    error: Any = None
    object: Any = None
    message: Any = None


def read_chunk(data: bytes) -> Chunk:
    """Read the data of an event.

    Raises:
        InputError: it is none of a completion.
    """
    message = _decode(data)
    if message.error is not None or message.object == "error":
        return Chunk(error=said(message.error if message.error is not None else message.message))
    if message.choices is None and message.usage is None:
        raise InputError(f"an event of no completion: {shown(data)}")
    counts = counts_of(message.usage, message.timings)
    choices = message.choices or []
    ids = [len(choice.token_ids) for choice in choices if choice.token_ids is not None]
    return Chunk(
        has_choice=bool(choices),
        has_text=any(choice.text for choice in choices),
        tokens=sum(ids) if ids else None,
        finish=next((c.finish_reason for c in choices if c.finish_reason), None),
        counts=counts,
    )


def _decode(data: bytes) -> _Message:
    try:
        return msgspec.json.decode(data, type=_Message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    # A text may end in half of a letter, as an escape or as bytes: the strict reader refuses both.
    try:
        return msgspec.convert(json.loads(data.decode("utf-8", "replace")), type=_Message)
    except (ValueError, RecursionError) as error:
        raise InputError(f"an event that is no JSON of a completion: {shown(data)}") from error


def counts_of(usage: object, timings: object = None) -> Counts:
    """Return what a message counts, under the names that servers use; what is odd is unknown."""
    found = _of(usage)
    details = _of(found.get("prompt_tokens_details"))
    cached = _count(details.get("cached_tokens"))
    if cached is None:
        cached = _count(_of(timings).get("cache_n"))
    return Counts(
        prompt=_count(found.get("prompt_tokens")),
        cached=cached,
        new=_count(found.get("completion_tokens")),
    )


def _of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < MOST_TOKENS else None


def said(error: object) -> str:
    """Return in a line what a server gives as the error, whatever shape it has."""
    for _ in range(DEEPEST_REASON):
        if not isinstance(error, dict):
            break
        error = next((error[key] for key in REASONS if error.get(key)), "an error without a reason")
    try:
        text = error if isinstance(error, str) else json.dumps(error, default=str)
    except (RecursionError, ValueError):
        text = "an error that cannot be written down"
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"
