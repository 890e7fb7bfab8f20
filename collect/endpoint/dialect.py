"""Find out how a server wants to be asked: which fields it takes, and prompts as ids or as text.

Each refusal is met once, before anything is measured, and remembered.
"""

from dataclasses import dataclass, field

from whichwall.collect.endpoint.answer import Answer
from whichwall.collect.endpoint.client import COMPLETIONS, TOKENIZE, Client
from whichwall.collect.endpoint.prompts import ID_RANGES, Prompt, Prompter
from whichwall.schemas.completions import FAILED, GARBLED, REFUSED, UNREACHABLE
from whichwall.schemas.errors import CollectError, UsageError

# What holds an answer to its length and has tokens counted; no server is bound to know them.
IGNORE_EOS, MIN_TOKENS, RUNNING_COUNT, STREAM_OPTIONS = (
    "ignore_eos", "min_tokens", "continuous_usage_stats", "stream_options",
)  # fmt: skip
OPTIONAL = (IGNORE_EOS, MIN_TOKENS, RUNNING_COUNT, STREAM_OPTIONS)
# Long enough for one token more, that a tokenizer put before it, to be told from another prompt.
PROBE_TOKENS, PROBE_NEW_TOKENS = 16, 2
ADDED_TOKENS = 2
KEY_STATUSES, NOT_FOUND = (401, 403), (404, 405)
KEY = "OPENAI_API_KEY"


@dataclass
class Dialect:
    """How one server is asked."""

    client: Client
    model: str
    prompter: Prompter
    fields: list[str] = field(default_factory=lambda: list(OPTIONAL))

    @property
    def refused(self) -> list[str]:
        """Return the fields that the server would not take."""
        return [name for name in OPTIONAL if name not in self.fields]

    async def ask(self, prompt: Prompt, new_tokens: int) -> Answer:
        """Send one request for so many tokens."""
        return await self.client.complete(self.body(prompt, new_tokens), new_tokens)

    def body(self, prompt: Prompt, new_tokens: int) -> dict[str, object]:
        """Return what is sent."""
        body: dict[str, object] = {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": new_tokens,
            "temperature": 0,
            "stream": True,
        }
        if IGNORE_EOS in self.fields:
            body[IGNORE_EOS] = True
        if MIN_TOKENS in self.fields:
            body[MIN_TOKENS] = new_tokens
        if STREAM_OPTIONS in self.fields:
            running = {RUNNING_COUNT: True} if RUNNING_COUNT in self.fields else {}
            body[STREAM_OPTIONS] = {"include_usage": True, **running}
        return body

    async def learn(self) -> None:
        """Ask until the server answers, each time with less of what it refuses.

        Raises:
            CollectError: it answers nothing that can be measured.
            UsageError: it wants a key.
        """
        while True:
            answer = await self.ask(self.prompter.prompt(PROBE_TOKENS), PROBE_NEW_TOKENS)
            # A stream that goes wrong after a token was asked for as it should be.
            if answer.arrivals and self._took_ids(answer):
                return
            if not answer.is_done:
                self._give_up_on(answer)
            if not (answer.outcome in (FAILED, GARBLED) and self._drop_named(answer)):
                self._try_other(answer)

    def _took_ids(self, answer: Answer) -> bool:
        """Tell whether ids were read as ids, by the number of tokens that the server counted."""
        counted = answer.counts.prompt
        if self.prompter.ids is None or counted is None:
            return True
        return PROBE_TOKENS <= counted <= PROBE_TOKENS + ADDED_TOKENS

    def _give_up_on(self, answer: Answer) -> None:
        """Refuse to go on where asking otherwise would not help."""
        where, said = self.client.address.shown, answer.reason
        if answer.status in KEY_STATUSES:
            raise UsageError(f"{where}: wants another key ({said}); set {KEY}")
        if answer.status in NOT_FOUND:
            raise CollectError(
                f"{where}: offers no completion of {self.model} at {COMPLETIONS} ({said}); give "
                "the address of a server that does, or its name for the model with --model"
            )
        if answer.outcome == UNREACHABLE:
            raise CollectError(f"{where}: no server answers ({said}); start it, or give its --url")
        if answer.outcome == REFUSED:
            raise CollectError(
                f"{where}: takes no request now ({said}); collect again when it has started"
            )
        if answer.outcome not in (FAILED, GARBLED):
            raise CollectError(f"{where}: did not answer the first request ({said})")

    def _drop_named(self, answer: Answer) -> bool:
        """Leave out the fields that a refusal names; tell whether there was any."""
        named = [name for name in self.fields if name in (answer.reason or "")]
        if RUNNING_COUNT in named:  # a part of the other, which the server may well take without it
            named = [name for name in named if name != STREAM_OPTIONS]
        self.fields = [name for name in self.fields if name not in named]
        return bool(named)

    def _try_other(self, answer: Answer) -> None:
        """Ask in another way: with other ids, as text, and at last without any special field."""
        ids = self.prompter.ids
        if ids is not None:
            place = ID_RANGES.index(ids) + 1
            self.prompter.ids = ID_RANGES[place] if place < len(ID_RANGES) else None
        elif self.fields and not answer.is_done:
            self.fields = []
            self.prompter.ids = ID_RANGES[0]
        else:
            raise CollectError(
                f"{self.client.address.shown}: refuses every form of a request ({answer.reason})"
            )

    async def count(self, text: str) -> int | None:
        """Return how many tokens a text has, by the server's tokenizer, else by its usage."""
        for body in ({"model": self.model, "prompt": text}, {"content": text}):
            reply = await self.client.post(TOKENIZE, body)
            if reply.is_ok and isinstance(reply.body, dict):
                tokens = reply.body.get("tokens")
                counted = reply.body.get("count", len(tokens) if isinstance(tokens, list) else None)
                if isinstance(counted, int) and counted > 0:
                    return counted
        answer = await self.ask(text, 1)
        return answer.counts.prompt if answer.is_done else None
