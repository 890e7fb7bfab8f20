"""A server of the completions API for tests, in a thread: real sockets and any manners."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Body = dict[str, Any]
REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests",
    500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip


@dataclass
class Manners:
    """How a server answers; plain ones send a token a chunk and say how many there were."""

    models: tuple[str, ...] = ("toy",)
    longest: int | None = None
    version: str | None = None
    key: str | None = None  # that requests must have
    first_s: float = 0.0  # before the first token
    each_s: float = 0.0  # before each further one
    text: str = " word"
    tokens_a_chunk: int = 1
    usage: str | None = "last"  # running, last, or none
    says_finish: bool = True
    says_done: bool = True
    stays_open: bool = False  # after the last word
    stops_at: int | None = None  # tokens, however many were asked for
    line_end: bytes = b"\n"
    comments: bool = False
    cut: int | None = None  # every write in pieces of so many bytes
    refuses: frozenset[str] = frozenset()  # fields of a request
    takes_ids: bool = True
    vocabulary: int = 50_000
    tokens_a_word: float = 1.0
    tokenizes: bool = False
    caches: bool = False  # says how much of a prompt it has seen before
    statuses: tuple[int, ...] = ()  # of the first completions, one each
    after: int | None = None  # chunks, after which it does `then`
    then: str = ""  # kill, garbage, hang, error, end
    answers_whole: bool = False  # JSON instead of a stream
    dies_after: int | None = None  # requests
    profiles_into: Path | None = None
    trace: Body = field(default_factory=dict)


class Served:
    """A running server: what it was sent, and where it is."""

    def __init__(self, manners: Manners) -> None:
        """Take the manners; `serving` starts it."""
        self.manners = manners
        self.bodies: list[Body] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self.port = 0
        self.loop: asyncio.AbstractEventLoop | None = None
        self.seen: set[tuple[Any, ...]] = set()
        self._stop = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._statuses = iter(manners.statuses)

    @property
    def url(self) -> str:
        """Return its address."""
        return f"http://127.0.0.1:{self.port}"

    async def run(self, ready: threading.Event) -> None:
        """Serve until stopped."""
        self.loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._handle, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        ready.set()
        await self._stop.wait()
        self._server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    def stop(self) -> None:
        """End it."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._stop.set)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        _, path, _ = first.split(" ")
        headers = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in lines if x)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        body = json.loads(raw) if raw else {}
        self.paths.append(path)
        self.headers.append(headers)
        manners = self.manners
        if manners.key and headers.get("authorization") != f"Bearer {manners.key}":
            said = headers.get("authorization", "nothing")
            await _json(writer, 401, {"error": {"message": f"wrong key: {said}"}})
        elif path.partition("?")[0].endswith("/v1/completions"):
            self.bodies.append(body)
            if manners.dies_after is not None and len(self.bodies) > manners.dies_after:
                self._stop.set()
                writer.transport.abort()
                return False
            return await self._complete(writer, body)
        else:
            await self._other(writer, path.partition("?")[0], body)
        return True

    async def _other(self, writer: asyncio.StreamWriter, path: str, body: Body) -> None:
        manners = self.manners
        if path.endswith("/v1/models"):
            more = {"max_model_len": manners.longest} if manners.longest else {}
            data = [{"id": name, "owned_by": "tests", **more} for name in manners.models]
            await _json(writer, 200, {"object": "list", "data": data})
        elif path == "/version" and manners.version:
            await _json(writer, 200, {"version": manners.version})
        elif path == "/tokenize" and manners.tokenizes:
            await _json(writer, 200, {"count": self._count(body.get("prompt", ""))})
        elif path == "/start_profile" and manners.profiles_into:
            await _json(writer, 200, {})
        elif path == "/stop_profile" and manners.profiles_into:
            file = manners.profiles_into / "somehost_1.async_llm.1.pt.trace.json"
            file.write_text("{}")
            file = manners.profiles_into / "somehost_1.rank0.2.pt.trace.json"
            file.write_text(json.dumps(manners.trace))
            await _json(writer, 200, {})
        else:
            await _json(writer, 404, {"detail": "Not Found"})

    def _count(self, prompt: Any) -> int:
        if isinstance(prompt, list):
            return len(prompt)
        return round(len(str(prompt).split()) * self.manners.tokens_a_word)

    def _refusal(self, body: Body) -> str | None:
        refused = sorted(self.manners.refuses & {*body, *body.get("stream_options", {})})
        if refused:
            return f"Unrecognized request argument supplied: {refused[0]}"
        prompt = body["prompt"]
        if isinstance(prompt, list) and not self.manners.takes_ids:
            return "prompt: expected a string"
        if isinstance(prompt, list) and max(prompt) >= self.manners.vocabulary:
            return f"Token id {max(prompt)} is out of vocabulary"
        return None

    def _cached(self, prompt: Any) -> int:
        words = tuple(prompt if isinstance(prompt, list) else prompt.split())
        best = max((_shared(words, other) for other in self.seen), default=0)
        self.seen.add(words)
        return best

    async def _complete(self, writer: asyncio.StreamWriter, body: Body) -> bool:
        manners = self.manners
        refusal = self._refusal(body)
        status = 400 if refusal else next(self._statuses, 200)
        if status != 200:
            await _json(writer, status, {"error": {"message": refusal or "come back later"}})
            return True
        if manners.answers_whole:
            await _json(writer, 200, {"choices": [{"text": " all of it"}]})
            return True
        kind = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
        writer.write(kind + b"transfer-encoding: chunked\r\n\r\n")
        for number, data in enumerate(self._events(body)):
            if manners.after is not None and number == manners.after:
                return await self._then(writer)
            await asyncio.sleep(manners.first_s if number == 0 else manners.each_s)
            if manners.comments:
                await self._write(writer, b": keep-alive" + manners.line_end * 2)
            await self._write(writer, b"data: " + data + manners.line_end * 2)
        if manners.stays_open:
            await asyncio.sleep(60)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def _events(self, body: Body) -> Iterator[bytes]:
        manners = self.manners
        wanted = body["max_tokens"] if manners.stops_at is None else manners.stops_at
        options = body.get("stream_options", {})
        usage: Body = {"prompt_tokens": self._count(body["prompt"]), "completion_tokens": 0}
        if manners.caches:
            usage["prompt_tokens_details"] = {"cached_tokens": self._cached(body["prompt"])}
        while usage["completion_tokens"] < wanted:
            number = min(manners.tokens_a_chunk, wanted - usage["completion_tokens"])
            usage["completion_tokens"] += number
            choice: Body = {"index": 0, "text": manners.text * number, "finish_reason": None}
            if usage["completion_tokens"] == wanted and manners.says_finish:
                choice["finish_reason"] = "length" if wanted == body["max_tokens"] else "stop"
            event: Body = {"object": "text_completion", "choices": [choice]}
            if manners.usage == "running" and options.get("continuous_usage_stats"):
                event["usage"] = usage
            yield json.dumps(event, ensure_ascii=False).encode()
        if manners.usage is not None and options.get("include_usage"):
            yield json.dumps({"choices": [], "usage": usage}).encode()
        if manners.says_done:
            yield b"[DONE]"

    async def _then(self, writer: asyncio.StreamWriter) -> bool:
        """Go wrong in the middle of a stream."""
        then = self.manners.then
        if then == "kill":
            writer.transport.abort()
            return False
        if then == "hang":
            await asyncio.sleep(60)
        if then == "garbage":
            await self._write(writer, b"data: <html>\n\n")
        if then == "error":
            await self._write(writer, b'data: {"error": {"message": "out of memory"}}\n\n')
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        size = self.manners.cut or len(data)
        for at in range(0, len(data), size):
            piece = data[at : at + size]
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
            if self.manners.cut:
                await asyncio.sleep(0)


def _shared(a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
    return next(
        (n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


async def _json(writer: asyncio.StreamWriter, status: int, body: Body) -> None:
    raw = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: application/json\r\n"
    writer.write(head.encode() + f"content-length: {len(raw)}\r\n\r\n".encode() + raw)
    await writer.drain()


@contextmanager
def serving(**manners: Any) -> Iterator[Served]:
    """Run a server while the block lasts."""
    served, ready = Served(Manners(**manners)), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(served.run(ready)), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield served
    finally:
        served.stop()
        thread.join()
