"""As much of vLLM's interface as is used here, with a scheduler that splits and queues as its own.

What a test wants of it is in `SETTINGS`, which variables of the environment set for processes.
"""

import json
import os
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from vllm.sampling_params import SamplingParams

__version__ = "0.0.0"
__all__ = ["LLM", "SamplingParams"]

SETTINGS: dict[str, Any] = {
    "async_scheduling": False,
    "step_tokens": 64,
    "cache_tokens": 4096,
    "skip_every": 0,  # leave a sequence out of each n-th step
    "fail_at_step": 0,
    "refuse": None,  # what an engine says in place of starting
    **json.loads(os.environ.get("FAKE_VLLM", "{}")),
}
STARTED: list[dict[str, Any]] = []


@dataclass
class _Request:
    name: str
    ids: list[int]
    params: SamplingParams
    read: int = 0
    scheduled: int = 0  # tokens asked of steps
    made: int = 0


@dataclass
class _Batch:
    prompts: list[tuple[_Request, int]] = field(default_factory=list)
    read: list[_Request] = field(default_factory=list)  # whose prompts end in this step
    answers: list[_Request] = field(default_factory=list)

    @property
    def text(self) -> str:
        prompts, tokens = len(self.prompts), sum(n for _, n in self.prompts)
        answers = len(self.answers)
        return f"execute_context_{prompts}({tokens})_generation_{answers}({answers})"


class LLM:
    def __init__(self, model: str, **given: Any) -> None:
        if SETTINGS["refuse"]:
            raise ValueError(f"1 validation error for X\n  Value error, {SETTINGS['refuse']}\n")
        STARTED.append({"model": model, "files": sorted(os.listdir(model)), **given})
        self.llm_engine = _Engine(given)


class _Engine:
    def __init__(self, given: dict[str, Any]) -> None:
        tokens = given.get("max_num_batched_tokens", SETTINGS["step_tokens"])
        self.vllm_config = SimpleNamespace(
            model_config=SimpleNamespace(max_model_len=given["max_model_len"]),
            scheduler_config=SimpleNamespace(
                max_num_seqs=given.get("max_num_seqs", 8),
                max_num_batched_tokens=tokens,
                async_scheduling=SETTINGS["async_scheduling"],
                enable_chunked_prefill=True,
            ),
            cache_config=SimpleNamespace(
                block_size=16,
                num_gpu_blocks=SETTINGS["cache_tokens"] // 16,
                kv_cache_size_tokens=SETTINGS["cache_tokens"],
                gpu_memory_utilization=0.9,
                enable_prefix_caching=True,
            ),
            compilation_config=SimpleNamespace(
                mode=None, cudagraph_mode=None, cudagraph_capture_sizes=[]
            ),
        )
        self.engine_core = SimpleNamespace(shutdown=lambda: None)
        self.requests: dict[str, _Request] = {}
        self.prompts: list[list[int]] = []  # all that were ever added
        self.queue: deque[_Batch] = deque()
        self.steps = 0
        self._folder = Path(given["profiler_config"]["torch_profiler_dir"])
        self._profile: Any = None
        self._seen: list[list[int]] = []

    def add_request(self, name: str, prompt: dict[str, list[int]], params: SamplingParams) -> None:
        self.requests[name] = _Request(name, prompt["prompt_token_ids"], params)
        self.prompts.append(prompt["prompt_token_ids"])

    def abort_request(self, names: list[str]) -> None:
        for name in names:
            del self.requests[name]

    def has_unfinished_requests(self) -> bool:
        return bool(self.requests)

    def step(self) -> list[Any]:
        self.steps += 1
        if self.steps == SETTINGS["fail_at_step"]:
            raise RuntimeError("the engine is dead")
        if not SETTINGS["async_scheduling"]:
            return self._give(self._run(self._schedule())) if self.requests else []
        if self.requests:
            batch = self._run(self._schedule())
            self.queue.appendleft(batch)
            if len(self.queue) < 2 and (batch.prompts or batch.answers):
                return []
        return self._give(self.queue.pop()) if self.queue else []

    def _schedule(self) -> _Batch:
        """Give each running sequence a token, and what is left of the step to prompts."""
        batch = _Batch()
        left = self.vllm_config.scheduler_config.max_num_batched_tokens
        for one in self.requests.values():
            if one.read == len(one.ids) and one.scheduled < one.params.max_tokens:
                batch.answers.append(one)
        if SETTINGS["skip_every"] and self.steps % SETTINGS["skip_every"] == 0:
            batch.answers = batch.answers[:1]
        for one in batch.answers:
            one.scheduled += 1
            left -= 1
        for one in self.requests.values():
            took = min(left, len(one.ids) - one.read)
            if took > 0:
                one.read += took
                left -= took
                batch.prompts.append((one, took))
                if one.read == len(one.ids):
                    batch.read.append(one)
                    one.scheduled += 1
        return batch

    def _run(self, batch: _Batch) -> _Batch:
        with torch.profiler.record_function(batch.text):
            torch.zeros(16, 16) @ torch.zeros(16, 16)
            time.sleep(0.001)
        return batch

    def _give(self, batch: _Batch) -> list[Any]:
        out = []
        for one in (*batch.answers, *batch.read):
            if one.name not in self.requests:  # given up meanwhile
                continue
            one.made += 1
            is_last = one.made == one.params.max_tokens
            cached = self._cached(one.ids) if one.made == 1 else 0
            if is_last:
                del self.requests[one.name]
            made = SimpleNamespace(token_ids=[7])
            out.append(
                SimpleNamespace(
                    request_id=one.name, outputs=[made], finished=is_last, num_cached_tokens=cached
                )
            )
        return out

    def _cached(self, ids: list[int]) -> int:
        """Return the tokens of whole blocks that an earlier prompt began with."""
        common = [_common(ids, other) for other in self._seen]
        self._seen.append(ids)
        return max((length // 16 * 16 for length in common), default=0)

    def start_profile(self) -> None:
        sys.stdout.write("a profiler has started\n")
        handler = torch.profiler.tensorboard_trace_handler(str(self._folder), "rank0")
        self._profile = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            record_shapes=True,
            on_trace_ready=handler,
        )
        self._profile.start()

    def stop_profile(self) -> None:
        self._profile.stop()
        sys.stdout.write("a table of kernels\n")


def _common(ids: list[int], other: list[int]) -> int:
    differing = (at for at, (a, b) in enumerate(zip(ids, other, strict=False)) if a != b)
    return next(differing, min(len(ids), len(other)))
