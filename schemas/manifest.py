"""run.json: what a run holds, how and where it was made, and the checksum of each file.

Schema versions, newest first:
    1  the first.
"""

import json
from pathlib import Path

import msgspec

from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import InputError, VersionError, require_regular
from whichwall.schemas.model import Model
from whichwall.schemas.partial import find_replaced
from whichwall.schemas.table import LATEST_NS

FILE = "run.json"
VERSION = 1
LARGEST_BYTES = 1 << 24  # a thousand ranks with a file of each table take 3 MB
LONGEST_NUMBER = 20  # characters of any integer of 64 bits


class FileFacts(msgspec.Struct, frozen=True):
    """Size and checksum of one file of the run."""

    rows: int
    bytes: int
    sha256: str


class RankFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """One rank's trace: its clock, its format and what was left out of it."""

    rank: int
    source: str  # "collect", or the format of the imported file: kineto, legacy
    time_origin: str  # "epoch": times are Unix epoch; "unknown": relative to nothing known
    base_ns: int | None  # what a relative time of 0 means, Unix epoch
    resolution_ns: int  # 1, or 1000 where the file holds whole microseconds
    world_size: int | None = None
    point: int = 0
    has_shapes: bool | None = None
    events: int = 0  # rows of the file, whatever their kind
    python_frames_dropped: int = 0
    devices: list[int] = []  # ordinals of the GPUs that have activities
    recording_start_ns: int | None = None  # when the profiler says it was on
    recording_end_ns: int | None = None
    ends_early: bool = False  # the file was cut, so the end of its recording is not known


class Gpu(msgspec.Struct, frozen=True, omit_defaults=True):
    """One GPU: who it is and what its driver says of it."""

    name: str
    ordinal: int | None = None
    uuid: str | None = None
    memory_bytes: int | None = None
    multiprocessors: int | None = None
    compute_capability: str | None = None
    l2_cache_bytes: int | None = None
    memory_clock_khz: int | None = None
    memory_bus_bits: int | None = None
    power_limit_w: float | None = None
    mig: bool | None = None


class Environment(msgspec.Struct, frozen=True, omit_defaults=True):
    """Software and host, by named fields only: no variables, no paths, no host name."""

    python: str | None = None
    platform: str | None = None
    cpu: str | None = None
    cpu_cores: int | None = None
    torch: str | None = None
    transformers: str | None = None
    cuda_runtime: str | None = None
    cuda_driver: str | None = None
    driver: str | None = None
    cupti: str | None = None


class SamplerFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """How samples were taken, and what in them could not be read."""

    source: str  # "nvidia-smi", "csv"
    interval_ms: int | None = None
    fields: list[str] = []
    fields_refused: list[str] = []
    nulls: dict[str, dict[str, int]] = {}  # field -> text found -> how often
    rejected_lines: int = 0
    events: list[str] = []
    observed_ms_median: float | None = None


class EnergyFacts(msgspec.Struct, frozen=True):
    """NVML's energy counter at the ends of the clean stage."""

    start_ns: int
    end_ns: int
    energy_mj: int


class ProfilerFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the trace was taken, with the CUPTI variables as read after profiling."""

    activities: list[str] = []
    record_shapes: bool = False
    with_stack: bool = False
    teardown_cupti: str | None = None
    disable_cupti_lazy_reinit: str | None = None
    kernels: int | None = None
    launches_without_kernel: int | None = None


class ServerFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """A server that was measured from outside: where it is and what it says of itself."""

    url: str  # without user and query, which may be secrets
    model: str  # by the name that it serves it under, without folders
    is_here: bool  # its address is this machine's own
    made_by: str | None = None  # who serves, as its list of models says
    version: str | None = None
    longest_tokens: int | None = None  # prompt and answer together
    prompts: str = "ids"  # token ids, or text
    fields_refused: list[str] = []  # fields of a request that it would not take
    profiled: str | None = None  # how asking it for a trace went


class EngineFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """An engine that decides for itself how to run a model: what it was given, what it chose."""

    name: str
    version: str | None = None
    given: dict[str, str] = {}  # arguments, as text; all others were its own defaults
    longest_tokens: int | None = None  # prompt and answer of a sequence together
    step_sequences: int | None = None  # most sequences of a step
    step_tokens: int | None = None  # most tokens of a step; longer prompts take several
    cache_tokens: int | None = None  # that its cache of keys and values holds
    cache_block_tokens: int | None = None
    memory_share: float | None = None  # of the GPU, that it may take
    attention: str | None = None
    runner: str | None = None
    compilation: str | None = None
    graphs: str | None = None
    graph_sizes: int | None = None  # sizes of a step that have a CUDA graph
    async_scheduling: bool | None = None
    chunked_prefill: bool | None = None
    prefix_caching: bool | None = None


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole of run.json."""

    schema_version: int
    id: str
    name: str
    created_ns: int
    tool_version: str
    command: str
    mode: str
    model: Model | None = None
    weights: str | None = None  # dummy, hub or local
    ranks: list[RankFacts] = []
    gpus: list[Gpu] = []
    environment: Environment = Environment()
    sampler: SamplerFacts | None = None
    energy: EnergyFacts | None = None
    profiler: ProfilerFacts | None = None
    engine: EngineFacts | None = None
    server: ServerFacts | None = None
    role_check: RankFacts | None = None  # a trace at a point of its own, only to check roles by
    reference: RankFacts | None = None  # likewise, kernel by kernel: tells roles of graph replays
    diagnostics: list[Diagnostic] = []
    files: dict[str, FileFacts] = {}

    def encode(self) -> bytes:
        """Return the text of run.json, indented and ending in a newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def _whole(text: str) -> int:
    """Return an integer, if it is one that a time, a size or a count can be."""
    if len(text) > LONGEST_NUMBER or abs(int(text)) >= LATEST_NS:
        raise ValueError(f"the number {text[:LONGEST_NUMBER]} is too large")
    return int(text)


def read_manifest(run: Path) -> Manifest:
    """Read and check run.json of a run folder.

    Raises:
        InputError: no such folder, no run.json, or a run.json that does not parse.
        VersionError: written by a newer whichwall; the message names both versions.
    """
    path = run / FILE
    require_regular(path, FILE)
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise InputError(f"{path}: is larger than any {FILE}; import or collect the run again")
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        what = "no such folder" if not run.exists() else f"no {FILE} in it"
        if old := find_replaced(run):
            raise InputError(
                f"{run}: no such folder: a killed --overwrite left the earlier run as {old}; "
                f"rename that to {run.name}"
            ) from error
        raise InputError(
            f"{run}: {what}; expected a run folder made by collect or import"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a readable {FILE}") from error
    try:
        version = json.loads(raw, parse_int=_whole)["schema_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path}: not a run manifest ({error}); expected JSON with a schema_version"
        ) from error
    if not isinstance(version, int) or version < 1:
        raise InputError(f"{path}: schema version {version!r} is not a version number")
    if version > VERSION:
        raise VersionError(
            f"{path}: schema version {version}, this whichwall knows up to {VERSION}; "
            "upgrade whichwall"
        )
    try:
        return msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: {error}; import or collect the run again") from error
