"""One request on its way: what its stream has brought so far, and how it ended."""

from dataclasses import dataclass, field

from whichwall.collect.endpoint.chunks import END, Chunk, Counts, read_chunk
from whichwall.schemas.completions import CUT_SHORT, DONE, FAILED, GARBLED

LENGTH = "length"  # the answer is as long as was asked for
ABORTED = ("abort", "error")


@dataclass
class Answer:
    """What came of one request; times since it was sent."""

    start_ns: int  # Unix epoch
    outcome: str = DONE
    reason: str | None = None
    status: int | None = None
    total_ns: int = 0
    finish: str | None = None
    ended: bool = False  # the stream has said that it is over
    counts: Counts = field(default_factory=Counts)
    arrivals: list[tuple[int, int | None]] = field(default_factory=list)  # when, and tokens

    @property
    def is_done(self) -> bool:
        """Tell whether it counts."""
        return self.outcome == DONE

    @property
    def is_over(self) -> bool:
        """Tell whether the server owes nothing more."""
        return self.ended or self.finish is not None

    @property
    def ttft_ns(self) -> int | None:
        """Return when the first token came; None if none did."""
        return self.arrivals[0][0] if self.arrivals else None

    def take(self, event: bytes, at_ns: int) -> None:
        """Take an event that came at a time.

        Raises:
            InputError: it is none of a completion.
        """
        self.total_ns = at_ns
        if event.strip() == END:
            self.ended = True
            return
        chunk = read_chunk(event)
        if chunk.error is not None:
            self.fail(FAILED, chunk.error)
            self.ended = True
            return
        self.finish = chunk.finish or self.finish
        tokens = self._tokens_in(chunk)
        self.counts.update(chunk.counts)
        if tokens or (tokens is None and chunk.has_text):
            self.arrivals.append((at_ns, tokens))

    def _tokens_in(self, chunk: Chunk) -> int | None:
        """Return how many tokens a chunk brings: by ids, else by the server's running count."""
        if chunk.tokens is not None:
            return chunk.tokens
        if chunk.counts.new is None:
            return None
        # A count that comes only at the end is of all chunks, and says nothing of the last.
        if not chunk.has_choice or (self.counts.new is None and self.arrivals):
            return None if chunk.has_text else 0
        return max(0, chunk.counts.new - (self.counts.new or 0))

    def fail(self, outcome: str, reason: str) -> None:
        """Note how it ended, if it did not end in done."""
        self.outcome, self.reason = outcome, reason

    def close(self, asked_tokens: int) -> None:
        """Judge an answer whose stream is over without an error."""
        if not self.is_done:
            return
        if self.finish in ABORTED:
            self.fail(FAILED, f"the server ended it: {self.finish}")
        elif self.finish is None and not self.ended:
            self.fail(CUT_SHORT, "its stream ended without saying so")
        elif not self.arrivals:
            self.fail(GARBLED, "its stream told of no token: neither text nor a running count")
        elif self.counts.new is None and self.finish == LENGTH:
            self.counts.new = asked_tokens
        if self.counts.new is not None:
            self._share_out(self.counts.new)

    def _share_out(self, new_tokens: int) -> None:
        """Where there are as many chunks as tokens, each chunk brought one."""
        if len(self.arrivals) == new_tokens:
            self.arrivals = [(at, 1) for at, _ in self.arrivals]
