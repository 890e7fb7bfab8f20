"""What `collect` can be asked for, the defaults, and the refusal of what is not built."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from whichwall.schemas import engines
from whichwall.schemas.errors import UsageError
from whichwall.schemas.experiments import (
    ATTENTION,
    BATCH,
    CEILINGS,
    CLOCKS,
    CONTEXT,
    LADDER,
    OUTPUT,
    PREFIX,
    PROMPT,
    REQUEST,
    TAX,
)

DECODE, PREFILL, MATMUL = "decode", "prefill", "matmul"
SINGLE, SWEEPS = (DECODE, PREFILL), (CONTEXT, PROMPT, OUTPUT, BATCH, LADDER, ATTENTION)
LIMITS = (CEILINGS, CLOCKS, TAX)
MODES = (*SINGLE, REQUEST, *SWEEPS, *LIMITS, PREFIX)
EAGER, STATIC_CACHE, CUDA_GRAPH = engines.EAGER, engines.STATIC_CACHE, engines.CUDA_GRAPH
COMPILE, COMPILE_REDUCE_OVERHEAD = engines.COMPILE, engines.COMPILE_REDUCE_OVERHEAD
ENGINES = (EAGER, STATIC_CACHE, CUDA_GRAPH, COMPILE, COMPILE_REDUCE_OVERHEAD)
OPENAI, VLLM = engines.OPENAI, engines.VLLM
RUNGS = (*ENGINES, VLLM)
# What an engine that has a loop of its own can be asked for, a rung of the ladder aside.
ASKED_OF_VLLM = (*SINGLE, CONTEXT, PROMPT, OUTPUT, BATCH, PREFIX)
# What can be asked of a running server; the rest looks into a model of this process.
ASKED_OF_A_SERVER = (*SINGLE, PROMPT, OUTPUT, BATCH, PREFIX)
# A request of the longest default prompt may take a CPU minutes.
TIMEOUT_S, LONGEST_TIMEOUT_S = 300.0, 86_400.0
DEVICES = ("auto", "cuda", "cpu")
# Of scaled dot product attention, forced one at a time.
BACKENDS = ("math", "efficient", "flash", "cudnn")
OWN = "eager"  # the library's own attention, operator by operator
ATTENTIONS = ("auto", OWN, "sdpa", *BACKENDS)
DTYPES = {
    "auto": "auto",
    **dict.fromkeys(("bfloat16", "bf16"), "bfloat16"),
    **dict.fromkeys(("float16", "fp16", "half"), "float16"),
    **dict.fromkeys(("float32", "fp32", "float"), "float32"),
}
DUMMY, HUB = "dummy", "hub"
DEFAULT_MODEL = {"cuda": "qwen2.5-0.5b", "cpu": "tiny"}
DEFAULT_PROMPT = {"cuda": 1024, "cpu": 64}
TRACES = Path("traces")
MOST = 2**31 - 1  # what a column of counts can hold
# Modes in which every request has a decode step.
DECODING = (DECODE, CONTEXT, BATCH, ATTENTION, CLOCKS, TAX)
# What keeps the card busy between its two sides in `clocks`: a model, or no model at all.
WORKS = (DECODE, MATMUL)
# What the values of a sweep are, where they are no numbers; and one that is neither.
NAMES = {LADDER: RUNGS, ATTENTION: (*BACKENDS, OWN)}
LONG = "long"  # in a sweep of contexts: one long answer
# What a mode has no use for: it varies that itself, or runs no model.
OF_A_MODEL = (
    "model", "weights", "engine", "attention", "prompt_tokens", "new_tokens", "batch_size", "repeat"
)  # fmt: skip
UNUSED = {
    CONTEXT: ("prompt_tokens",),
    PROMPT: ("prompt_tokens",),
    OUTPUT: ("new_tokens",),
    BATCH: ("batch_size",),
    LADDER: ("engine",),
    ATTENTION: ("attention",),
    CEILINGS: OF_A_MODEL,
    CLOCKS: ("repeat",),
    PREFIX: ("new_tokens", "batch_size"),
}
# What a server has decided before it is asked, and what only a server needs.
DECIDED_BY_A_SERVER = ("weights", "attention", "dtype", "device", "check_roles")
DECIDED_BY_VLLM = ("attention", "check_roles")
OF_A_SERVER = ("url", "timeout_s", "trace_folder")
_COUNT = re.compile(r"0*([1-9][0-9]{0,9})")  # no longer than `MOST`


@dataclass(frozen=True)
class CollectOptions:
    """One run to collect; None means the device's default."""

    mode: str = DECODE
    model: str | None = None
    weights: str = DUMMY
    engine: str = EAGER
    attention: str = "auto"
    dtype: str = "auto"
    prompt_tokens: int | None = None
    new_tokens: int = 32
    batch_size: int = 1
    device: str = "auto"
    sample_interval_ms: int = 100
    values: str | None = None  # what a sweep varies, comma-separated
    repeat: int = 1  # processes, or least number of requests or visits: see --help
    work: str = DECODE  # of clocks
    quick: bool = False
    check_roles: bool = False  # record a pass by which roles can be checked
    url: str | None = None  # of a running server
    timeout_s: float = TIMEOUT_S  # of one request to it
    trace_folder: Path | None = None  # where it puts traces that it is asked for
    out: Path | None = None
    overwrite: bool = False
    resume: Path | None = None  # where an interrupted sweep was to go

    def check(self) -> None:
        """Refuse what is not built or cannot be.

        Raises:
            UsageError: naming the option, what was asked and what there is.
        """
        _among("--mode", self.mode, MODES)
        _among("--engine", self.engine, (*RUNGS, OPENAI))
        _among("--device", self.device, DEVICES)
        _among("--attention", self.attention, ATTENTIONS)
        _among("--dtype", self.dtype, tuple(DTYPES))
        _among("--work", self.work, WORKS)
        if self.work != DECODE and self.mode != CLOCKS:
            raise UsageError(f"--work {self.work}: goes with --mode {CLOCKS}; leave it out")
        self._refuse_unused()
        self._check_server()
        self._check_vllm()
        _at_least("--prompt-tokens", self.prompt_tokens, 1)
        # A request's first token comes from its prefill, so one decode step needs two tokens.
        _at_least("--new-tokens", self.new_tokens, 2 if self.mode in DECODING else 1)
        _at_least("--batch-size", self.batch_size, 1)
        _at_least("--sample-interval-ms", self.sample_interval_ms, 1)
        _at_least("--repeat", self.repeat, 1)
        if self.values is not None:
            self.asked_values()
        if self.check_roles and self.mode not in SINGLE:
            raise UsageError(f"--check-roles goes with --mode decode or prefill, not {self.mode}")
        if self.check_roles and self.engine in (COMPILE, COMPILE_REDUCE_OVERHEAD):
            raise UsageError(
                f"--check-roles with --engine {self.engine}: the pass that tells the truth runs "
                "other kernels than a compiled one; check an eager or a graph run"
            )
        if self.model is not None and self.weights not in (DUMMY, HUB):
            raise UsageError(
                f"--model {self.model} and --weights {self.weights} both name a model; "
                "leave --model out to run the weights of a folder"
            )

    def asked_values(self) -> list[str]:
        """Return the values of --values, each once.

        Raises:
            UsageError: the mode varies nothing, or a value is not one that it can take.
        """
        if self.mode not in SWEEPS:
            raise UsageError(f"--values: --mode {self.mode} varies nothing; leave it out")
        words = (self.values or "").split(",")
        return list(dict.fromkeys(self._asked_value(word.strip()) for word in words))

    def _asked_value(self, word: str) -> str:
        if self.mode in NAMES:
            _among("--values", word, NAMES[self.mode])
        elif not (self.mode == CONTEXT and word == LONG):
            found = _COUNT.fullmatch(word)
            if found is None or int(found[1]) > MOST:
                raise UsageError(
                    f"--values {word}: expected numbers from 1 on, up to {MOST:,}, as in 1,2,4"
                )
            return found[1]
        return word

    def _refuse_unused(self) -> None:
        without_model = self.mode == CLOCKS and self.work == MATMUL
        work = f" --work {self.work}" if without_model else ""
        for name in OF_A_MODEL if without_model else UNUSED.get(self.mode, ()):
            self._refuse(name, f"--mode {self.mode}{work}")
        for name in DECIDED_BY_A_SERVER if self.engine == OPENAI else OF_A_SERVER:
            self._refuse(name, f"--engine {self.engine}")

    def _refuse(self, name: str, by: str) -> None:
        found = getattr(self, name)
        if found != getattr(CollectOptions, name):
            # A URL may hold a secret, and a flag has no value.
            value = "" if isinstance(found, bool) or name == "url" else f" {found}"
            option = f"--{name.replace('_', '-')}{value}"
            raise UsageError(f"{option}: {by} has no use for it; leave it out")

    def _check_vllm(self) -> None:
        """Refuse what is not to be had of an engine with a loop of its own."""
        if self.engine != VLLM:
            return
        if self.mode not in ASKED_OF_VLLM:
            raise UsageError(
                f"--mode {self.mode}: not built for --engine {VLLM}, which has "
                f"{', '.join(ASKED_OF_VLLM)} and is a rung of {LADDER}"
            )
        for name in DECIDED_BY_VLLM:
            self._refuse(name, f"--engine {VLLM}")

    def _check_server(self) -> None:
        """Refuse what cannot be asked of a server, and a server that is not named."""
        if self.engine != OPENAI:
            if self.mode == PREFIX and self.engine != VLLM:
                raise UsageError(
                    f"--mode {PREFIX}: --engine {self.engine} keeps no prefix of an earlier "
                    f"request; give --engine {VLLM}, or {OPENAI} and the --url of a server"
                )
            return
        if self.mode not in ASKED_OF_A_SERVER:
            raise UsageError(
                f"--mode {self.mode}: cannot be asked of a server; --engine {OPENAI} has "
                f"{', '.join(ASKED_OF_A_SERVER)}"
            )
        if self.url is None:
            raise UsageError(f"--engine {OPENAI}: give the server's --url, as http://HOST:PORT")
        if not 0 < self.timeout_s <= LONGEST_TIMEOUT_S:
            raise UsageError(f"--timeout-s {self.timeout_s:g}: must be above 0 and at most a day")
        if self.trace_folder is not None and self.mode not in SINGLE:
            raise UsageError(f"--trace-folder goes with --mode decode or prefill, not {self.mode}")


def _among(option: str, found: str, known: tuple[str, ...]) -> None:
    if found not in known:
        raise UsageError(f"{option} {found}: not built; this whichwall has {', '.join(known)}")


def _at_least(option: str, found: int | None, least: int) -> None:
    if found is not None and not least <= found <= MOST:
        bound = f"at least {least}" if found < least else f"at most {MOST:,}"
        raise UsageError(f"{option} {found}: must be {bound}")


def without_folders(name: str) -> str:
    """Return a model's name with a path to it reduced to its last component."""
    is_path = name.startswith(("/", ".", "~")) or "\\" in name or Path(name).exists()
    return Path(name).resolve().name if is_path else name


def slug(text: str) -> str:
    """Return a name as part of a folder's: lower case, with dashes for all that is not plain."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unnamed"


def default_out(mode: str, model: str | None, device: str, utc: str) -> Path:
    """Return where a run goes when nothing is said: traces/<mode>-<model>-<device>-<time>."""
    named = [] if model is None else [slug(model.rpartition("/")[2])]
    return TRACES / "-".join([mode, *named, slug(device), utc])


def command_line(
    options: CollectOptions,
    model: str,
    device: str,
    dtype: str,
    prompt_tokens: int | None,
    values: Sequence[str] = (),
) -> str:
    """Return a command that would collect this again, with every default spelled out.

    Rebuilt from the options rather than taken from argv, so no folder of this machine is in it.
    What the mode varies is left out, but for the `values` that it takes.
    """
    mode = options.mode
    words: list[object] = ["whichwall", "collect", "--mode", mode]
    if options.weights in (DUMMY, HUB):
        words += ["--model", without_folders(model), "--weights", options.weights]
    else:
        words += ["--weights", without_folders(options.weights)]
    named: dict[str, object] = {
        "--engine": None if mode == LADDER else options.engine,
        "--attention": None if mode == ATTENTION else options.attention,
        "--dtype": dtype,
        "--values": ",".join(values) or None,
        "--prompt-tokens": prompt_tokens,
        "--new-tokens": options.new_tokens if mode in (*DECODING, REQUEST, LADDER) else None,
        "--batch-size": None if mode == BATCH else options.batch_size,
        "--device": device,
        "--sample-interval-ms": options.sample_interval_ms,
        "--repeat": options.repeat if options.repeat > 1 else None,
    }
    words += [word for pair in named.items() if pair[1] is not None for word in pair]
    words += [f for f in ("--quick", "--check-roles") if getattr(options, f[2:].replace("-", "_"))]
    return " ".join(map(str, words))


def bare_command_line(options: CollectOptions, device: str, dtype: str) -> str:
    """Return a command that would collect a run without a model again."""
    words: list[object] = ["whichwall", "collect", "--mode", options.mode]
    if options.mode == CLOCKS:
        words += ["--work", options.work]
    words += ["--dtype", dtype, "--device", device]
    words += ["--sample-interval-ms", options.sample_interval_ms]
    if options.quick:
        words.append("--quick")
    return " ".join(map(str, words))
