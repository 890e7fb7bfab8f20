"""Keep a server under load: so many lanes, each with one request on its way at all times.

A lane sends its next request when the one before it has ended. How many are on their way is then
what was asked for, whatever the server does, from the moment the last lane has begun until the
first has ended.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from whichwall.collect.endpoint.answer import Answer
from whichwall.schemas.completions import TIMED_OUT

# A server that refuses is given a moment, not the next request at once.
PAUSE_S = 0.2
# So many failures in a row end a lane: the next requests would hardly fare better.
MOST_IN_A_ROW = 3


@dataclass(frozen=True)
class Span:
    """How long each lane goes on: for a time, and for a least number of requests."""

    seconds: float
    least: int


@dataclass(frozen=True)
class Sent:
    """One request that a lane sent."""

    lane: int
    answer: Answer


async def keep_busy(ask: Callable[[], Awaitable[Answer]], lanes: int, span: Span) -> list[Sent]:
    """Return every request that the lanes sent, in order of their start."""
    begin = time.monotonic()
    sent: list[Sent] = []

    async def run(lane: int) -> None:
        failed = asked = 0
        while asked < span.least or time.monotonic() - begin < span.seconds:
            answer = await ask()
            sent.append(Sent(lane, answer))
            asked += 1
            failed = 0 if answer.is_done else failed + 1
            if answer.outcome == TIMED_OUT or failed == MOST_IN_A_ROW:
                return
            if failed:
                await asyncio.sleep(PAUSE_S)

    async with asyncio.TaskGroup() as group:
        for lane in range(lanes):
            group.create_task(run(lane))
    return sorted(sent, key=lambda one: one.answer.start_ns)
