"""A short recording under ranges that say which roles are right, to judge the roles found by.

It comes after everything that is timed, in a session of the profiler of its own.
"""

from pathlib import Path
from typing import Any

import torch

from whichwall.collect.decoder import Decoder
from whichwall.collect.device import Device
from whichwall.collect.passes import PassLog
from whichwall.collect.profiler import TraceSession
from whichwall.collect.role_ranges import RoleRanges
from whichwall.collect.workload import Plan, Workload
from whichwall.schemas.manifest import ProfilerFacts

# The second pass tells whether roles repeat; more would say the same again.
CHECKED = Plan(0.0, 0.0, 0.0, profiled_decodes=2, profiled_prefills=2)


class RangedDecoder(Decoder):
    """A decoder whose own work, choosing the next token, is in a range too."""

    def __init__(self, model: Any, ranges: RoleRanges) -> None:
        """Take the model that the ranges are of."""
        super().__init__(model)
        self._ranges = ranges

    def _run(self, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        with self._ranges.outside():
            return super()._run(tokens, cache)


def record_roles(
    module: Any, device: Device, prompt: torch.Tensor, new_tokens: int, trace: Path
) -> ProfilerFacts:
    """Record a few passes of a model under ranges, into a file.

    Args:
        module: a causal language model on the device.
        device: where it is.
        prompt: token ids of shape (batch, length) on the device.
        new_tokens: tokens of a request, the first from its prefill; 1: prefills are recorded.
        trace: where Kineto's JSON goes.
    """
    with RoleRanges(module) as ranges, TraceSession(device) as session:
        decoder = RangedDecoder(module, ranges)
        log = PassLog(device, prompt.shape[0])
        workload = Workload(decoder, log, prompt, new_tokens)
        workload.warm_profiled(CHECKED)
        session.start()
        workload.run_profiled(CHECKED)
        session.stop()
    session.export(trace)
    return session.facts()
