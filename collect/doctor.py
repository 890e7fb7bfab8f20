"""What this machine can collect, and why not the rest: works without torch and without a GPU."""

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from whichwall.collect import nvml
from whichwall.collect.packages import package_version
from whichwall.collect.smi_fields import QUERY, supported_fields
from whichwall.schemas.errors import CollectError

OLDEST_PYTHON = (3, 11)
COLLECT_PACKAGES = ("torch", "transformers")
ANALYZE_PACKAGES = ("polars", "altair", "vl-convert-python")
INSTALL_COLLECT = "pip install 'whichwall[collect]'"
SERVER_PACKAGE, INSTALL_ENDPOINT = "httpx2", "pip install 'whichwall[endpoint]'"
# A run of 16 profiled steps writes a trace of some 50 MB beside its tables before importing it.
LEAST_FREE_BYTES = 1 << 30
SMI_S, TRIAL_S = 15.0, 180.0

TRIAL = "from whichwall.collect.trial import try_profiler; try_profiler()"


@dataclass(frozen=True)
class Finding:
    """One thing looked at: `ok` is None where there is nothing to be right or wrong."""

    name: str
    ok: bool | None
    what: str
    remedy: str | None = None


def examine(folder: Path = Path()) -> list[Finding]:
    """Look at everything that collecting into `folder` needs, cheapest first."""
    findings = [_python(), *map(_package, COLLECT_PACKAGES)]
    uuid = None
    if find_spec("torch") is not None:
        gpu, uuid = _gpu()
        findings.append(gpu)
    findings += [_smi(), _energy(uuid)]
    if find_spec("torch") is not None:
        findings.append(_profiler(on_gpu=uuid is not None))
    return [*findings, _teardown(), _server(), _disk(folder), _analyze()]


def render(findings: list[Finding]) -> list[str]:
    """Return a line per finding, and one below it where something can be done."""
    marks = {True: "ok", False: "no", None: "-"}
    width = max((len(f.name) for f in findings), default=0)
    lines = []
    for finding in findings:
        lines.append(f"{marks[finding.ok]:<3} {finding.name:<{width}}  {finding.what}")
        if finding.remedy:
            lines.append(f"{'':<{width + 6}}{finding.remedy}")
    return lines


def _good(name: str, what: str) -> Finding:
    return Finding(name, ok=True, what=what)


def _bad(name: str, what: str, remedy: str) -> Finding:
    return Finding(name, ok=False, what=what, remedy=remedy)


def _python() -> Finding:
    ok = sys.version_info[:2] >= OLDEST_PYTHON
    wanted = ".".join(map(str, OLDEST_PYTHON))
    remedy = None if ok else f"use Python {wanted} or later"
    return Finding("python", ok, platform.python_version(), remedy)


def _package(name: str) -> Finding:
    found = package_version(name)
    if found is None:
        return _bad(name, "not installed", INSTALL_COLLECT)
    return _good(name, found)


def _gpu() -> tuple[Finding, str | None]:
    """Try the GPU with this torch; return its UUID as well."""
    try:
        import torch

        from whichwall.collect.device import choose_device
    except (ImportError, OSError) as error:
        return _bad("gpu", f"torch cannot be loaded ({error})", INSTALL_COLLECT), None
    build = torch.version.cuda or torch.version.hip
    try:
        device = choose_device("cuda")
    except CollectError as error:
        what, _, remedy = str(error).partition("; ")
        # A torch built for the CPU alone is a choice; one built for GPUs was meant to find one.
        return (_bad("gpu", what, remedy) if build else Finding("gpu", None, what, remedy)), None
    return _good("gpu", f"{device.name}, torch built for {build}"), device.uuid


def _smi() -> Finding:
    program = shutil.which("nvidia-smi")
    if program is None:
        return Finding(
            "nvidia-smi", None, "not on the path: no clocks, power or throttling in runs",
            "install NVIDIA's driver tools, or put nvidia-smi on the path",
        )  # fmt: skip
    try:
        listed = _said(program, "--help-query-gpu")
        rows = _said(program, "--query-gpu=uuid", "--format=csv,noheader")
    except (OSError, subprocess.SubprocessError) as error:
        return _bad("nvidia-smi", f"does not answer ({error})", "look at the driver")
    known = supported_fields(listed)
    lacking = [name for name in QUERY if name not in known]
    gpus = sum(line.startswith("GPU-") for line in rows.splitlines())
    if not gpus:
        said = " ".join(rows.split()) or "lists no GPU"
        return _bad("nvidia-smi", said, "look at the driver")
    what = (
        f"{gpus} GPU{'s' if gpus > 1 else ''}, {len(QUERY) - len(lacking)} of {len(QUERY)} fields"
    )
    return _good("nvidia-smi", what + (f"; lacks {', '.join(lacking)}" if lacking else ""))


def _said(*command: str) -> str:
    run = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SMI_S, check=False
    )
    return run.stdout.decode("utf-8", "replace")


def _energy(uuid: str | None) -> Finding:
    if find_spec("pynvml") is None:
        return Finding("energy", None, "no NVML for Python", "pip install nvidia-ml-py")
    with nvml.open_gpu(uuid) as gpu:
        if gpu is None:
            return Finding("energy", None, "NVML knows no GPU here; power comes from samples only")
        counter = gpu.energy_mj()
    if counter is None:
        return Finding(
            "energy", None, "no energy counter (Volta and later); power from samples only"
        )
    return _good("energy", f"counter reads {counter / 1e6:,.0f} kJ")


def _profiler(*, on_gpu: bool) -> Finding:
    """Take a tiny trace in another process: a broken CUPTI may crash or hang."""
    try:
        run = subprocess.run(
            [sys.executable, "-c", TRIAL],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return _bad("profiler", f"hung for {TRIAL_S:.0f} s", "end other profilers")
    words = run.stdout.decode("utf-8", "replace").split()
    if run.returncode != 0 or len(words) != 2:
        last = (run.stderr.decode("utf-8", "replace").strip().splitlines() or ["no output"])[-1]
        return _bad("profiler", f"failed (status {run.returncode}): {last}", INSTALL_COLLECT)
    events, kernels = map(int, words)
    what = f"a trial trace holds {events} events, {kernels} kernels"
    if on_gpu and kernels == 0:
        remedy = (
            "CUPTI is in use by another tool (nsys, ncu, DCGM), or not allowed in this container"
        )
        return _bad("profiler", what, remedy)
    return _good("profiler", what)


def _teardown() -> Finding:
    found = os.environ.get("TEARDOWN_CUPTI")
    if found in (None, "1"):
        return Finding("TEARDOWN_CUPTI", None, "set to 1 while collecting")
    remedy = "unset it: otherwise launches stay slower after a trace"
    return _bad("TEARDOWN_CUPTI", f"is {found}", remedy)


def _server() -> Finding:
    """Say whether running servers can be measured, which takes neither torch nor a GPU."""
    found = package_version(SERVER_PACKAGE)
    if found is None:
        return Finding("servers", None, f"{SERVER_PACKAGE} is not installed", INSTALL_ENDPOINT)
    return _good("servers", f"can be measured with --engine openai ({SERVER_PACKAGE} {found})")


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    ok = free >= LEAST_FREE_BYTES
    return Finding(
        "disk", ok, f"{free / 1e9:,.1f} GB free", None if ok else "free some, or use --out"
    )


def _analyze() -> Finding:
    lacking = [name for name in ANALYZE_PACKAGES if package_version(name) is None]
    if lacking:
        what = f"lacks {', '.join(lacking)}: runs can be collected here, not analyzed"
        return Finding("analyze", None, what, "pip install whichwall, or analyze elsewhere")
    return _good("analyze", "polars, altair and vl-convert are installed")
