"""Ask a server over HTTP: what it serves, and completions with the time at which each token came.

One event loop serves every request, so that a token's time is taken as soon as its bytes are read,
before anything is made of them.
"""

import asyncio
import time
from types import TracebackType
from typing import Any

import httpx2
import msgspec

from whichwall.collect.endpoint.address import Address
from whichwall.collect.endpoint.answer import Answer
from whichwall.collect.endpoint.chunks import said
from whichwall.collect.endpoint.events import EventStream, shown
from whichwall.schemas.completions import (
    DROPPED,
    FAILED,
    GARBLED,
    REFUSED,
    TIMED_OUT,
    UNREACHABLE,
)
from whichwall.schemas.errors import InputError

COMPLETIONS, MODELS, VERSION, TOKENIZE = "/v1/completions", "/v1/models", "/version", "/tokenize"
START_PROFILE, STOP_PROFILE = "/start_profile", "/stop_profile"
EVENTS = "text/event-stream"
OK, TOO_MANY_REQUESTS, UNAVAILABLE = 200, 429, 503
# Anything but a completion is answered at once by a server that lives.
ASK_S = 10.0
# Stopping a profiler waits until it has written its trace.
PROFILE_S = 600.0
# What may come after the last token: counts, and a word that this was all. Some servers send
# neither and keep the connection open. After that word only the end of the stream is left.
LINGER_S, LINGER_AT_END_S = 1.0, 0.1
# Servers close connections that were idle for 5 s (uvicorn's default); one that is about to be
# closed would lose a request.
IDLE_S = 4.0
LARGEST_ANSWER = 1 << 20  # bytes, of anything but a stream
# A token's text may come in pieces, its bytes at most; a stream of more has no end.
CHUNKS_A_TOKEN = 64
HIDDEN = "***"


class Reply(msgspec.Struct, frozen=True):
    """An answer that is no stream; no status where none came, with why."""

    status: int | None
    body: Any = None  # JSON, else text
    why: str | None = None

    @property
    def is_ok(self) -> bool:
        """Tell whether the server did what it was asked."""
        return self.status == OK

    @property
    def says(self) -> str:
        """Return in a line what went wrong."""
        if self.status is None:
            return self.why or "no answer"
        text = said(self.body) if self.body else ""
        return f"status {self.status}" + (f", {text}" if text else "")


class Client:
    """Connections to one server; use as an asynchronous context manager."""

    def __init__(self, address: Address, key: str | None, timeout_s: float) -> None:
        """Prepare; nothing is sent yet. `key` goes into a header and nowhere else."""
        self.address = address
        self.timeout_s = timeout_s
        self._secrets = [*address.secrets, *([key] if key else [])]
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        if key and not address.has_user:
            headers["Authorization"] = f"Bearer {key}"
        self._http = httpx2.AsyncClient(
            headers=headers,
            timeout=None,  # each request below has a limit of its own
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=IDLE_S),
            # A proxy of the environment has no business between two ends of one machine.
            trust_env=not address.is_here,
        )

    async def __aenter__(self) -> "Client":
        """Promise to close every connection."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def get(self, path: str) -> Reply:
        """Ask for what is at a path."""
        return await self._plain("GET", path, None, ASK_S)

    async def post(self, path: str, body: object = None, limit_s: float = ASK_S) -> Reply:
        """Send JSON to a path."""
        return await self._plain("POST", path, body, limit_s)

    async def complete(self, body: dict[str, object], asked_tokens: int) -> Answer:
        """Send one request and take its stream to the end; whatever goes wrong is in the answer."""
        content = msgspec.json.encode(body)
        answer = Answer(start_ns=time.time_ns())
        begin = time.perf_counter_ns()
        try:
            async with asyncio.timeout(self.timeout_s) as limit:
                await self._stream(content, asked_tokens, answer, begin, limit)
        except TimeoutError:
            if not answer.is_over:
                answer.fail(TIMED_OUT, f"not answered within {self.timeout_s:g} s")
        except (httpx2.ConnectError, httpx2.UnsupportedProtocol, httpx2.ProxyError) as error:
            answer.fail(UNREACHABLE, why(error))
        except httpx2.HTTPError as error:
            # Whoever has said that the answer is over owes nothing more.
            if not answer.is_over:
                answer.fail(DROPPED, why(error))
        except InputError as error:
            answer.fail(GARBLED, str(error))
        if not answer.is_over:
            answer.total_ns = time.perf_counter_ns() - begin
        answer.close(asked_tokens)
        answer.reason = answer.reason and self.hide(answer.reason)
        answer.finish = answer.finish and self.hide(answer.finish)
        return answer

    async def _stream(
        self, content: bytes, asked_tokens: int, answer: Answer, begin: int, limit: asyncio.Timeout
    ) -> None:
        url = self.address.url(COMPLETIONS)
        async with self._http.stream("POST", url, content=content) as response:
            answer.status = response.status_code
            kind = response.headers.get("content-type", "")
            if response.status_code != OK:
                busy = response.status_code in (TOO_MANY_REQUESTS, UNAVAILABLE)
                answer.fail(REFUSED if busy else FAILED, (await self._reply(response)).says)
                return
            if kind and not kind.startswith(EVENTS):
                raise InputError(f"an answer in {shown(kind.encode())}, not a stream of events")
            stream = EventStream()
            # Read to its very end even so: only then can the connection take the next request.
            async for data in response.aiter_raw():
                at_ns = time.perf_counter_ns() - begin
                was_over, had_ended = answer.is_over, answer.ended
                for event in stream.feed(data):
                    answer.take(event, at_ns)
                if len(answer.arrivals) > CHUNKS_A_TOKEN * asked_tokens:
                    raise InputError(
                        f"over {CHUNKS_A_TOKEN * asked_tokens:,} chunks of text, where "
                        f"{asked_tokens:,} tokens were asked for"
                    )
                if answer.is_over and (not was_over or answer.ended > had_ended):
                    longest_s = LINGER_AT_END_S if answer.ended else LINGER_S
                    limit.reschedule(asyncio.get_running_loop().time() + longest_s)
            at_ns = time.perf_counter_ns() - begin
            for event in stream.end():
                answer.take(event, at_ns)

    async def _plain(self, method: str, path: str, body: object, limit_s: float) -> Reply:
        content = None if body is None else msgspec.json.encode(body)
        url = self.address.url(path)
        try:
            async with (
                asyncio.timeout(limit_s),
                self._http.stream(method, url, content=content) as response,
            ):
                return await self._reply(response)
        except TimeoutError:
            return Reply(None, why=f"not answered within {limit_s:g} s")
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            return Reply(None, why=self.hide(why(error)))

    async def _reply(self, response: httpx2.Response) -> Reply:
        raw = await _read(response)
        if response.status_code != OK:
            raw = self.hide(raw.decode("utf-8", "replace")).encode()
        return Reply(response.status_code, _body(raw))

    def hide(self, text: str) -> str:
        """Return what a server or a library says, without what nobody else may know.

        For what is shown or kept. What is read stays as it came: `x` is a usual key, and a letter.
        """
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text


async def _read(response: httpx2.Response) -> bytes:
    """Return an answer as far as anybody would read it."""
    found = b""
    async for data in response.aiter_raw():
        found += data
        if len(found) > LARGEST_ANSWER:
            break
    return found


def _body(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return shown(raw)


def why(error: Exception) -> str:
    """Return in a line what a connection failed of."""
    text = " ".join(str(error).split())
    return text or type(error).__name__
