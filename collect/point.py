"""One setting to measure, with every default resolved, and its row in the points table."""

from dataclasses import dataclass

import torch

from whichwall.collect.device import dtype_name
from whichwall.schemas.points import DONE, Points


@dataclass(frozen=True)
class Point:
    """One setting: a request of `new_tokens`, the first of them from the prompt's prefill."""

    number: int
    engine: str
    attention: str
    batch: int
    prompt_tokens: int
    new_tokens: int  # 1: prefills only
    label: str | None = None

    def row(
        self,
        dtype: torch.dtype,
        *,
        outcome: str = DONE,
        reason: str | None = None,
        setup_ns: int | None = None,
        memory_bytes: int | None = None,
    ) -> dict[str, object]:
        """Return the point's row: what was asked for, and how it ended."""
        return {
            Points.point: self.number,
            Points.label: self.label,
            Points.engine: self.engine,
            Points.attention: self.attention,
            Points.dtype: dtype_name(dtype),
            Points.batch: self.batch,
            Points.context_tokens: self.prompt_tokens if self.new_tokens > 1 else 0,
            Points.prompt_tokens: self.prompt_tokens,
            Points.new_tokens: self.new_tokens,
            Points.outcome: outcome,
            Points.reason: reason,
            Points.setup_ns: setup_ns,
            Points.memory_bytes: memory_bytes,
        }
