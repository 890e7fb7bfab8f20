"""Visit the points of a server: warm up, keep it under load, and say how that ended."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from whichwall.collect.endpoint.answer import Answer
from whichwall.collect.endpoint.dialect import Dialect
from whichwall.collect.endpoint.load import Sent, Span, keep_busy
from whichwall.collect.endpoint.plan import ServedPoint, VisitPlan
from whichwall.collect.endpoint.rows import Asked, RowLog
from whichwall.collect.journal import Visit
from whichwall.collect.prefix_rounds import round_of
from whichwall.schemas.completions import DROPPED, TIMED_OUT, UNREACHABLE, Completions
from whichwall.schemas.passes import CLEAN, WARMUP
from whichwall.schemas.points import DONE, LATER, REFUSED, UNIQUE

ONCE = Span(0.0, 1)


@dataclass
class Visitor:
    """Visits the points of one server."""

    dialect: Dialect
    plan: VisitPlan
    numbers: dict[int, int]  # of the next request of each point
    busy: dict[int, float] = field(default_factory=dict)  # of this process's CPU, by point

    async def visit(self, point: ServedPoint, number: int) -> Visit:
        """Measure a point once more, or find out that it cannot be."""
        log = RowLog(self.numbers)
        warm_tokens = min(point.new_tokens, self.plan.warm_tokens)
        warm = await self._load(point, warm_tokens, ONCE)
        self._keep(log, point, number, WARMUP, warm)
        sent = warm
        if any(one.answer.is_done for one in warm):
            cpu_ns, begin_ns = time.process_time_ns(), time.perf_counter_ns()
            sent = await self._load(point, point.new_tokens, self.plan.clean)
            self._note_cpu(
                point, time.process_time_ns() - cpu_ns, time.perf_counter_ns() - begin_ns
            )
            self._keep(log, point, number, CLEAN, sent)
        return _ended(point, number, log, [one.answer for one in sent])

    async def _load(self, point: ServedPoint, new_tokens: int, span: Span) -> list[Sent]:
        async def ask() -> Answer:
            prompt = self.dialect.prompter.prompt(point.prompt_tokens)
            return await self.dialect.ask(prompt, new_tokens)

        return await keep_busy(ask, point.lanes, span)

    def _keep(
        self, log: RowLog, point: ServedPoint, number: int, stage: str, sent: Sequence[Sent]
    ) -> None:
        asked = Asked(point.number, number, stage, point.prompt_tokens)
        for one in sent:
            log.add(asked, one.answer, one.lane)

    def _note_cpu(self, point: ServedPoint, cpu_ns: int, wall_ns: int) -> None:
        share = cpu_ns / wall_ns if wall_ns else 0.0
        self.busy[point.number] = max(share, self.busy.get(point.number, 0.0))

    async def visit_prefix(self, points: Sequence[ServedPoint], number: int) -> list[Visit]:
        """Ask one round of prompts, one after another: a visit of each of the three points."""
        by_label = {point.label or "": point for point in points}
        logs = {label: RowLog(self.numbers) for label in by_label}
        answers: dict[str, list[Answer]] = {label: [] for label in by_label}
        prompter, shared = self.dialect.prompter, by_label[LATER]
        # As many words or ids as the tokens of the prefix: its prompts then end within the suffix.
        prefix = prompter.prompt(shared.prefix_tokens)
        if number == 0:
            warm = await self.dialect.ask(prompter.prompt(shared.prompt_tokens), 1)
            unique = by_label[UNIQUE]
            logs[UNIQUE].add(Asked(unique.number, 0, WARMUP, unique.prompt_tokens), warm)
        for label in round_of(number):
            point = by_label[label]
            own = prompter.prompt(point.prompt_tokens, prefix if point.prefix_tokens else None)
            answer = await self.dialect.ask(own, point.new_tokens)
            answers[label].append(answer)
            asked = Asked(point.number, number, CLEAN, point.prompt_tokens, point.prefix_tokens)
            logs[label].add(asked, answer)
            if answer.outcome == TIMED_OUT:
                break  # the rest of the round would wait as long
        return [
            _ended(point, number, logs[label], answers[label]) for label, point in by_label.items()
        ]


def in_turn(points: Sequence[ServedPoint], visits: int) -> Iterator[tuple[ServedPoint, int]]:
    """Yield each point of each round with the round's number: odd rounds go backwards."""
    tried = [point for point in points if point.refused is None]
    for number in range(visits):
        for point in reversed(tried) if number % 2 else tried:
            yield point, number


def _ended(point: ServedPoint, number: int, log: RowLog, answers: Sequence[Answer]) -> Visit:
    """Return a visit: done if any request was, else refused with what most of them ended in."""
    is_done = any(answer.is_done for answer in answers)
    return Visit(
        point.number,
        number,
        DONE if is_done else REFUSED,
        None if is_done else why_not(answers),
        completions=log.completions,
        tokens=log.tokens,
    )


def why_not(answers: Sequence[Answer]) -> str:
    """Return how requests failed, by kind, each with how often and a reason."""
    if not answers:
        return "no request was sent"
    failed = [answer for answer in answers if not answer.is_done]
    kinds = Counter(answer.outcome for answer in failed)
    reasons = {answer.outcome: answer.reason for answer in reversed(failed)}
    return "; ".join(
        f"{number} {'request' if number == 1 else 'requests'} {kind.replace('_', ' ')} "
        f"({reasons[kind]})"
        for kind, number in kinds.most_common()
    )


def has_failed(visit: Visit) -> bool:
    """Tell whether any request of a visit was lost on the way, or not answered at all."""
    lost = (UNREACHABLE, DROPPED, TIMED_OUT)
    return any(row[Completions.outcome] in lost for row in visit.completions)
