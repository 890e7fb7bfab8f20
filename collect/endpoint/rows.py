"""Rows of what requests to a server brought: one of completions, and one of tokens per chunk."""

from collections.abc import Sequence
from dataclasses import dataclass

from whichwall.collect.endpoint.answer import Answer
from whichwall.schemas.completions import Completions
from whichwall.schemas.tokens import Tokens

Row = dict[str, object]


@dataclass(frozen=True)
class Asked:
    """What a request was: where it belongs, and what was asked for."""

    point: int
    visit: int | None
    stage: str
    prompt_tokens: int
    prefix_tokens: int = 0


class RowLog:
    """Keeps the rows of requests, numbered within their points."""

    def __init__(self, numbers: dict[int, int]) -> None:
        """Begin without any; `numbers` has the next one of each point, and is kept up to date."""
        self.completions: list[Row] = []
        self.tokens: list[Row] = []
        self._numbers = numbers

    def add(self, asked: Asked, answer: Answer, lane: int = 0) -> None:
        """Add a request with its chunks."""
        index = self._numbers.get(asked.point, 0)
        self._numbers[asked.point] = index + 1
        self.completions.append(
            {
                Completions.point: asked.point,
                Completions.rank: 0,
                Completions.visit: asked.visit,
                Completions.index: index,
                Completions.lane: lane,
                Completions.stage: asked.stage,
                Completions.start_ns: answer.start_ns,
                Completions.ttft_ns: answer.ttft_ns,
                Completions.total_ns: answer.total_ns,
                Completions.prompt_tokens: asked.prompt_tokens,
                Completions.prompt_tokens_served: answer.counts.prompt,
                Completions.prefix_tokens: asked.prefix_tokens,
                Completions.cached_tokens: answer.counts.cached,
                Completions.new_tokens: answer.counts.new,
                Completions.outcome: answer.outcome,
                Completions.status: answer.status,
                Completions.finish: answer.finish,
                Completions.reason: answer.reason,
            }
        )
        self.tokens += [
            {
                Tokens.point: asked.point,
                Tokens.completion: index,
                Tokens.index: place,
                Tokens.at_ns: at_ns,
                Tokens.tokens: tokens,
            }
            for place, (at_ns, tokens) in enumerate(answer.arrivals)
        ]


def numbers_after(completions: Sequence[Row]) -> dict[int, int]:
    """Return the next number of each point after requests that were sent before."""
    numbers: dict[int, int] = {}
    for row in completions:
        point, index = row[Completions.point], row[Completions.index]
        assert isinstance(point, int)
        assert isinstance(index, int)
        numbers[point] = max(numbers.get(point, 0), index + 1)
    return numbers
