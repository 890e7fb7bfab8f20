"""What `collect` can be asked for, the defaults, and the refusal of what is not built."""

import re
from dataclasses import dataclass
from pathlib import Path

from whichwall.schemas.errors import UsageError

DECODE, PREFILL = "decode", "prefill"
MODES = (DECODE, PREFILL)
EAGER, STATIC_CACHE, CUDA_GRAPH = "eager", "static-cache", "cuda-graph"
COMPILE, COMPILE_REDUCE_OVERHEAD = "compile", "compile-reduce-overhead"
ENGINES = (EAGER, STATIC_CACHE, CUDA_GRAPH, COMPILE, COMPILE_REDUCE_OVERHEAD)
DEVICES = ("auto", "cuda", "cpu")
# The last four are backends of scaled dot product attention, forced one at a time.
ATTENTIONS = ("auto", "eager", "sdpa", "math", "efficient", "flash", "cudnn")
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
    repeat: int = 1  # least number of whole requests in each clean stage
    quick: bool = False
    check_roles: bool = False  # record a pass by which roles can be checked
    out: Path | None = None
    overwrite: bool = False

    def check(self) -> None:
        """Refuse what is not built or cannot be.

        Raises:
            UsageError: naming the option, what was asked and what there is.
        """
        _among("--mode", self.mode, MODES)
        _among("--engine", self.engine, ENGINES)
        _among("--device", self.device, DEVICES)
        _among("--attention", self.attention, ATTENTIONS)
        _among("--dtype", self.dtype, tuple(DTYPES))
        _at_least("--prompt-tokens", self.prompt_tokens, 1)
        # A request's first token comes from its prefill, so one decode step needs two tokens.
        _at_least("--new-tokens", self.new_tokens, 2 if self.mode == DECODE else 1)
        _at_least("--batch-size", self.batch_size, 1)
        _at_least("--sample-interval-ms", self.sample_interval_ms, 1)
        _at_least("--repeat", self.repeat, 1)
        if self.model is not None and self.weights not in (DUMMY, HUB):
            raise UsageError(
                f"--model {self.model} and --weights {self.weights} both name a model; "
                "leave --model out to run the weights of a folder"
            )


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


def default_out(mode: str, model: str, device: str, utc: str) -> Path:
    """Return where a run goes when nothing is said: traces/<mode>-<model>-<device>-<time>."""
    return TRACES / f"{mode}-{slug(model.rpartition('/')[2])}-{slug(device)}-{utc}"


def command_line(
    options: CollectOptions, model: str, device: str, dtype: str, prompt_tokens: int
) -> str:
    """Return a command that would collect this again, with every default spelled out.

    Rebuilt from the options rather than taken from argv, so no folder of this machine is in it.
    """
    words: list[object] = ["whichwall", "collect", "--mode", options.mode]
    if options.weights in (DUMMY, HUB):
        words += ["--model", without_folders(model), "--weights", options.weights]
    else:
        words += ["--weights", without_folders(options.weights)]
    words += ["--engine", options.engine, "--attention", options.attention]
    words += ["--dtype", dtype, "--prompt-tokens", prompt_tokens]
    if options.mode == DECODE:
        words += ["--new-tokens", options.new_tokens]
    words += ["--batch-size", options.batch_size, "--device", device]
    words += ["--sample-interval-ms", options.sample_interval_ms]
    if options.repeat > 1:
        words += ["--repeat", options.repeat]
    if options.quick:
        words.append("--quick")
    if options.check_roles:
        words.append("--check-roles")
    return " ".join(map(str, words))
